"""What a row has: the arrays of requests and of answers."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LONGEST = 1 << 48  # of a dimension

Signature = Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]


class RowArray(NamedTuple):
    """One array of a row."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of it in one row."""
        return self.dtype.itemsize * prod(self.shape)


def row_arrays(given: Signature, which: str) -> tuple[RowArray, ...]:
    """Checks `inputs` or `outputs` of a batcher."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{which} must map names to (dtype, shape), not be of type {type(given).__name__}")
    if not given:
        raise ValueError(f"{which} must name one array at least")
    return tuple(row_array(name, what, which) for name, what in given.items())


def row_array(name: object, what: object, which: str) -> RowArray:
    """One of them."""
    if not isinstance(name, str):
        raise TypeError(f"names in {which} must be str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"a name in {which} is empty")
    if not isinstance(what, tuple) or len(what) != 2 or not isinstance(what[1], tuple | list):
        raise TypeError(f"{which}[{name!r}] must be (dtype, shape of a row), not {what!r}")
    dtype = np.dtype(what[0])
    if dtype.hasobject or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise TypeError(f"{which}[{name!r}] has the dtype {dtype}, whose elements a device does not know")
    shape = tuple(length(each, name, which) for each in what[1])
    return RowArray(name, dtype, shape)


def length(given: Any, name: str, which: str) -> int:
    """Of one dimension."""
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(f"the shape of {which}[{name!r}] must be of integers, not {type(given).__name__}")
    made = int(given.__index__())
    if made < 0:
        raise ValueError(f"the shape of {which}[{name!r}] has the negative length {made}")
    if made > LONGEST:
        raise ValueError(f"the shape of {which}[{name!r}] has a length of {made}, beyond any memory")
    return made


def rows_of(arrays: tuple[RowArray, ...], given: Any, many: bool) -> tuple[list[npt.NDArray[Any]], int]:
    """Contiguous arrays of what a caller gave, one for each of `arrays`, and how many rows they have."""
    if len(arrays) == 1 and not isinstance(given, Mapping):
        made = [contiguous(arrays[0], given, many)]
    else:
        if not isinstance(given, Mapping) or given.keys() != {each.name for each in arrays}:
            names = ", ".join(each.name for each in arrays)
            raise TypeError(f"a request needs a mapping with an array for each of: {names}")
        made = [contiguous(each, given[each.name], many) for each in arrays]
    if not many:
        return made, 1
    counts = {len(each) for each in made}
    if len(counts) > 1:
        raise ValueError(f"the arrays of a request have different numbers of rows: {sorted(counts)}")
    return made, counts.pop()


def contiguous(wanted: RowArray, given: Any, many: bool) -> npt.NDArray[Any]:
    """An array of a row, or of rows."""
    made = given if type(given) is np.ndarray else as_array(wanted, given)
    if made.dtype != wanted.dtype:
        raise TypeError(f"{wanted.name} must be of dtype {wanted.dtype}, not {made.dtype}")
    if (made.shape[1:] if many else made.shape) != wanted.shape or (many and made.ndim == 0):
        expected = ("rows", *wanted.shape) if many else wanted.shape
        raise ValueError(f"{wanted.name} must have the shape {expected}, not {made.shape}".replace("'", ""))
    if made.flags.c_contiguous:
        return made
    return made.copy(order="C")


def as_array(wanted: RowArray, given: Any) -> npt.NDArray[Any]:
    """Numbers and sequences become what is wanted; what has a type of its own stays as it is."""
    if given is None:
        raise TypeError(f"{wanted.name} must be an array, not None")
    has_type = hasattr(given, "dtype") or hasattr(given, "__array__") or hasattr(given, "__buffer__")
    return np.asarray(given) if has_type else np.asarray(given, wanted.dtype)
