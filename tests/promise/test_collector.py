"""Promise 8: what the garbage collector clears, late and in other threads, is not what memory, owners and hooks hang on."""

import gc
import os
import queue
import time
import weakref
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    CUDAError,
    Device,
    ExternalMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    StatisticsMemoryResource,
    StridedMemoryView,
    launch,
)
from ftcuda.memory import hooks, wait_for_deallocations
from ftcuda.testing import faults, together
from tests.conftest import simulated_only

ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.thread_unsafe(reason="another thread's call may be the one that lets go, a moment later")
SECONDS = float(os.environ.get("FTCUDA_COLLECTOR_SECONDS", "2"))


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self, *held):
        self.held = held
        self.itself = self


def test_an_export_in_a_cycle():
    """Mutant: an export that finds its buffer through the view, which the collector has cleared."""
    for _ in range(20):
        pinned = LegacyPinnedMemoryResource().allocate(64)
        np.frombuffer(pinned, np.uint8)[:] = 7
        Cycle(StridedMemoryView.from_cuda_array_interface(pinned), pinned, np.from_dlpack(pinned), memoryview(pinned))
        del pinned
    gc.collect()  # the fixture sees that nothing is left


def test_what_finalizers_read_is_still_there(pinned):
    """Of a cycle everything ends at once, and `__del__` of one object may read what another one of ours shares."""
    seen = []

    class Reader(Cycle):
        def __del__(self):
            seen.append(bytes(self.held[0]))

    for _ in range(10):
        buffer, _ = pinned(np.arange(16, dtype=np.uint8))
        Reader(np.asarray(buffer), buffer)
        Reader(np.from_dlpack(buffer), StridedMemoryView(buffer))
    del buffer
    gc.collect()
    assert len(seen) >= 18 and set(seen) == {bytes(range(16))}


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
@pytest.mark.parametrize("knows_the_buffer", [False, True])
def test_an_owner_in_a_cycle_outlives_the_last_use(device, stream, code, held_clock, pinned, knows_the_buffer):
    """Mutant: an owner that the collector clears, or that is let go of when the buffer is, whatever still runs."""

    class Owner:
        def __init__(self):
            self.memory = device.allocate(4, stream=stream)

    owner = Owner()
    memory = weakref.ref(owner.memory)
    buffer = Buffer.from_handle(owner.memory.handle, 4, owner=owner)
    alive = weakref.ref(owner)
    if knows_the_buffer:
        owner.buffer = buffer
    with held_clock():
        launch(stream, ONE, code.get_kernel("store"), buffer, 5)
        Cycle(buffer)
        del owner, buffer
        gc.collect()
        assert alive() is not None and not memory().is_closed  # the kernel has still to write
    stream.sync()
    device.sync()  # lets go
    gc.collect()
    assert alive() is None and memory() is None


@pytest.mark.parametrize("closes", [False, True])
def test_closing_lets_go_of_the_owner(stream, pinned, closes):
    host, _ = pinned(np.zeros(4, np.uint8))

    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    buffer = Buffer.from_handle(host.handle, 4, owner=owner)
    del owner
    assert buffer.owner is alive()
    buffer.fill(1, stream=stream)
    stream.sync()
    if closes:
        buffer.close()
        assert buffer.owner is None
    else:
        del buffer
    assert alive() is None


def test_a_chain_of_owners_may_be_longer_than_the_stack(run_python):
    """Each buffer keeps the one before, as windows on windows do. Each let go of the next on the stack, to its end."""
    said = run_python(
        """
import threading, weakref
from ftcuda import Buffer, Device, LegacyPinnedMemoryResource
Device(0).set_current()
memory = LegacyPinnedMemoryResource().allocate(64)
class Root:
    pass
def drop_chain():
    last = root = Root()
    alive.append(weakref.ref(root))
    del root
    for _ in range(20_000):
        last = Buffer.from_handle(memory.handle, 64, owner=last)
alive = []
threading.stack_size(1 << 21)
thread = threading.Thread(target=drop_chain)
thread.start()
thread.join()
print(alive[0]())
"""
    )
    assert said == "None\n"


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock, and plans a fault")
def test_a_copy_that_failed_half_way_keeps_the_owner(device, stream, held_clock):
    """It goes in pieces of 4 MiB, of which the device may still have one to do."""
    memory = device.allocate(8 << 20, stream=stream)

    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    buffer = Buffer.from_handle(memory.handle, memory.size, owner=owner)
    stream.sync()
    with held_clock():
        with faults.failing("cuMemcpyAsync", 999, nth=2), pytest.raises(CUDAError, match="CUDA_ERROR_UNKNOWN"):
            buffer.copy_from(np.ones(8 << 20, "u1"), stream=stream)
        del owner, buffer
        gc.collect()
        assert alive() is not None
    stream.sync()
    device.sync()
    gc.collect()
    assert alive() is None


