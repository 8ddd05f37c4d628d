"""Handles of the driver as other libraries hold them: ints, or the classes of cuda-bindings."""

from numbers import Integral


class OwnHandle:
    """The class below those of ours that stand for a number of the driver's, their `handle`, also as an argument."""

    __slots__ = ()

    handle: int


def handle_of(value: object) -> int | None:
    """Returns the number of a handle; None for what is none.

    An ``__index__`` alone makes no handle: a `Device` has one, which is its ordinal.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return value.__index__()
    if isinstance(value, OwnHandle):
        return value.handle
    if type(value).__module__.startswith("cuda.bindings") and hasattr(value, "__int__"):
        return int(value)  # CUdeviceptr and its like have no __index__
    return None


def checked_handle(value: object, name: str) -> int:
    """Returns the number of the handle `value`, an argument called `name`."""
    handle = handle_of(value)
    if handle is None:
        raise TypeError(f"{name} must be an int or a handle of cuda-bindings, not {type(value).__name__}")
    if not 0 <= handle < 2**64:
        raise ValueError(f"{name} must be from 0 to 2**64 - 1, not {handle}")
    return handle
