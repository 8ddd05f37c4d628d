"""Memory that other allocators give."""

from collections.abc import Callable
from typing import Any

from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.memory import MemoryResource


def address_of(allocated: object) -> int:
    """Returns the address of what an allocator returned."""
    for candidate in (allocated, getattr(allocated, "ptr", None), getattr(allocated, "handle", None)):
        if isinstance(candidate, int) and not isinstance(candidate, bool) and candidate > 0:
            return candidate
    raise TypeError(f"an allocator must return an address or an object with ptr or handle, not {allocated!r}")


class ExternalMemoryResource(MemoryResource):
    """Memory from another library's allocator, such as RMM's or numba's.

    Parameters
    ----------
    allocate : callable
        ``allocate(size, stream)``, with bytes and a `Stream` or None. Returns the address, or an object that holds the
        memory and has it as ``ptr`` or ``handle``.
    deallocate : callable, optional
        ``deallocate(allocated, size, stream)``, with what `allocate` returned: called once for each buffer, when it was
        closed or collected and the work submitted with it is done (`Buffer.from_handle`). What it raises goes to
        `sys.unraisablehook`. None lets the object go instead.
    device_id : int
        Ordinal of the device; -1 for host memory.
    is_device_accessible, is_host_accessible : bool
        Who may touch the memory.
    is_stream_ordered : bool
        Whether `deallocate` frees in the order of the stream it is given, so that it need not wait for work.

    Thread safety: as far as `allocate` and `deallocate` may be called by any number of threads.
    """

    def __init__(
        self,
        allocate: Callable[..., Any],
        deallocate: Callable[..., object] | None = None,
        *,
        device_id: int = 0,
        is_device_accessible: bool = True,
        is_host_accessible: bool = False,
        is_stream_ordered: bool = False,
    ) -> None:
        for name, function in (("allocate", allocate), ("deallocate", deallocate)):
            if not callable(function) and (function is not None or name == "allocate"):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        self._allocate = allocate
        self._deallocate = deallocate
        self._held: dict[int, object] = {}  # by address; its own steps are atomic, which is all that is asked of it
        self._device_id = device_id
        self._device = bool(is_device_accessible)
        self._host = bool(is_host_accessible)
        self._ordered = bool(is_stream_ordered)

    def allocate(self, size: int, *, stream: object = None) -> Buffer:
        """Allocates a buffer. Thread safety: shared.

        Raises
        ------
        TypeError
            The allocator returned neither an address nor an object that has one.
        """
        if size == 0:
            return Buffer.from_handle(0, 0, mr=self)
        allocated = self._allocate(size, stream)
        try:
            address = address_of(allocated)
            self._held[address] = allocated
            return Buffer.from_handle(address, size, mr=self, stream=stream)
        except BaseException:
            if self._deallocate is not None:
                self._deallocate(allocated, size, stream)
            raise

    def deallocate(self, ptr: int, size: int, *, stream: object) -> None:
        """Gives memory back; for buffers, which call it once. Thread safety: atomic."""
        allocated = self._held.pop(ptr, None)
        if self._deallocate is not None and allocated is not None:
            self._deallocate(allocated, size, stream)

    @property
    def device_id(self) -> int:
        """As given. Thread safety: atomic."""
        return self._device_id

    @property
    def is_device_accessible(self) -> bool:
        """As given. Thread safety: atomic."""
        return self._device

    @property
    def is_host_accessible(self) -> bool:
        """As given. Thread safety: atomic."""
        return self._host

    @property
    def is_stream_ordered(self) -> bool:
        """As given. Thread safety: atomic."""
        return self._ordered

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._allocate!r}>"
