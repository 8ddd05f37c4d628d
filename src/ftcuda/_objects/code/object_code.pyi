from collections.abc import Mapping
from os import PathLike

from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.device.device import Device
from ftcuda._objects.memory.buffer import Buffer
from ftcuda.typing import ObjectCodeFormatType

Image = bytes | bytearray | str | PathLike[str]

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
    @staticmethod
    def from_ltoir(
        module: Image, *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode: ...
    @staticmethod
    def from_object(
        module: Image, *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode: ...
    @staticmethod
    def from_library(
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
