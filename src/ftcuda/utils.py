"""Names that cuda.core has in its module of this name."""

from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.arrays.viewable import args_viewable_as_strided_memory
from ftcuda._objects.code.file_program_cache import FileStreamProgramCache
from ftcuda._objects.code.memory_program_cache import InMemoryProgramCache
from ftcuda._objects.code.program_cache import ProgramCacheResource
from ftcuda._objects.code.program_cache_key import make_program_cache_key

__all__ = [
    "FileStreamProgramCache",
    "InMemoryProgramCache",
    "ProgramCacheResource",
    "StridedMemoryView",
    "args_viewable_as_strided_memory",
    "make_program_cache_key",
]
