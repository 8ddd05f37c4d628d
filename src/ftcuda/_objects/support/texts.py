"""Texts on their way to C, where they end at the first zero."""

import os


def zero_ended(value: str | bytes | bytearray | os.PathLike[str], what: str) -> bytes:
    """Returns the bytes of a text that C reads up to a zero, which it must not contain.

    Everything that goes to C as a text comes through here; tests/layout/test_texts.py finds what does not.

    Parameters
    ----------
    value : str, bytes or path
        A str becomes UTF-8.
    what : str
        What the caller knows it as.

    Raises
    ------
    ValueError
        It would be cut.
    """
    found = os.fsencode(value) if isinstance(value, os.PathLike) else value
    if isinstance(found, str):
        found = found.encode()
    if b"\0" in found:
        raise ValueError(f"{what} must not contain a NUL character, where C would cut it: {value!r:.200}")
    return bytes(found)
