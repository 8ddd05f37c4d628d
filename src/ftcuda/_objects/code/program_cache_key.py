"""Keys of compiled programs."""

from collections.abc import Sequence

from ftcuda._objects.code.program import Program, cache_key
from ftcuda._objects.code.program_options import ProgramOptions
from ftcuda.typing import ObjectCodeFormatType, SourceCodeType


def make_program_cache_key(
    *,
    code: str | bytes,
    code_type: SourceCodeType | str,
    options: ProgramOptions,
    target_type: ObjectCodeFormatType | str,
    name_expressions: Sequence[str | bytes] = (),
    extra_digest: bytes | None = None,
) -> bytes:
    """Makes the key under which :meth:`Program.compile` keeps what a program becomes.

    It is of the source, the options, the target, the architecture, the versions of NVRTC and its headers, and whether
    this process has compiled with the option ``restrict``, which NVRTC keeps on from then on. Where
    NVRTC reads other files, they are not in it::

        key = make_program_cache_key(..., extra_digest=digest_of_my_headers)
        image = cache.get(key)
        if image is None:
            cache[key] = program.compile("cubin")

    Parameters
    ----------
    code, code_type, options
        As of :class:`Program`.
    target_type : ObjectCodeFormatType or str
        ``"ptx"``, ``"cubin"`` or ``"ltoir"``.
    name_expressions : sequence of str or bytes
        In any order.
    extra_digest : bytes, optional
        Of what else decides on the result. Needed with the options ``include_path``, ``pre_include``, ``pch``,
        ``use_pch`` and ``pch_dir``; with ``#include`` of a path that is absolute or has ``..``, or of a macro; with
        ``__DATE__`` and ``__TIME__``; and, without the option ``no_source_include``, with a `name` in another folder,
        and with ``#include "..."``.

    Returns
    -------
    bytes

    Thread safety: atomic.

    Raises
    ------
    TypeError
        The options are none.
    ValueError
        There is no `extra_digest`, where one is needed; or the options ``create_pch``, ``time`` or
        ``fdevice_time_trace`` ask for files, which nobody writes when a program is found.
    """
    if not isinstance(options, ProgramOptions):
        raise TypeError(f"options must be ProgramOptions, not {type(options).__name__}")
    return cache_key(Program(code, code_type, options), target_type, name_expressions, extra_digest)
