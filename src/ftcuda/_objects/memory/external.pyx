"""Memory that other allocators give."""

from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.support.handles import handle_of
from ftcuda._objects.support.options import integer

# In Cython, although it needs nothing of C: between two steps of Python code a signal's handler may raise
# KeyboardInterrupt, and what was just allocated would be lost.


def address_of(allocated):
    """Returns the address of what an allocator returned."""
    for candidate in (allocated, getattr(allocated, "ptr", None), getattr(allocated, "handle", None)):
        address = handle_of(candidate)
        if address is not None and address > 0:
            return address
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

    def __init__(self, allocate, deallocate=None, *, device_id=0, is_device_accessible=True, is_host_accessible=False,
                 is_stream_ordered=False):
        for name, function in (("allocate", allocate), ("deallocate", deallocate)):
            if not callable(function) and (function is not None or name == "allocate"):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        self._allocate = allocate
        self._deallocate = deallocate
        # In a list of its own each, by address; its own steps are atomic, which is all that is asked of it.
        self._held = {}
        self._device_id = integer(device_id, "device_id")
        if self._device_id < -1:
            raise ValueError(f"device_id must be a device's ordinal, or -1 for host memory, not {device_id}")
        self._device = bool(is_device_accessible)
        self._host = bool(is_host_accessible)
        self._ordered = bool(is_stream_ordered)

    def allocate(self, size, *, stream=None):
        """Allocates a buffer. Thread safety: shared.

        Raises
        ------
        TypeError
            The allocator returned neither an address nor an object that has one.
        """
        if size == 0:
            return Buffer.from_handle(0, 0, mr=self)
        entry, address = [self._allocate(size, stream)], None
        try:
            address = address_of(entry[0])
            self._held[address] = entry
            return Buffer.from_handle(address, size, mr=self, stream=stream)
        except BaseException:
            # A buffer that was made all the same has gone by now, and has given back what it held.
            if address is None or self._held.get(address) is entry:
                self._held.pop(address, None)
                if self._deallocate is not None:
                    self._deallocate(entry[0], size, stream)
            raise

    def deallocate(self, ptr, size, *, stream):
        """Gives memory back; for buffers, which call it once. Thread safety: atomic."""
        entry = self._held.pop(ptr, None)
        if self._deallocate is not None and entry is not None:
            self._deallocate(entry[0], size, stream)

    @property
    def device_id(self):
        """As given. Thread safety: atomic."""
        return self._device_id

    @property
    def is_device_accessible(self):
        """As given. Thread safety: atomic."""
        return self._device

    @property
    def is_host_accessible(self):
        """As given. Thread safety: atomic."""
        return self._host

    @property
    def is_stream_ordered(self):
        """As given. Thread safety: atomic."""
        return self._ordered

    def __repr__(self):
        return f"<{type(self).__name__} of {self._allocate!r}>"
