"""Names that cuda.core has in its module of this name."""

from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.arrays.viewable import args_viewable_as_strided_memory

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]
