"""Resources around resources, resources written in Python, hooks, and buffers in pairs."""

import gc
import sys

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    ExternalMemoryResource,
    HostDeviceBuffer,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    MemoryResource,
    OutOfMemoryError,
    StatisticsMemoryResource,
    SynchronousMemoryResource,
    TrackingMemoryResource,
)
from ftcuda.memory import hooks, wait_for_deallocations
from ftcuda.testing import together


class PinnedAllocator(MemoryResource):
    """A resource as a user writes one: host memory of its own, and notes of what it was told."""

    is_device_accessible = True
    is_host_accessible = True
    device_id = -1

    def __init__(self, give=lambda size: size, fail=False):
        self.memory = LegacyPinnedMemoryResource()
        self.live, self.freed = {}, []
        self.give, self.fail = give, fail

    def allocate(self, size, *, stream=None):
        buffer = self.memory.allocate(max(size, 1))
        self.live[buffer.handle] = buffer
        return Buffer.from_handle(buffer.handle, self.give(size), mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        self.freed.append((size, stream))
        self.live.pop(ptr).close()
        if self.fail:
            raise RuntimeError("the allocator is unwell")


class Forgetful(PinnedAllocator):
    def allocate(self, size, *, stream=None):
        super().allocate(size, stream=stream).close()


@pytest.fixture
def unraisable(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(str(args.exc_value)))
    return seen


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_a_resource_in_python(device, stream, saxpy):
    resource = PinnedAllocator()
    with resource.allocate(64, stream=stream) as buffer:
        assert buffer.memory_resource is resource and buffer.is_host_accessible and buffer.device_id == -1
        np.frombuffer(buffer, "u1")[:] = 3
        assert buffer.copy_to(stream=stream).memory_resource is resource
    gc.collect()
    device.sync()
    wait_for_deallocations()
    assert resource.freed == [(64, stream)] * 2 and not resource.live


def close_while_used(resource, device, stream, held_clock):
    """The memory is given back once, when the work with it is done."""
    target = resource.allocate(64)
    with held_clock():
        target.fill(7, stream=stream)
        target.close()
        assert resource.freed == []
    device.sync()
    wait_for_deallocations()
    assert [size for size, _ in resource.freed] == [64]


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_memory_is_given_back_after_the_work(device, stream, held_clock):
    resource = PinnedAllocator()
    close_while_used(resource, device, stream, held_clock)


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_memory_counts_until_it_is_given_back(device, stream, held_clock):
    """Mutant: a buffer that counts until it is closed. The limit then admits more than there is."""
    resource = PinnedAllocator()
    limited = LimitingMemoryResource(StatisticsMemoryResource(resource), allocation_limit=64)
    target = limited.allocate(64)
    with held_clock():
        target.fill(7, stream=stream)
        target.close()
        assert resource.freed == [] and limited.statistics.current_bytes == 64
        with pytest.raises(OutOfMemoryError):
            limited.allocate(1)
    device.sync()
    wait_for_deallocations()
    assert [size for size, _ in resource.freed] == [64]
    assert limited.statistics.current_bytes == limited.upstream.statistics.current_bytes == 0
    limited.allocate(64).close()


@pytest.mark.thread_unsafe(reason="replaces sys.unraisablehook")
def test_exceptions_of_an_allocator_are_contained(device, stream, unraisable):
    resource = PinnedAllocator(fail=True)
    resource.allocate(16, stream=stream).close()
    device.sync()
    assert unraisable == ["the allocator is unwell"]


@pytest.mark.thread_unsafe(reason="replaces sys.unraisablehook")
def test_a_resource_that_cannot_say_how_it_frees(device, stream, held_clock, unraisable):
    """Mutant: its exception comes out of close(), and the memory is never given back."""

    class Unwell(PinnedAllocator):
        @property
        def is_stream_ordered(self):
            raise ZeroDivisionError("the answer is unwell")

    resource = Unwell()
    close_while_used(resource, device, stream, held_clock)
    assert unraisable == ["the answer is unwell"]


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_wrong_sizes_are_refused(device, stream):
    resource = PinnedAllocator(give=lambda size: size // 2)
    for wrapped in (StatisticsMemoryResource(resource), TrackingMemoryResource(resource)):
        with pytest.raises(ValueError, match="asked for 16 bytes and returned 8"):
            wrapped.allocate(16, stream=stream)
    usual = device.memory_resource
    device.memory_resource = resource
    try:
        with pytest.raises(ValueError, match="asked for 16 bytes and returned 8"):
            device.allocate(16, stream=stream)
    finally:
        device.memory_resource = usual
    device.sync()
    assert not resource.live
    assert StatisticsMemoryResource(resource).statistics.total_count == 0

    class Wrong(PinnedAllocator):
        def allocate(self, size, *, stream=None):
            return size

    with pytest.raises(TypeError, match="must return a Buffer"):
        StatisticsMemoryResource(Wrong()).allocate(16, stream=stream)


def test_what_a_resource_in_python_must_define():
    class Bare(MemoryResource):
        pass

    for what in ("allocate", "device_id", "is_host_accessible", "handle"):
        with pytest.raises(NotImplementedError, match="Bare"):
            value = getattr(Bare(), what)
            value(8)
    with pytest.raises(TypeError, match="deallocate"):
        Buffer.from_handle(4096, 8, mr=object())
    with pytest.raises(ValueError, match="not both"):
        Buffer.from_handle(4096, 8, mr=PinnedAllocator(), owner=object())


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_allocators_of_other_libraries(device, stream):
    memory = LegacyPinnedMemoryResource()
    given_back = []

    class Block:
        def __init__(self, size):
            self.buffer = memory.allocate(size)
            self.ptr = self.buffer.handle

    by_object = ExternalMemoryResource(lambda size, _: Block(size), device_id=-1, is_host_accessible=True)
    by_call = ExternalMemoryResource(
        lambda size, _: Block(size),
        lambda block, size, _: given_back.append((block.ptr, size)),
        is_host_accessible=True,
    )
    for resource in (by_object, by_call):
        with resource.allocate(32, stream=stream) as buffer:
            buffer.fill(1, stream=stream)
            stream.sync()
            assert bytes(memoryview(buffer)) == b"\1" * 32
            handle = buffer.handle
        device.sync()
        assert resource.allocate(0).handle == 0
    device.sync()
    assert given_back == [(handle, 32)]
    of_numpy = ExternalMemoryResource(lambda size, _: np.int64(handle), device_id=-1)
    assert of_numpy.allocate(8).handle == handle
    with pytest.raises(TypeError, match="must return an address"):
        ExternalMemoryResource(lambda size, _: "here").allocate(8)
    with pytest.raises(ValueError, match="ordinal, or -1 for host memory, not -7"):
        ExternalMemoryResource(lambda size, _: 64, device_id=-7)
    with pytest.raises(TypeError, match="must be callable"):
        ExternalMemoryResource(7)


def test_statistics(device, stream):
    resource = StatisticsMemoryResource(device.memory_resource)
    first = resource.allocate(100, stream=stream)
    resource.allocate(50, stream=stream).close()
    assert first.memory_resource is resource
    assert resource.statistics == (100, 1, 150, 2, 150, 2)
    first.close()
    assert resource.statistics == (0, 0, 150, 2, 150, 2)
    assert (resource.device, resource.device_id) == (device, device.device_id)
    assert resource.is_stream_ordered == device.memory_resource.is_stream_ordered


def test_wrappers_are_not_wrapped_without_end(device):
    """They ask each other on the stack, which 24,000 of them overflowed."""
    resource = device.memory_resource
    for _ in range(100):
        resource = StatisticsMemoryResource(resource)
    with pytest.raises(ValueError, match="wrapped 100 times already"):
        TrackingMemoryResource(resource)
    assert resource.device is device
    with resource.allocate(64):
        assert resource.upstream.statistics.current_count == 1


def test_the_limit_is_exact(device):
    """Threads that allocate at once never get more than the limit together, and always as much as fits."""
    resource = LimitingMemoryResource(StatisticsMemoryResource(SynchronousMemoryResource()), 4 * 64)

    def work(index):
        held, refused = [], 0
        for _ in range(50):
            try:
                held.append(resource.allocate(64))
            except OutOfMemoryError:
                refused += 1
            if len(held) == 2 or refused:
                for buffer in held:
                    buffer.close()
                held.clear()
        for buffer in held:
            buffer.close()

    together(6, work)
    assert resource.upstream.statistics.peak_bytes <= 4 * 64
    assert resource.statistics.current_bytes == 0 == resource.upstream.statistics.current_bytes
    buffers = [resource.allocate(64) for _ in range(4)]
    with pytest.raises(OutOfMemoryError, match="256 of the 256 that it allows"):
        resource.allocate(1)
    assert resource.allocation_limit == 256
    for buffer in buffers:
        buffer.close()


@pytest.mark.thread_unsafe(reason="gc.collect() returns at once while another thread collects (CPython 3.13)")
def test_the_limit_collects_before_it_refuses():
    resource = LimitingMemoryResource(SynchronousMemoryResource(), 64)

    class Node:
        pass

    node = Node()
    node.itself, node.buffer = node, resource.allocate(64)
    del node
    resource.allocate(64).close()


def test_tracking(device, stream):
    resource = TrackingMemoryResource(device.memory_resource)
    first = resource.allocate(64, stream=stream)
    second = resource.allocate(32, stream=stream)
    assert [(live.buffer, live.size) for live in resource.live_allocations] == [(first, 64), (second, 32)]
    assert any("test_tracking" in line.name for line in resource.live_allocations[0].stack)
    second.close()
    report = resource.report()
    assert "1 buffers of 64 bytes" in report and "test_wrapped.py" in report
    del first
    assert resource.live_allocations == []


def test_tracking_reports_at_exit(run_python):
    said = run_python(
        "import ftcuda\n"
        "resource = ftcuda.TrackingMemoryResource(ftcuda.SynchronousMemoryResource(), report_at_exit=True)\n"
        "lost = resource.allocate(48)\n"
    )
    assert "1 buffers of 48 bytes" in said and "line 3" in said


@pytest.mark.thread_unsafe(reason="hooks see what other threads allocate")
def test_hooks(device, stream, unraisable):
    seen = []

    def broken(allocation):
        raise RuntimeError("a hook is unwell")

    resource = SynchronousMemoryResource()
    with (
        hooks.on_allocate(lambda a: seen.append(("allocate", a.size, a.stream))),
        hooks.on_free(lambda a: seen.append(("free", a.size, a.stream)), memory_resource=resource),
        hooks.on_free(lambda a: seen.append(("in stream", a.size)), stream=stream),
        hooks.on_free(broken, memory_resource=resource),
    ):
        buffer = resource.allocate(8)
        device.allocate(16, stream=stream).close(stream)
        buffer.close()
        buffer.close()
        resource.allocate(24)  # collected at once
        wait_for_deallocations()
    assert seen == [
        ("allocate", 8, None),
        ("allocate", 16, stream),
        ("in stream", 16),
        ("free", 8, None),
        ("allocate", 24, None),
        ("free", 24, None),
    ]
    assert unraisable == ["a hook is unwell"] * 2
    resource.allocate(8).close()
    assert len(seen) == 6
    with pytest.raises(TypeError, match="callable"):
        hooks.on_free(7)
    with pytest.raises(TypeError, match="memory_resource must be a memory resource, not str"):
        hooks.on_free(print, memory_resource="pool")
    with pytest.raises(TypeError, match="stream must be a Stream or have __cuda_stream__, not int"):
        hooks.on_allocate(print, stream=1)


@pytest.mark.thread_unsafe(reason="hooks see what other threads allocate")
@pytest.mark.parametrize("wrap", [None, StatisticsMemoryResource, TrackingMemoryResource])
def test_hooks_of_resources_written_in_python(device, stream, wrap):
    """Mutant: with hooks that are told of all frees and only of our own allocations, they do not balance."""
    mine = PinnedAllocator()
    resource = mine if wrap is None else wrap(mine)
    seen = []
    with (
        hooks.on_allocate(lambda a: seen.append(("allocate", a.handle, a.size, a.stream)), memory_resource=mine),
        hooks.on_free(lambda a: seen.append(("free", a.handle, a.size, a.stream)), memory_resource=mine),
    ):
        buffer = resource.allocate(24, stream=stream)
        handle = buffer.handle
        buffer.close(stream)
    assert seen == [("allocate", handle, 24, stream), ("free", handle, 24, stream)]
    memory = mine.memory.allocate(24)
    with hooks.on_free(seen.append):
        Buffer.from_handle(memory.handle, 24, owner=memory).close()
        Buffer.from_handle(memory.handle, 24).close()
    assert len(seen) == 2, "memory of no resource is not reported"


@pytest.mark.thread_unsafe(reason="hooks see what other threads allocate")
def test_each_free_is_announced_once(device, stream):
    seen = []
    with hooks.on_free(lambda a: seen.append(a.handle)):
        for _ in range(20):
            buffer = device.allocate(16, stream=stream)
            together(4, lambda _, shared: shared.close(), buffer)
    assert len(seen) == 20


@pytest.mark.parametrize("make", [DeviceMemoryResource, SynchronousMemoryResource])
def test_pairs(device, stream, make):
    if make is DeviceMemoryResource and not device.features.memory_pools:
        pytest.skip("the device has no memory pools")
    with HostDeviceBuffer(64, stream=stream, device_resource=make()) as pair:
        view = np.frombuffer(pair.host_buffer, "u1")
        view[:] = np.arange(64)
        pair.to_device(stream=stream)
        stream.sync()
        view[:] = 0
        pair.to_host(stream=stream)
        stream.sync()
        assert (view == np.arange(64)).all() and pair.size == 64
    assert (view == np.arange(64)).all()  # whose memory goes with it
    assert pair.is_closed and pair.host_buffer.is_closed
    with pytest.raises(ValueError, match="host reaches"):
        HostDeviceBuffer(8, stream=stream, host_resource=device.memory_resource)
    with pytest.raises(ValueError, match="asked for 8 bytes and returned 9"):
        HostDeviceBuffer(8, stream=stream, device_resource=PinnedAllocator(give=lambda size: size + 1))
    with pytest.raises(TypeError, match="must return a Buffer from allocate, not NoneType"):
        HostDeviceBuffer(8, stream=stream, host_resource=Forgetful())


def test_pairs_are_freed_after_the_work(device, stream):
    """Many threads close a pair whose copies were just submitted: neither of its buffers is freed under them."""
    for _ in range(20):
        pair = HostDeviceBuffer(1 << 16, stream=stream)
        pair.to_device(stream=stream)
        pair.to_host(stream=stream)
        together(3, lambda _, shared: shared.close(stream), pair)


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_what_cannot_be_wrapped_is_given_back_once(device):
    """Mutant: what was allocated for a buffer that could not be made stays, or is given back by a later buffer again."""
    given, blocks = [], [LegacyPinnedMemoryResource().allocate(64) for _ in range(2)]
    absent = len(Device.get_all_devices())  # the ordinal of no device
    for deallocate in (lambda block, size, stream: given.append(block), None):
        resource = ExternalMemoryResource(lambda size, stream: blocks[-1], deallocate, device_id=absent)
        with pytest.raises(CUDAError, match="cannot open device"):
            resource.allocate(64)
        assert not resource._held
    assert given == blocks[-1:]


INTERRUPTED = """
import gc, signal, sys, time
from ftcuda import Device, ExternalMemoryResource
from ftcuda.memory import wait_for_deallocations

device, free, live, wrong = Device(), [4096 * each for each in range(1, 65)], set(), []

def allocate(size, stream):
    address = free.pop()
    live.add(address)
    return address

def deallocate(address, size, stream):
    if address not in live:
        wrong.append(address)
    live.discard(address)
    free.append(address)

def interrupt(*_):
    global armed, interrupts
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in (allocate.__code__, deallocate.__code__):
            return  # the program's own functions are its own affair
        frame = frame.f_back
    if armed:
        armed, interrupts = False, interrupts + 1
        raise KeyboardInterrupt

def until_interrupted():
    global armed
    armed = True
    while armed:
        resource.allocate(256).close()

resource = ExternalMemoryResource(allocate, deallocate, device_id=-1)
armed, interrupts = False, 0
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0007)
while interrupts < 1500:  # as many as came in a second
    try:
        until_interrupted()
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
gc.collect()
device.sync()
wait_for_deallocations()  # of a buffer that the last interrupt dropped
print(f"{len(wrong)} {len(live)}")
"""


@pytest.mark.thread_unsafe(reason="starts a process")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no interval timers")
def test_interrupts_lose_no_memory_of_others(run_python):
    """Mutant: memory that is given back twice, or never, because a signal came between two steps."""
    assert run_python(INTERRUPTED).split() == ["0", "0"]
