"""Promise 5, for buffers in the memory of others: memory goes when nothing stands in it any more, whoever refers to what."""

import gc
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    LaunchConfig,
    LegacyPinnedMemoryResource,
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
    """In each order in which the collector may end them. Sabotage: memory that goes because its own buffer is garbage."""
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
@pytest.mark.parametrize("kind", KINDS)
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


class Marked(MemoryResource):
    """Notes where the memory lay that it got back."""

    is_device_accessible = is_host_accessible = True
    device_id = -1

    def __init__(self, first):
        self.first, self.seen = first, []

    def at(self, offset, size):
        return Buffer.from_handle(self.first + offset, size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        self.seen.append(ptr - self.first)


def test_windows_of_others_do_not_count(device, stream):
    """What was there before, or ends before the block begins, or begins behind it. Sabotage: any window at all."""
    host = LegacyPinnedMemoryResource().allocate(256)
    resource = Marked(host.handle)
    seen = resource.seen
    whole = Buffer.from_handle(host.handle, 256, owner=host)
    older = Buffer.from_handle(host.handle + 100, 8, owner=SimpleNamespace())
    before, block, behind = (resource.at(offset, 64) for offset in (0, 64, 128))
    empty = Buffer.from_handle(host.handle + 64, 0, owner=host)
    block.close()
    assert seen == [64]
    inside = Buffer.from_handle(host.handle + 191, 8, owner=host)  # begins in the last byte of `behind`
    behind.close()
    before.close()
    assert seen == [64, 0]
    inside.close()
    wait_for_deallocations()
    assert seen == [64, 0, 128]
    for each in (whole, empty, older):
        each.close()


def test_each_window_counts(pinned):
    """Two in one buffer, one in two buffers, one behind an older one, one that comes late. Sabotage: who waits for a window
    goes with that one, though others stand there too; or is not told, or waits for what was opened after it was closed."""
    memory, array = pinned(np.zeros(256, np.uint8))
    resource = Marked(array.ctypes.data)
    older = Buffer.from_handle(resource.first + 8, 8, owner=SimpleNamespace())
    block = resource.at(0, 64)
    first, second = (Buffer.from_handle(resource.first + at, 8, owner=SimpleNamespace()) for at in (16, 24))
    block.close()
    late = Buffer.from_handle(resource.first + 32, 8, owner=SimpleNamespace())
    first.close()
    wait_for_deallocations()
    assert resource.seen == []
    second.close()
    wait_for_deallocations()
    assert resource.seen == [0]
    upper = resource.at(150, 100)
    lower = resource.at(100, 100)
    shared = Buffer.from_handle(resource.first + 160, 8, owner=SimpleNamespace())
    upper.close()
    lower.close()
    wait_for_deallocations()
    assert resource.seen == [0]
    shared.close()
    wait_for_deallocations()
    assert sorted(resource.seen) == [0, 100, 150]
    older.close()
    late.close()


def test_deallocate_may_free_the_block_that_the_buffer_lay_in(device, stream):
    """And have its memory again at once. Sabotage: the window is open until `deallocate` has returned."""

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


def test_the_memory_of_our_own_waits_for_windows(device, stream):
    """Also across the pieces of memory that windows are counted in. Sabotage: only the first piece is looked at."""
    size = 9 << 20
    block = device.allocate(size, stream=stream)
    statistics = device.memory_resource.statistics
    far = Buffer.from_handle(block.handle + size - 1, 1, owner=SimpleNamespace())
    block.close()
    assert device.memory_resource.statistics.in_use_count == statistics.in_use_count
    far.close()
    assert device.memory_resource.statistics.in_use_count == statistics.in_use_count - 1


def test_large_memory_waits_for_windows_in_each_of_its_pieces(device):
    """Sabotage: not all of the maps are looked at that windows in more than 128 MiB are in."""
    piece = 2 << 20
    resource = StatisticsMemoryResource(device.memory_resource)
    for number in (0, 1, 31, 62, 63, 64, 65):
        block = resource.allocate(66 * piece)
        window = Buffer.from_handle(block.handle + number * piece, 1, owner=SimpleNamespace())
        block.close()
        assert resource.statistics.current_count == 1, number
        window.close()
        assert resource.statistics.current_count == 0, number


def test_thousands_of_windows_end_in_any_order(pinned):
    """Each stands in the one before it. Sabotage: those who wait are looked through one by one."""
    memory, _ = pinned(np.zeros(64, np.uint8))
    random = np.random.default_rng(1)
    gone = []

    class Owner:
        def __del__(self):
            gone.append(1)

    windows = [Buffer.from_handle(memory.handle, 64, owner=Owner()) for _ in range(20_000)]
    for index in random.permutation(len(windows)):
        windows[index].close()
    wait_for_deallocations()
    assert len(gone) == len(windows)
