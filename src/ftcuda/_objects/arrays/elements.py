"""Element types: numpy's dtypes, the codes that DLPack has for them, and whose byte order is not the host's."""

import ctypes

import numpy as np

try:
    import ml_dtypes
except ImportError:  # optional: bfloat16 and the 8-bit floats have a dtype only where it is installed
    ml_dtypes = None

# DLDataTypeCode, dlpack.h 1.1. Numpy's own kinds in any size; the others in one.
KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
OPAQUE = -1  # ours: an element type that DLPack has no code for
NARROW = {
    "bfloat16": (4, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
NAMES = {element: name for name, element in NARROW.items()}
DTYPES = {
    **{
        (KINDS[np.dtype(name).kind], 8 * np.dtype(name).itemsize): np.dtype(name)
        for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
    },
    **{element: np.dtype(getattr(ml_dtypes, name)) for name, element in NARROW.items() if hasattr(ml_dtypes, name)},
}
ELEMENTS = {dtype: element for element, dtype in DTYPES.items()}


def element_of(dtype: np.dtype) -> tuple[int, int]:
    """Returns code and bits of `dtype`; the code is OPAQUE for structures, strings and foreign byte orders."""
    return ELEMENTS.get(dtype, (OPAQUE, 8 * dtype.itemsize))


def dtype_of(code: int, bits: int) -> np.dtype:
    """Returns the dtype of an element, whose numpy name is in ml_dtypes for the narrow ones."""
    if (code, bits) in DTYPES:
        return DTYPES[code, bits]
    if (code, bits) in NAMES:
        raise NotImplementedError(f"{NAMES[code, bits]} has a numpy dtype only with ml_dtypes: pip install ml_dtypes")
    raise NotImplementedError(f"numpy has no dtype for the DLPack type of code {code} and {bits} bits")


def is_foreign(dtype: np.dtype) -> bool:
    """Whether a number in an element of `dtype` is of the other byte order; `isnative` forgets arrays in fields."""
    if dtype.subdtype is not None:
        return is_foreign(dtype.base)
    if dtype.names is None:
        return not dtype.isnative
    return any(is_foreign(dtype.fields[name][0]) for name in dtype.names)


def as_element(dtype: object) -> np.dtype:
    """Returns `dtype` as numpy's, if memory that others write can have such elements."""
    made = np.dtype(dtype)
    if made.hasobject or made.itemsize == 0:
        raise TypeError(f"memory of a buffer cannot have elements of dtype {made}")
    return made


def is_foreign_type(ctype: type) -> bool:
    """Whether a number in a ctypes type is of the other byte order, also in a union, whose buffer format hides it."""
    if issubclass(ctype, ctypes.Array):
        return is_foreign_type(ctype._type_)
    if issubclass(ctype, ctypes.Structure | ctypes.Union):
        fields = [field for base in ctype.__mro__ for field in vars(base).get("_fields_", ())]
        return any(is_foreign_type(field[1]) for field in fields)
    return getattr(ctype, "__ctype_le__", ctype) is not ctype  # every host that CUDA runs on is little-endian
