"""The words of ftcuda.typing: those of cuda.core 1.2.2, taken and given wherever a word is."""

from enum import Enum, StrEnum

import numpy as np
import pytest

import ftcuda
from ftcuda import ObjectCode, Program, StridedMemoryView, typing
from tests.kernels import compile_code

SOURCE = 'extern "C" __global__ void k() {}'

# Members and values as cuda.core.typing 1.2.2 has them.
MEMBERS = {
    "AddressModeType": {"WRAP": "wrap", "CLAMP": "clamp", "MIRROR": "mirror", "BORDER": "border"},
    "ArrayFormatType": {
        name: name.lower()
        for name in ("UINT8", "UINT16", "UINT32", "INT8", "INT16", "INT32", "FLOAT16", "FLOAT32")
    },
    "CompilerBackendType": {"NVRTC": "NVRTC", "NVVM": "NVVM", "NVJITLINK": "nvJitLink", "DRIVER": "driver"},
    "FilterModeType": {"POINT": "point", "LINEAR": "linear"},
    "GraphConditionalType": {"IF": "if", "WHILE": "while", "SWITCH": "switch"},
    "GraphMemoryType": {"DEVICE": "device", "HOST": "host", "MANAGED": "managed"},
    "ManagedMemoryLocationType": {"DEVICE": "device", "HOST": "host", "HOST_NUMA": "host_numa"},
    "ObjectCodeFormatType": {
        "PTX": "ptx", "CUBIN": "cubin", "LTOIR": "ltoir", "FATBIN": "fatbin", "OBJECT": "object", "LIBRARY": "library",
    },
    "PCHStatusType": {"CREATED": "created", "NOT_ATTEMPTED": "not_attempted", "FAILED": "failed"},
    "ReadModeType": {"ELEMENT_TYPE": "element_type", "NORMALIZED_FLOAT": "normalized_float"},
    "SourceCodeType": {"CXX": "c++", "PTX": "ptx", "NVVM": "nvvm"},
    "VirtualMemoryAccessType": {"READ_WRITE": "rw", "READ": "r"},
    "VirtualMemoryAllocationType": {"PINNED": "pinned", "MANAGED": "managed"},
    "VirtualMemoryGranularityType": {"MINIMUM": "minimum", "RECOMMENDED": "recommended"},
    "VirtualMemoryHandleType": {"POSIX_FD": "posix_fd", "WIN32_KMT": "win32_kmt", "FABRIC": "fabric"},
    "VirtualMemoryLocationType": {
        "DEVICE": "device", "HOST": "host", "HOST_NUMA": "host_numa", "HOST_NUMA_CURRENT": "host_numa_current",
    },
    "WorkqueueSharingScopeType": {"DEVICE_CTX": "device_ctx", "GREEN_CTX_BALANCED": "green_ctx_balanced"},
}  # fmt: skip
OTHERS = {"DevicePointerType", "IsStreamType", "ProcessStateType"}


class Word(str, Enum):  # noqa: UP042 - not a StrEnum: what this is about
    """Of a program's own, older kind, whose members format as their names."""

    CXX = "c++"
    PTX = "ptx"
    KERNEL = "k"
    BFLOAT16 = "bfloat16"


def test_members_and_values():
    assert set(typing.__all__) == {*MEMBERS, *OTHERS}
    for name, members in MEMBERS.items():
        kind = getattr(typing, name)
        assert issubclass(kind, StrEnum) and {member.name: member.value for member in kind} == members


@pytest.mark.parametrize("word", ["c++", "C++", typing.SourceCodeType.CXX, Word.CXX])
@pytest.mark.parametrize("target", ["ptx", "PTX", typing.ObjectCodeFormatType.PTX, Word.PTX])
def test_they_are_taken_and_given(word, target):
    program = Program(SOURCE, word)
    assert program.backend is typing.CompilerBackendType.NVRTC and program.backend == "NVRTC"
    code = program.compile(target)
    assert code.code_type is typing.ObjectCodeFormatType.PTX and code.code_type == "ptx" and f"{code.code_type}" == "ptx"
    loaded = ObjectCode.from_ptx(code.code, name=Word.KERNEL, symbol_mapping={"alias": "k"})
    assert loaded.name == "k" and type(loaded.name) is str and loaded.code_type is typing.ObjectCodeFormatType.PTX


def test_words_that_mean_nothing_here():
    with pytest.raises(ValueError, match="code_type"):
        Program(SOURCE, typing.SourceCodeType.NVVM)
    for target in (typing.ObjectCodeFormatType.FATBIN, "elf", 5, b"ptx"):
        with pytest.raises(ValueError, match="target_type"):
            Program(SOURCE, "c++").compile(target)


def test_names_of_kernels_may_be_members(stream):
    code = compile_code("template <class T> __global__ void k() {}", "k<int>")
    names = StrEnum("Names", {"INT": "k<int>"})
    assert code.get_kernel(names.INT).name == "k<int>"
    again = Program("template <class T> __global__ void k() {}", "c++").compile("ptx", name_expressions=[names.INT])
    assert {*again.symbol_mapping} == {"k<int>"} and all(type(name) is str for name in again.symbol_mapping)


def test_elements_of_tensor_maps_and_views(device, stream):
    if not device.features.tensor_maps:
        pytest.skip(reason="this device has no tensor maps")
    with device.allocate(256, stream=stream) as buffer:
        floats = StridedMemoryView.from_buffer(buffer, (64,), dtype=typing.ArrayFormatType.FLOAT32)
        assert floats.dtype == np.float32
        assert floats.as_tensor_map((16,), data_type=typing.ArrayFormatType.FLOAT32) == floats.as_tensor_map((16,))
        halves = StridedMemoryView.from_buffer(buffer, (128,), dtype="u2")
        wanted = halves.as_tensor_map((16,), data_type=ftcuda.TensorMapDataType.BFLOAT16)
        assert halves.as_tensor_map((16,), data_type=Word.BFLOAT16) == wanted
    stream.sync()


def test_streams_are_known_by_their_protocol(stream):
    assert isinstance(stream, typing.IsStreamType) and not isinstance(5, typing.IsStreamType)
