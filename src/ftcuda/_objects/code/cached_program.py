"""Programs that are compiled once, and found in a cache from then on."""

import json
import warnings
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from ftcuda._objects.code.turns import turn_of
from ftcuda.errors import CUDAWarning

DETAILS = b" details"  # at the end of the key under which all but the image is kept

Found = tuple[bytes, bytes, dict[str, str]]


def through_cache(
    cache: Any, key: bytes, is_plain: bool, make: Callable[[], tuple[Any, bool]], restore: Callable[..., Any]
) -> Any:
    """What `restore()` makes of what is in the cache: of the image, of the PTX that tells what kernels take, and of
    names by expression. Else what `make()` returns, which is kept if it says so. `is_plain`: the image says it all."""
    if isinstance(cache, type):
        raise TypeError(f"cache must be a utils.ProgramCacheResource, not the class {cache.__name__}: make one of it")
    if not hasattr(cache, "get") or not hasattr(cache, "__setitem__"):
        raise TypeError(f"cache must be a utils.ProgramCacheResource, not {type(cache).__name__}")
    found = look(cache, key, is_plain)
    if found is not None:
        return restore(*found)
    exclusive = getattr(cache, "exclusive", None)
    with turn_of(cache, key) if exclusive is None else exclusive(key):
        found = look(cache, key, is_plain)
        if found is not None:
            return restore(*found)
        code, is_of_key = make()
        if is_of_key:
            keep(cache, key, is_plain, code)
        return code


def look(cache: Any, key: bytes, is_plain: bool) -> Found | None:
    """What is there, if it is there as a whole."""
    image = read(cache, key)
    if image is None or is_plain:
        return None if image is None else (image, b"", {})
    text = read(cache, key + DETAILS)
    if text is None:
        return None
    try:
        details = json.loads(text)
        names, signatures, of_image = details["names"], details["signatures"], details["image"]
        fits = of_image == sha256(image).hexdigest() and isinstance(names, dict)
        return (image, signatures.encode("utf-8", "surrogateescape"), names) if fits else None
    except (ValueError, TypeError, KeyError, AttributeError):  # somebody else's
        return None


def read(cache: Any, key: bytes) -> bytes | None:
    """Of a cache that may be the program's own."""
    found = cache.get(key)
    if found is None or isinstance(found, bytes | bytearray | memoryview):
        return None if found is None else bytes(found)
    raise TypeError(f"get() of the cache {cache!r} must return bytes or None, not {type(found).__name__}")


def keep(cache: Any, key: bytes, is_plain: bool, code: Any) -> None:
    """A cache that cannot take it says so by a warning: the program is compiled."""
    image, signatures, _, _, _, names = code.__reduce__()[1]
    try:
        if not is_plain:
            text = signatures.decode("utf-8", "surrogateescape")
            details = {"image": sha256(image).hexdigest(), "names": names, "signatures": text}
            cache[key + DETAILS] = json.dumps(details).encode()
        cache[key] = image
    except OSError as error:
        warnings.warn(f"cannot keep {code!r} in {cache!r}: {error}", CUDAWarning, stacklevel=3)
