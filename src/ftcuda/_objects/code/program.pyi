from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Protocol

from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.code.program_options import ProgramOptions
from ftcuda._objects.device.device import Device
from ftcuda._objects.memory.buffer import Buffer
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

Image = bytes | bytearray | str | PathLike[str]

class SupportsWrite(Protocol):
    def write(self, text: str, /) -> object: ...

def nvrtc_version() -> tuple[int, int]: ...
def find_nvrtc() -> list[str]: ...

class Program:
    def __init__(
        self,
        code: str | bytes | bytearray,
        code_type: SourceCodeType | str,
        options: ProgramOptions | dict[str, object] | None = None,
    ) -> None: ...
    @property
    def backend(self) -> CompilerBackendType: ...
    @property
    def pch_status(self) -> PCHStatusType | None: ...
    def compile(
        self,
        target_type: ObjectCodeFormatType | str | None = None,
        name_expressions: Iterable[str] = (),
        logs: SupportsWrite | None = None,
    ) -> ObjectCode: ...
    def close(self) -> None: ...

class ObjectCode:
    @staticmethod
    def from_ptx(
        module: Image, *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode: ...
    @staticmethod
    def from_cubin(
        module: Image, *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode: ...
    @staticmethod
    def from_fatbin(
        module: Image, *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode: ...
    def get_kernel(self, name: str | bytes) -> Kernel: ...
    def get_global(self, name: str | bytes, *, device: Device | int | None = None) -> Buffer: ...
    @property
    def code(self) -> bytes | str: ...
    @property
    def name(self) -> str: ...
    @property
    def code_type(self) -> ObjectCodeFormatType: ...
    @property
    def symbol_mapping(self) -> Mapping[str, str]: ...
    @property
    def kernel_names(self) -> tuple[str, ...] | None: ...
