from collections.abc import Iterable
from typing import Protocol

from ftcuda._objects.code.object_code import ObjectCode
from ftcuda._objects.code.program_options import ProgramOptions
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

class SupportsWrite(Protocol):
    def write(self, text: str, /) -> object: ...

class ProgramCache(Protocol):
    def get(self, key: bytes, /) -> bytes | None: ...
    def __setitem__(self, key: bytes, value: bytes, /) -> None: ...

def nvrtc_version() -> tuple[int, int]: ...
def find_nvrtc() -> list[str]: ...
def cache_key(
    program: Program, target_type: ObjectCodeFormatType | str, names: Iterable[str], extra_digest: bytes | None
) -> bytes: ...

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
        name_expressions: Iterable[str | bytes] = (),
        logs: SupportsWrite | None = None,
        *,
        cache: ProgramCache | None = None,
    ) -> ObjectCode: ...
    def close(self) -> None: ...
