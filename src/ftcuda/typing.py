"""Words that ftcuda takes and gives, as enumerations with the names and values of cuda.core 1.2's module of this name.

Each member is the word itself, ``ObjectCodeFormatType.PTX == "ptx"``: wherever a word is taken, the member is, and the
other way round. Some are about things that ftcuda does not offer yet; they are here so that no import fails for a word.
"""

from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, runtime_checkable

__all__ = [
    "AddressModeType",
    "ArrayFormatType",
    "CompilerBackendType",
    "DevicePointerType",
    "FilterModeType",
    "GraphConditionalType",
    "GraphMemoryType",
    "IsStreamType",
    "ManagedMemoryLocationType",
    "ObjectCodeFormatType",
    "PCHStatusType",
    "ProcessStateType",
    "ReadModeType",
    "SourceCodeType",
    "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType",
    "VirtualMemoryGranularityType",
    "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
    "WorkqueueSharingScopeType",
]

# Plain values, as in cuda.core: `isinstance` takes a union, not the alias that a type statement makes.
DevicePointerType: TypeAlias = int | None  # noqa: UP040
ProcessStateType: TypeAlias = Literal["running", "locked", "checkpointed", "failed"]  # noqa: UP040


@runtime_checkable
class IsStreamType(Protocol):
    """What other libraries' streams are known by."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Returns the protocol's version, 0, and the ``CUstream`` as an integer."""
        ...


class SourceCodeType(StrEnum):
    """Languages of a `Program`. ftcuda compiles CUDA C++."""

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(StrEnum):
    """What `Program.compile` makes and `ObjectCode` holds. LTO IR is for linkers: ftcuda does not load it."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"


class CompilerBackendType(StrEnum):
    """What compiles a `Program`. In ftcuda: NVRTC."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class PCHStatusType(StrEnum):
    """What became of the precompiled header that a compilation was asked to make."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"


class GraphConditionalType(StrEnum):
    """Conditional nodes of graphs."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


class GraphMemoryType(StrEnum):
    """Where a graph's memory is."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"


class ManagedMemoryLocationType(StrEnum):
    """Where managed memory is, or should be."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


class VirtualMemoryHandleType(StrEnum):
    """Handles by which other processes get virtual memory."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryLocationType(StrEnum):
    """Where virtual memory is."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"


class VirtualMemoryGranularityType(StrEnum):
    """Which granularity of virtual memory is asked for."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryAccessType(StrEnum):
    """What virtual memory may be used for."""

    READ_WRITE = "rw"
    READ = "r"


class VirtualMemoryAllocationType(StrEnum):
    """Kinds of memory behind virtual addresses."""

    PINNED = "pinned"
    MANAGED = "managed"


class ArrayFormatType(StrEnum):
    """Elements of texture arrays; words that numpy knows too."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class AddressModeType(StrEnum):
    """What a texture gives outside its extent."""

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"


class FilterModeType(StrEnum):
    """How a texture is sampled between elements."""

    POINT = "point"
    LINEAR = "linear"


class ReadModeType(StrEnum):
    """What a texture's elements are read as."""

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"


class WorkqueueSharingScopeType(StrEnum):
    """Who shares work queues."""

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"
