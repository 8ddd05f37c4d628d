"""Promise 5, for buffers in the memory of others: memory goes when nothing stands in it any more, whoever refers to what."""

import gc
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    ClosedError,
    LaunchConfig,
    LimitingMemoryResource,
    MemoryResource,
    StatisticsMemoryResource,
    StridedMemoryView,
    launch,
)
from ftcuda.memory import wait_for_deallocations
from tests.conftest import simulated_only

ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.thread_unsafe(reason="another thread's call may be the one that lets go, a moment later")


class Blocks(MemoryResource):
    """Gives out device memory, which it frees when it gets it back: the simulated driver sees whether work still uses it."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, upstream, stream, seen):
        self._upstream, self._stream, self._seen, self._live = upstream, stream, seen, {}

    def allocate(self, size, *, stream=None):
        block = self._upstream.allocate(size, stream=self._stream)
        self._live[block.handle] = block
        return Buffer.from_handle(block.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        self._seen.append(size)
        self._live.pop(ptr).close()


class Part(MemoryResource):
    """Gives out parts of one block of another resource."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, block):
        self.block = block

    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(self.block.handle + 16, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        pass


def window(kind, block):
    """A buffer in the memory of `block`, which keeps it in one way or another."""
    address = block.handle
    if kind == "buffer":
        return Buffer.from_handle(address, 64, owner=block)
    if kind == "chain":
        for _ in range(5):
            block = Buffer.from_handle(address, 64, owner=block)
        return block
    if kind == "view":
        return Buffer.from_handle(address, 64, owner=StridedMemoryView.from_buffer(block, (64,), dtype="u1"))
    if kind == "mixture":
        view = StridedMemoryView.from_buffer(Buffer.from_handle(address + 16, 48, owner=block), (48,), dtype="u1")
        return Buffer.from_handle(address + 32, 32, owner=[view])
    if kind == "namespace":  # of which ftcuda knows nothing
        return Buffer.from_handle(address, 64, owner=SimpleNamespace(block=block))
    return Part(block).allocate(32)


KINDS = ["buffer", "chain", "view", "mixture", "namespace", "part"]


def let_go(device, stream, turns=4):
    """The later calls, which let go of what is done, of one after the other."""
    for _ in range(turns):
        device.sync()  # raises if the memory was not there
        stream.record().close()
        wait_for_deallocations()


@simulated_only
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outer", ["resource", "statistics", "owner", "ours"])
def test_a_finalizer_uses_a_window_of_the_same_garbage(device, stream, code, held_clock, kind, outer):
    """In each order in which the collector may end them. Mutant: memory that goes because its own buffer is garbage."""
    store = code.get_kernel("store")

    class User:
        def __del__(self):
            launch(stream, ONE, store, self.window, 1)
            launched.append(self.window)

    class Owner:  # its memory goes with it
        def __init__(self, memory):
            self.memory = memory

    def block_of(upstream):
        if outer == "ours":
            return upstream.allocate(64, stream=stream)
        if outer == "owner":
            owner = Owner(upstream.allocate(64, stream=stream))
            return Buffer.from_handle(owner.memory.handle, 64, owner=owner)
        resource = Blocks(upstream, stream, seen)
        return (StatisticsMemoryResource(resource) if outer == "statistics" else resource).allocate(64)

    for order in permutations(range(3)):
        for resurrects in (False, True):
            seen, launched = [], []
            user, block = User(), block_of(device.memory_resource)
            user.window = window(kind, block)
            held = [(user, user.window, block)[index] for index in order]
            held.append(held)
            with held_clock():
                del user, block, held
                gc.collect()
                assert len(launched) == 1 and seen == []
                if not resurrects:
                    launched.clear()
                gc.collect()
                assert seen == []  # the kernel has still to write
            launched.clear()
            let_go(device, stream)
            gc.collect()
            let_go(device, stream)
            assert seen == ([64] if outer in ("resource", "statistics") else [])


@simulated_only
@pytest.mark.parametrize("kind", ["buffer", "chain", "view"])
def test_a_block_may_be_closed_under_its_windows(device, stream, code, held_clock, kind):
    """`close()` returns at once, and the memory goes with the last window, after the work on it."""
    store, seen = code.get_kernel("store"), []
    other = device.create_stream()
    for upstream in (device.memory_resource, Blocks(device.memory_resource, stream, seen)):
        block = upstream.allocate(64, stream=stream) if upstream is device.memory_resource else upstream.allocate(64)
        piece = window(kind, block)
        stream.sync()
        block.close()
        assert block.is_closed and not piece.is_closed
        with held_clock():
            launch(other, ONE, store, piece, 7)
            del block, piece
            gc.collect()
            wait_for_deallocations()
            assert seen == []
        let_go(device, other)
    assert seen == [64]
    other.close()


def test_deallocate_may_free_the_block_that_the_buffer_lay_in(device, stream):
    """And have its memory again at once. Mutant: the window is open until `deallocate` has returned."""

    class Nested(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def __init__(self):
            self.upstream = LimitingMemoryResource(device.memory_resource, allocation_limit=64)
            self.again = 0

        def allocate(self, size, *, stream):
            self.block = self.upstream.allocate(64, stream=stream)
            return Buffer.from_handle(self.block.handle, size, mr=self, stream=stream)

        def deallocate(self, ptr, size, *, stream):
            self.block.close()
            self.upstream.allocate(64, stream=stream).close()
            self.again += 1

    resource = Nested()
    resource.allocate(64, stream=stream).close()
    resource.allocate(64, stream=stream)
    wait_for_deallocations()
    assert resource.again == 2


@pytest.mark.parametrize("way", ["close", "drop", "cycle"])
def test_windows_that_follow_each_other_end_one_by_one(pinned, way):
    """Each is made before the last one ends, as in a loop that wraps an array. Mutant: each waits for all that came after it,
    so that none ends while one is open."""
    memory, array = pinned(np.zeros(64, np.uint8))
    address, alive = array.ctypes.data, []

    class Owner:
        def __init__(self):
            alive.append(1)

        def __del__(self):
            alive.pop()

    window = Buffer.from_handle(address, 64, owner=Owner())
    for number in range(200):
        newer = Buffer.from_handle(address, 64, owner=Owner())
        if way == "close":
            window.close()
        elif way == "cycle":
            cycle = [window]
            cycle.append(cycle)
            del cycle
            if number % 20 == 0:
                window = None
                gc.collect()
                wait_for_deallocations()
                assert len(alive) <= 2
        window = newer
        assert way == "cycle" or len(alive) <= 2
    del newer
    gc.collect()
    wait_for_deallocations()
    assert len(alive) == 1
    window.close()
    assert alive == []


@pytest.mark.parametrize("then", ["dropped", "closed"])
def test_what_is_collected_waits_for_no_open_window(pinned, then):
    """A window that is used on was no garbage, and keeps nothing that the collection ended. Mutant: the memory is given back
    when the window is closed."""
    memory, array = pinned(np.zeros(64, np.uint8))
    ended = []

    class Lent(MemoryResource):  # an owner's finalizer would say nothing: the collector calls it too
        is_device_accessible, is_host_accessible, device_id = True, True, 0

        def deallocate(self, ptr, size, *, stream):
            ended.append(1)

    old = Buffer.from_handle(array.ctypes.data, 64, mr=Lent())
    newer = Buffer.from_handle(array.ctypes.data, 64, owner=ended)
    cycle = [old]
    cycle.append(cycle)
    del old, cycle
    gc.collect()
    wait_for_deallocations()
    assert ended == [1] and not newer.is_closed
    if then == "closed":
        newer.close()


def test_memory_of_a_closed_buffer_is_not_wrapped(device, stream):
    """Mutant: a window in memory that is freed already."""
    block = device.allocate(64, stream=stream)
    address, view = block.handle, StridedMemoryView.from_buffer(block, (64,), dtype="u1")
    block.close()
    for owner in (block, view):
        with pytest.raises(ClosedError, match="cannot wrap memory of"):
            Buffer.from_handle(address, 64, owner=owner)