class Recorder(MemoryResource):
    """Pinned memory, by a resource that is written as users write theirs."""

    device_id, is_device_accessible, is_host_accessible = -1, True, True

    def __init__(self, stream_ordered=False):
        self.device = Device(0)
        self.is_stream_ordered = stream_ordered
        self.memory, self.freed, self.given_back = {}, [], []

    def allocate(self, size, *, stream=None):
        memory = LegacyPinnedMemoryResource().allocate(size)
        self.memory[memory.handle] = memory
        return Buffer.from_handle(memory.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        self.given_back.append(self.memory.pop(ptr))
        self.freed.append((size, stream))
        if not self.is_stream_ordered:
            self.given_back.clear()


def test_a_resource_in_python_gets_its_memory_when_the_buffer_goes(device, stream):
    """By a call of `deallocate` with a stream that is open, soon. Mutant: it waits for somebody's next call."""
    other, third = device.create_stream(), device.create_stream()
    resource = Recorder()
    resource.allocate(8, stream=stream).close()
    resource.allocate(16, stream=stream).close(other)
    dropped = resource.allocate(24, stream=third)
    third.close()
    del dropped
    in_cycle = resource.allocate(32, stream=stream)
    in_cycle.fill(1, stream=stream)
    stream.sync()
    Cycle(in_cycle)
    resource.own = in_cycle  # a cycle through the resource, too
    resource.own = None
    del in_cycle
    wait_for_deallocations()
    assert resource.freed[:3] == [(8, stream), (16, other), (24, device.default_stream)]
    gc.collect()
    wait_for_deallocations()
    assert resource.freed[3:] == [(32, stream)] and not resource.memory
    other.close()


class Blocks(MemoryResource):
    """Gives out blocks of its own, as the guide's resource does, and looks at them when they come back."""

    is_device_accessible = is_host_accessible = True
    device_id = -1

    def __init__(self, seen):
        self._memory, self._live, self._seen = LegacyPinnedMemoryResource(), {}, seen

    def allocate(self, size, *, stream=None):
        block = self._memory.allocate(size)
        self._live[block.handle] = block
        return Buffer.from_handle(block.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        block = self._live.pop(ptr)
        self._seen.append(block.is_closed)
        block.close()


def test_deallocate_finds_its_blocks_open():
    """A resource, its blocks and its buffers end in one collection. Mutant: blocks that their own finalizers close."""
    seen = []
    for _ in range(10):
        resource = Blocks(seen)
        Cycle(resource, [resource.allocate(64) for _ in range(5)])
    del resource
    gc.collect()
    wait_for_deallocations()
    assert seen == [False] * 50


def borrow(kind, seen):
    """Something that kernels take, in memory that something else holds; and what must be garbage with it."""
    resource = Blocks(seen)
    if kind == "resource":
        return resource.allocate(64), resource
    if kind == "statistics":
        resource = StatisticsMemoryResource(resource)
        return resource.allocate(64), resource
    memory = LegacyPinnedMemoryResource().allocate(64)
    if kind == "owner":
        return Buffer.from_handle(memory.handle, 64, owner=memory), memory
    if kind == "interface":
        return StridedMemoryView(SimpleNamespace(__cuda_array_interface__=memory.__cuda_array_interface__, memory=memory), -1), memory
    resource = ExternalMemoryResource(
        lambda size, stream: memory, lambda held, size, stream: held.close(), device_id=-1, is_host_accessible=True
    )
    return resource.allocate(64), resource


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
@pytest.mark.parametrize("kind", ["owner", "resource", "statistics", "interface", "external"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_finalizer_may_use_what_ends_with_it(device, stream, code, held_clock, kind, order):
    """The collector calls the finalizers of all that it found, in its own order. Mutant: memory that goes in a finalizer, under
    a kernel that another finalizer has just launched."""
    store, seen, launched = code.get_kernel("store"), [], []

    class User:
        def __del__(self):
            launch(stream, ONE, store, self.array, 1)
            launched.append(1)

    def make():
        user = User()
        user.array, held = borrow(kind, seen)
        Cycle(*((user, user.array, held)[index] for index in order))

    with held_clock():
        make()
        gc.collect()
        assert launched == [1] and seen == []
    for _ in range(3):  # later calls, which let go of the buffer, and then of its memory
        device.sync()  # raises if the memory was not there
        stream.record().close()
        wait_for_deallocations()
    assert seen == ([False] if kind in ("resource", "statistics") else [])


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_what_is_collected_is_given_back_though_its_stream_is_busy(device, stream, held_clock):
    """Its own work is done. Mutant: the memory waits for work that has nothing to do with it."""
    resource = Recorder()
    buffer, other = resource.allocate(8, stream=stream), device.allocate(8, stream=stream)
    buffer.fill(1, stream=stream)
    stream.sync()
    with held_clock():
        other.fill(1, stream=stream)
        del buffer
        wait_for_deallocations()
        assert resource.freed == [(8, stream)]
    other.close()


def test_the_collector_sees_an_owner_until_the_buffer_is_closed(pinned):
    """Mutant: it still counts a reference to the owner, or to what is in its place by now, when the buffer has none."""
    memory, _ = pinned(np.zeros(64, np.uint8))
    owner = SimpleNamespace()
    buffer = Buffer.from_handle(memory.handle, 64, owner=owner)
    holders = [each for each in gc.get_referents(buffer) if any(held is owner for held in gc.get_referents(each))]
    assert len(holders) == 1
    del holders
    buffer.close()
    assert not any(held is owner for each in gc.get_referents(buffer) for held in gc.get_referents(each))


def test_a_resource_and_its_buffers_in_a_cycle(stream):
    resource = Recorder()
    freed = resource.freed
    resource.buffers = [resource.allocate(size, stream=stream) for size in (1, 2, 3)]
    gone = weakref.ref(resource)
    del resource
    gc.collect()
    wait_for_deallocations()
    assert sorted(size for size, _ in freed) == [1, 2, 3]
    gc.collect()
    assert gone() is None


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_a_stream_ordered_resource_is_asked_at_once(device, stream, held_clock):
    """The stream waits for the work of others; memory that knows no streams is given back when that is done."""
    other = device.create_stream()
    at_once, later = Recorder(stream_ordered=True), Recorder()
    with held_clock():
        for resource in (at_once, later):
            buffer = resource.allocate(8, stream=stream)
            buffer.fill(1, stream=other)
            buffer.close(stream)
        assert at_once.freed == [(8, stream)] and later.freed == []
        assert not stream.is_done  # it waits for `other`
    device.sync()
    wait_for_deallocations()
    assert later.freed == [(8, stream)]
    at_once.given_back.clear()
    other.close()


def test_exceptions_of_deallocate_reach_nobody(stream, monkeypatch):
    """Not even a KeyboardInterrupt. Mutant: it ends a call that has nothing to do with it."""
    caught = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: caught.append(type(report.exc_value)))

    class Unwell(Recorder):
        def deallocate(self, ptr, size, *, stream):
            super().deallocate(ptr, size, stream=stream)
            raise self.error

    for Unwell.error in (KeyboardInterrupt, SystemExit, ValueError):
        resource = Unwell()
        resource.allocate(8, stream=stream).close()
        buffer = resource.allocate(8, stream=stream)
        del buffer
        wait_for_deallocations()
        assert len(resource.freed) == 2
    stream.sync()
    assert caught == [KeyboardInterrupt] * 2 + [SystemExit] * 2 + [ValueError] * 2


def elsewhere(make, check, seconds=SECONDS):
    """One thread makes, another one drops, a third one collects meanwhile; the number of what was made."""
    handed, dropped = queue.SimpleQueue(), queue.SimpleQueue()
    made = 0

    def work(index):
        nonlocal made
        until = time.monotonic() + seconds
        if index == 0:
            while time.monotonic() < until:
                if handed.qsize() < 4:
                    handed.put(make(made))
                    made += 1
            handed.put(None)
        elif index == 1:
            while (thing := handed.get()) is not None:
                check(thing)
                thing = None
                dropped.put(True)
            dropped.put(False)
        else:
            while dropped.get():
                while not dropped.empty():  # one collection for all that went meanwhile: it may take longer than they did
                    if not dropped.get():
                        return
                gc.collect()

    together(3, work, timeout=seconds + 60)
    gc.collect()
    return made


@pytest.mark.thread_unsafe(reason="collects all the time")
def test_exports_made_here_and_dropped_there():
    """The exports of one thread, dropped by another, collected by a third. Mutant: as in a cycle."""
    resource = LegacyPinnedMemoryResource()

    def make(number):
        buffer = resource.allocate(64)
        np.frombuffer(buffer, np.int64)[:] = number
        return number, np.from_dlpack(buffer), StridedMemoryView.from_cuda_array_interface(buffer), np.asarray(buffer)

    def check(thing):
        number, exported, view, shared = thing
        assert (exported.view(np.int64) == number).all() and (shared.view(np.int64) == number).all()
        assert (np.from_dlpack(view).view(np.int64) == number).all()

    assert elsewhere(make, check) > 20


@pytest.mark.thread_unsafe(reason="collects all the time")
def test_owners_made_here_and_dropped_there(device, code, stream):
    """Owners whose memory goes with them, dropped while kernels write it. The simulated driver reports a use of freed memory."""
    increment = code.get_kernel("increment")
    streams = [device.create_stream() for _ in range(2)]

    class Owner:
        def __init__(self):
            self.memory = device.allocate(4, stream=stream)
            self.memory.fill(0, stream=stream)

    def make(number):
        owner = Owner()
        buffer = Buffer.from_handle(owner.memory.handle, 4, owner=owner)
        for each in streams:
            each.wait(stream)
            launch(each, ONE, increment, buffer)
        if number % 3 == 0:
            owner.buffer = buffer
        return buffer

    def check(buffer):
        launch(streams[0], ONE, increment, buffer)

    assert elsewhere(make, check) > 20
    device.sync()
    gc.collect()
    for each in streams:
        each.close()


@pytest.mark.thread_unsafe(reason="its hook hears of the frees of all threads")
def test_hooks_know_the_resource_of_what_was_dropped_there():
    """Mutant: hooks that run when the collector has cleared the buffer, and so know of no resource."""
    resource = LegacyPinnedMemoryResource()
    freed, strangers = [], []
    with hooks.on_free(freed.append, memory_resource=resource), hooks.on_free(
        lambda allocation: strangers.append(allocation) if allocation.memory_resource is None else None
    ):
        made = elsewhere(lambda number: Cycle(resource.allocate(8)) if number % 2 else resource.allocate(8), lambda thing: None)
        gc.collect()
        wait_for_deallocations()
    assert len(freed) == made and strangers == []
    assert all(each.memory_resource is resource and each.size == 8 for each in freed)


@simulated_only
def test_a_foreign_stream_outlives_its_last_use(device, stream):
    """Mutant: the owner destroys the stream while a buffer still has to be freed after its work."""

    class Owner:
        def __init__(self):
            self.stream = device.create_stream()

        def __cuda_stream__(self):
            return 0, self.stream.handle

    owner = Owner()
    alive = weakref.ref(owner)
    wrapped = device.create_stream(owner)
    buffer = device.allocate(64, stream=stream)
    buffer.fill(1, stream=wrapped)
    del owner, wrapped
    gc.collect()
    assert alive() is not None
    buffer.close()
    device.sync()
    gc.collect()
    assert alive() is None
