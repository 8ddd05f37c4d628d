"""Options of tensor maps: names and defaults as in cuda.core 1.x, and the driver's rules about them.

Source of the rules: cuda.h 13.5, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ftcuda._objects.arrays.elements import element_of


class TensorMapDataType(IntEnum):
    """Element types, as in the driver's CUtensorMapDataType."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12


class TensorMapInterleave(IntEnum):
    """Interleaved layouts, as in the driver's CUtensorMapInterleave."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2


class TensorMapSwizzle(IntEnum):
    """Patterns of shared memory banks, as in the driver's CUtensorMapSwizzle."""

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3


class TensorMapL2Promotion(IntEnum):
    """Sizes of fetches to the L2 cache, as in the driver's CUtensorMapL2promotion."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class TensorMapOOBFill(IntEnum):
    """What fills elements outside the tensor, as in the driver's CUtensorMapFloatOOBfill."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


SIZES = dict(zip(TensorMapDataType, (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4), strict=True))
FLOATS = frozenset(kind for kind in TensorMapDataType if kind >= TensorMapDataType.FLOAT16)

# By DLPack code and bits. Signed and 8-bit float elements are moved as the bits they are.
TYPES = {
    (0, 8): TensorMapDataType.UINT8,
    (0, 16): TensorMapDataType.UINT16,
    (0, 32): TensorMapDataType.INT32,
    (0, 64): TensorMapDataType.INT64,
    (1, 8): TensorMapDataType.UINT8,
    (1, 16): TensorMapDataType.UINT16,
    (1, 32): TensorMapDataType.UINT32,
    (1, 64): TensorMapDataType.UINT64,
    (2, 16): TensorMapDataType.FLOAT16,
    (2, 32): TensorMapDataType.FLOAT32,
    (2, 64): TensorMapDataType.FLOAT64,
    (4, 16): TensorMapDataType.BFLOAT16,
    (6, 8): TensorMapDataType.UINT8,
    **{(code, 8): TensorMapDataType.UINT8 for code in range(7, 15)},
}
# Raw names, for elements that numpy has no dtype for.
NAMES = {"bfloat16": TensorMapDataType.BFLOAT16, "tfloat32": TensorMapDataType.TFLOAT32}

SWIZZLE_BYTES = {TensorMapSwizzle.SWIZZLE_32B: 32, TensorMapSwizzle.SWIZZLE_64B: 64, TensorMapSwizzle.SWIZZLE_128B: 128}
CORNERS = {3: 2**15, 4: 2**7, 5: 2**4}  # by rank: what a corner's coordinates stay below


@dataclass
class TensorMapDescriptorOptions:
    """Options of `StridedMemoryView.as_tensor_map`. Sequences are in the order of the tensor's shape.

    Attributes
    ----------
    box_dim : tuple of int
        Elements of a tile in each dimension, at most 256.
    element_strides : tuple of int, optional
        Steps between the elements loaded, from 1 to 8. None is 1 in each dimension.
    data_type : TensorMapDataType, numpy.dtype or str, optional
        None is that of the view. The names ``"bfloat16"``, ``"tfloat32"`` and ``"float8_..."`` need no ml_dtypes.
    interleave : TensorMapInterleave
    swizzle : TensorMapSwizzle
    l2_promotion : TensorMapL2Promotion
    oob_fill : TensorMapOOBFill
    """

    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = None
    data_type: object = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE


def type_of(data_type: object, element: tuple[int, int]) -> TensorMapDataType:
    """Returns the type asked for, else that of the view's `element`."""
    if isinstance(data_type, TensorMapDataType):
        return data_type
    if isinstance(data_type, str) and (data_type in NAMES or data_type.startswith("float8_")):
        return NAMES.get(data_type, TensorMapDataType.UINT8)
    if data_type is not None:
        element = element_of(np.dtype(data_type))
    if element not in TYPES:
        raise TypeError(f"tensor maps have no type for elements of DLPack code {element[0]} and {element[1]} bits")
    return TYPES[element]


def steps(value: object, name: str, rank: int, least: int, most: int) -> tuple:
    """Returns `value` as a tuple of `rank` ints from `least` to `most`."""
    if not isinstance(value, tuple | list) or len(value) != rank:
        raise ValueError(f"{name} must have {rank} numbers, one for each dimension it is about, not {value!r}")
    for number in value:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must hold ints, not {type(number).__name__}")
        if not least <= number <= most:
            raise ValueError(f"{name} must be from {least} to {most} in each dimension, not {number}")
    return tuple(number.__index__() for number in value)


def check_enums(options: object) -> None:
    """Refuses options of the wrong kind."""
    for name, kind in (
        ("interleave", TensorMapInterleave),
        ("swizzle", TensorMapSwizzle),
        ("l2_promotion", TensorMapL2Promotion),
        ("oob_fill", TensorMapOOBFill),
    ):
        if not isinstance(getattr(options, name), kind):
            raise TypeError(f"{name} must be a {kind.__name__}, not {getattr(options, name)!r}")


def alignment_of(options: object) -> int:
    """Returns what the tensor's address and its strides must be multiples of, in bytes."""
    return 32 if options.interleave is TensorMapInterleave.INTERLEAVE_32B else 16


def check_tensor(
    address: int, shape: tuple, strides: tuple, kind: TensorMapDataType, options: object, ranks: tuple
) -> None:
    """Refuses what the driver would, and says which limit it is. `strides` in bytes, in the order of the shape."""
    rank = len(shape)
    if rank not in ranks:
        raise ValueError(f"a tensor map of this kind has {ranks[0]} to {ranks[-1]} dimensions, not {rank}")
    if options.interleave is not TensorMapInterleave.NONE and rank < 3:
        raise ValueError(f"an interleaved tensor has at least 3 dimensions, not {rank}")
    unit = alignment_of(options)
    if address % unit:
        raise ValueError(f"the tensor's address must be a multiple of {unit}, which {address:#x} is not")
    for extent in shape:
        if not 1 <= extent <= 2**31:
            raise ValueError(f"each extent must be from 1 to 2**31, not {extent}")
    if strides[-1] != SIZES[kind]:
        raise ValueError(
            f"elements of the last dimension must lie side by side: its stride must be {SIZES[kind]} bytes, "
            f"not {strides[-1]}"
        )
    for stride in strides[:-1]:
        if stride % unit or not 0 <= stride < 2**40:
            raise ValueError(f"strides must be multiples of {unit} bytes from 0 to 2**40 - 1, not {stride}")
    if options.interleave is TensorMapInterleave.INTERLEAVE_32B and options.swizzle is not TensorMapSwizzle.SWIZZLE_32B:
        raise ValueError(f"INTERLEAVE_32B goes with SWIZZLE_32B only, not with {options.swizzle.name}")
    if options.oob_fill is TensorMapOOBFill.NAN_REQUEST_ZERO_FMA and kind not in FLOATS:
        raise ValueError(f"NAN_REQUEST_ZERO_FMA is for floating point elements, not for {kind.name}")


def check_inner(count: int, kind: TensorMapDataType, options: object, name: str) -> None:
    """Refuses an inner extent of the box that the layout does not allow."""
    inner = count * SIZES[kind]
    if options.interleave is not TensorMapInterleave.NONE:
        return
    if name == "box_dim" and inner % 16:
        raise ValueError(f"{name} must take a multiple of 16 bytes in the last dimension, not {inner}")
    limit = SWIZZLE_BYTES.get(options.swizzle)
    if limit is not None and inner > limit:
        raise ValueError(
            f"{name} must take at most {limit} bytes in the last dimension with {options.swizzle.name}, not {inner}"
        )
