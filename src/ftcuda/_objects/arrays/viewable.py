"""Functions that take any array."""

import functools
from collections.abc import Callable

from ftcuda._objects.arrays.view import StridedMemoryView


class Viewable:
    """An argument that is an array of some library. Constant."""

    def __init__(self, obj: object) -> None:
        self.obj = obj
        self.has_dlpack = hasattr(obj, "__dlpack__")
        if not self.has_dlpack and not hasattr(obj, "__cuda_array_interface__"):
            raise BufferError(f"{type(obj).__name__} has neither __dlpack__ nor __cuda_array_interface__")

    def view(self, stream_ptr: object = None) -> StridedMemoryView:
        """Returns a view in the order of the consumer's stream. Thread safety: atomic."""
        return StridedMemoryView(self.obj, stream_ptr)


def args_viewable_as_strided_memory[R](
    arg_indices: tuple[int, ...],
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Makes a function take any array for some of its positional arguments.

    Inside the function such an argument has ``view(stream_ptr)``, which gives a `StridedMemoryView`.

    Parameters
    ----------
    arg_indices : tuple of int
        Positions of the arguments.

    Thread safety: atomic.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> R:
            given = list(args)
            for index in arg_indices:
                given[index] = Viewable(given[index])
            return function(*given, **kwargs)

        return wrapped

    return decorate
