"""What ``__array_interface__`` and ``__cuda_array_interface__`` say, checked.

Source: numpy's array interface protocol, and the CUDA Array Interface v3 in numba's documentation.
"""

from typing import NamedTuple

import numpy as np

from ftcuda._objects.arrays.elements import is_foreign

MAX_RANK = 64  # more than any array library has


class ArrayInterface(NamedTuple):
    """A checked interface. Strides are in elements, None for C-contiguous."""

    pointer: int
    readonly: bool
    shape: tuple
    strides: tuple | None
    dtype: np.dtype
    stream: int | None


def parse(interface: object, name: str, oldest: int = 0) -> ArrayInterface:
    """Returns what the mapping `interface`, an object's attribute `name`, says.

    Parameters
    ----------
    oldest : int
        The first version that is wanted.

    Raises
    ------
    BufferError
        It says something that is wrong or not supported.
    """
    if not isinstance(interface, dict):
        raise BufferError(f"{name} must be a dict, not {type(interface).__name__}")
    for key in ("shape", "typestr", "version"):
        if key not in interface:
            raise BufferError(f"{name} has no {key!r}")
    if interface.get("mask") is not None:
        raise BufferError(
            f"{name} has a mask, which kernels know nothing of: give the array and the mask as two arguments"
        )
    version = interface["version"]
    if not is_int(version) or not 0 <= version <= 3:
        raise BufferError(f"{name} is of version {version!r}; versions 0 to 3 are understood")
    if version < oldest:
        raise BufferError(
            f"{name} is of version {version}, and a view needs version {oldest}, which says what work the memory "
            "waits for; give the array to launch() itself, or update its library"
        )
    shape = ints(interface["shape"], "shape", name)
    if min(shape, default=0) < 0:
        raise BufferError(f"{name}: a shape cannot be negative, as in {shape}")
    dtype = dtype_in(interface, name)
    pointer, readonly = data_in(interface, name)
    strides = strides_in(interface, shape, dtype.itemsize, name)
    # An address of 0 is a placeholder's where all strides are 0 too, as cuda.core takes it.
    if pointer == 0 and 0 not in shape and (not strides or any(strides)):
        raise BufferError(f"{name}: the pointer is 0, and the shape {shape} is not empty")
    return ArrayInterface(pointer, readonly, shape, strides, dtype, stream_in(interface, name))


def check_reach(pointer: int, shape: tuple, strides: tuple | None, itemsize: int, name: str) -> None:
    """Refuses an array whose count of elements or bytes, or the address of one, does not fit: no sum can overflow then.

    Dimensions of no elements count as one, since strides are made from them too.
    """
    size = itemsize
    for extent in shape:
        size *= max(extent, 1)
    if itemsize >= 2**28 or size >= 2**63:
        raise BufferError(f"{name}: the bytes of shape {shape} with elements of {itemsize} bytes do not fit in 63 bits")
    if 0 in shape:
        return
    low, high = 0, size
    if strides is not None:
        reaches = [(extent - 1) * stride * itemsize for extent, stride in zip(shape, strides, strict=True)]
        low = sum(reach for reach in reaches if reach < 0)
        high = sum(reach for reach in reaches if reach > 0) + itemsize
    if pointer + low < 0 or pointer + high > 2**64 or high - low >= 2**63:
        raise BufferError(f"{name}: elements of shape {shape} with strides {strides} lie outside all memory")


def is_int(value: object) -> bool:
    """Whether `value` is an int, or a numpy one, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def ints(value: object, what: str, name: str) -> tuple:
    """Returns `value` as a tuple of ints."""
    if not isinstance(value, tuple | list) or not all(is_int(number) for number in value):
        raise BufferError(f"{name}: {what} must be a tuple of ints, not {value!r}")
    if len(value) > MAX_RANK:
        raise BufferError(f"{name}: {len(value)} dimensions are more than {MAX_RANK}")
    if any(not -(2**63) <= number < 2**63 for number in value):
        raise BufferError(f"{name}: {what} {value!r} does not fit in 64 bits")
    return tuple(int(number) for number in value)


def dtype_in(interface: dict, name: str) -> np.dtype:
    """Returns the element type; of a structure, when `descr` describes one."""
    typestr = interface["typestr"]
    if not isinstance(typestr, str):
        raise BufferError(f"{name}: typestr must be a str, not {typestr!r}")
    try:
        dtype = np.dtype(typestr)
        described = described_in(interface.get("descr"), typestr, name)
    except (TypeError, ValueError) as error:
        raise BufferError(f"{name}: typestr {typestr!r} is no element type: {error}") from None
    if described is not None:
        is_same = dtype.kind == "V" or described in (dtype, np.dtype([(name, dtype) for name in described.names or ()]))
        if described.itemsize != dtype.itemsize or not is_same:
            raise BufferError(
                f"{name}: descr {interface['descr']!r} contradicts typestr {typestr!r}: both must describe the same"
            )
        if dtype.kind == "V":
            dtype = described
    if dtype.hasobject or dtype.kind in "mMSU" or dtype.itemsize == 0:
        raise BufferError(f"{name}: elements of typestr {typestr!r} mean nothing to a kernel")
    if is_foreign(dtype):
        raise BufferError(f"{name}: typestr {typestr!r} is of the other byte order; copy it with astype first")
    return dtype


def described_in(descr: object, typestr: str, name: str) -> np.dtype | None:
    """Returns the element type of `descr`, which tells more than `typestr`; None where it does not."""
    if descr is None or descr == [("", typestr)]:
        return None
    if not isinstance(descr, list) or not descr:
        raise BufferError(f"{name}: descr must be a list of tuples, not {descr!r}")
    if len(descr) == 1 and len(descr[0]) > 1 and descr[0][0] == "":  # numpy would give the one element a name
        return np.dtype(tuple(descr[0][1:]) if len(descr[0]) > 2 else descr[0][1])
    return np.dtype([tuple(field) for field in descr])


def data_in(interface: dict, name: str) -> tuple[int, bool]:
    """Returns pointer and read-only flag."""
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2 or not is_int(data[0]):
        raise BufferError(f"{name}: data must be (pointer, read-only), not {data!r}")
    if not 0 <= data[0] < 2**64:
        raise BufferError(f"{name}: {data[0]} is no address")
    if not isinstance(data[1], bool | np.bool) and not (is_int(data[1]) and data[1] in (0, 1)):
        raise BufferError(f"{name}: the read-only flag must be a bool, not {data[1]!r}")
    return int(data[0]), bool(data[1])


def strides_in(interface: dict, shape: tuple, itemsize: int, name: str) -> tuple | None:
    """Returns strides in elements; None where they are missing or None, which means C-contiguous."""
    strides = interface.get("strides")
    if strides is None:
        return None
    strides = ints(strides, "strides", name)
    if len(strides) != len(shape):
        raise BufferError(f"{name}: {len(strides)} strides for {len(shape)} dimensions")
    if any(stride % itemsize for stride in strides):
        raise BufferError(f"{name}: strides {strides} are not multiples of the {itemsize} bytes of an element")
    return tuple(stride // itemsize for stride in strides)


def stream_in(interface: dict, name: str) -> int | None:
    """Returns the producer's stream; None where nothing needs to be waited for."""
    stream = interface.get("stream")
    if stream is None:
        return None
    if not is_int(stream) or stream < 0:
        raise BufferError(f"{name}: stream must be a handle, not {stream!r}")
    if stream == 0:
        raise BufferError(
            f"{name}: stream 0 does not say which default stream is meant: 1 is the legacy one, 2 the thread's"
        )
    return int(stream)
