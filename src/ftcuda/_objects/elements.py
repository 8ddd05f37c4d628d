"""Element types: numpy's dtypes, and the codes that DLPack has for them."""

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
