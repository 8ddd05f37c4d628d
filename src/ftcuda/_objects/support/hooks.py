"""Hooks on allocations and frees."""

from collections.abc import Callable
from dataclasses import dataclass

from ftcuda._objects.support.deferred_release import run_contained


@dataclass(frozen=True)
class Allocation:
    """What a hook is told. Constant.

    Attributes
    ----------
    handle : int
        Address.
    size : int
        Bytes.
    memory_resource : MemoryResource
        As the buffer's. One that is written in Python is named itself, also behind one that counts or limits.
    stream : Stream or None
        What `allocate` or `close` was given.
    """

    handle: int
    size: int
    memory_resource: object
    stream: object


type Function = Callable[[Allocation], object]


class Hook:
    """A registered function. A context manager that removes it at the end.

    Thread safety: atomic. Calls in progress in other threads complete.
    """

    __slots__ = ("_among", "_function", "_memory_resource", "_stream")

    def __init__(self, among: "dict[Hook, None]", function: Function, memory_resource: object, stream: object) -> None:
        if not callable(function):
            raise TypeError(f"a hook must be callable, not {type(function).__name__}")
        if memory_resource is not None and not hasattr(memory_resource, "allocate"):
            raise TypeError(f"memory_resource must be a memory resource, not {type(memory_resource).__name__}")
        if not (stream is None or hasattr(stream, "__cuda_stream__")):
            raise TypeError(f"stream must be a Stream or have __cuda_stream__, not {type(stream).__name__}")
        self._among = among
        self._function = function
        self._memory_resource = memory_resource
        self._stream = stream
        among[self] = None

    def remove(self) -> None:
        """Calls the function no more. Idempotent. Thread safety: atomic."""
        self._among.pop(self, None)

    def __enter__(self) -> "Hook":
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __call__(self, allocation: Allocation) -> None:
        """Calls the function, unless the allocation is not what the hook was registered for."""
        if self._memory_resource is not None and allocation.memory_resource is not self._memory_resource:
            return
        if self._stream is not None and allocation.stream != self._stream:
            return
        run_contained(self._function, allocation)


# Each a set of hooks in the order of registration. A dict's own steps are atomic, which is all that is asked of them.
ALLOCATED: dict[Hook, None] = {}
FREED: dict[Hook, None] = {}


def on_allocate(function: Function, *, memory_resource: object = None, stream: object = None) -> Hook:
    """Calls `function` with an `Allocation` after every successful allocation.

    Memory of a resource that is written in Python counts as allocated when it is wrapped, by ``Buffer.from_handle(...,
    mr=resource)``; memory of nobody's resource is neither allocated nor freed here.

    Parameters
    ----------
    function : callable
        Called in the allocating thread. What it raises goes to `sys.unraisablehook` and disturbs nobody.
    memory_resource : MemoryResource, optional
        Only its allocations.
    stream : Stream, optional
        Only allocations in its order.

    Returns
    -------
    Hook

    Thread safety: atomic.
    """
    return Hook(ALLOCATED, function, memory_resource, stream)


def on_free(function: Function, *, memory_resource: object = None, stream: object = None) -> Hook:
    """Calls `function` with an `Allocation` once for every buffer of a resource that is closed or collected.

    The free itself is in stream order: the memory may be in use by submitted work when the hook runs. No other
    allocation has the address before.

    Parameters
    ----------
    function : callable
        Called in the thread that closes, before `close` returns; for what is dropped, soon, in a thread of ftcuda's. It
        may take a lock (see docs/guide/allocators.md). What it raises goes to `sys.unraisablehook`.
    memory_resource : MemoryResource, optional
        Only its buffers.
    stream : Stream, optional
        Only frees with this stream given to `close`.

    Returns
    -------
    Hook

    Thread safety: atomic.
    """
    return Hook(FREED, function, memory_resource, stream)


def announce(hooks: dict[Hook, None], handle: int, size: int, memory_resource: object, stream: object) -> None:
    """Calls `hooks`, a copy of which is taken in one step."""
    allocation = Allocation(handle, size, memory_resource, stream)
    for hook in list(hooks):
        hook(allocation)
