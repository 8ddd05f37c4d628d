"""Calls whose second step fails: what the first one took is given back, what it counted is uncounted.

Beside test_every_call.py, which looks at live handles, this looks at what no handle tells: events and chunks of memory
that should be idle, figures, leases. Each test names the mutant in stress/mutation/mutants.toml that it notices.
"""

import ctypes
import gc
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    CachingMemoryResource,
    ClosedError,
    CUDAError,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    StatisticsMemoryResource,
    Stream,
    StridedMemoryView,
    SynchronousMemoryResource,
    launch,
)
from ftcuda.memory import hooks
from ftcuda.testing import Schedule, faults, simulation, together
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="plans faults for the whole process")]

UNKNOWN = 999  # a failure that does not end the context
ONE = LaunchConfig(grid=1, block=1)


@contextmanager
def refused(entry, nth=1, error=CUDAError):
    """For its block, which raises: the driver's `nth` call of `entry` fails."""
    with faults.failing(entry, UNKNOWN, nth=nth) as fault:
        with pytest.raises(error) as raised:
            yield
        assert fault.hits == 1 and raised.value.entry_point == entry


@contextmanager
def complained(entry, nth=1):
    """For its block, which need not raise: the same, of which somebody is told."""
    with faults.failing(entry, UNKNOWN, nth=nth) as fault, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ftcuda.CUDAWarning)
        try:
            yield
        except CUDAError as raised:
            assert raised.entry_point == entry
            seen.append(raised)
        assert fault.hits == 1 and seen
        ftcuda.Device(0).sync()


@pytest.fixture
def world(device, stream, code):
    other = device.create_stream()
    memory = device.allocate(64, stream=stream)
    memory.fill(0, stream=stream)
    device.sync()
    data = {"shape": (1,), "typestr": "<i4", "data": (memory.handle, False), "version": 3, "stream": None}
    array = SimpleNamespace(__cuda_array_interface__=data)
    yield SimpleNamespace(
        device=device, stream=stream, other=other, memory=memory, array=array, increment=code.get_kernel("increment"),
        pinned=CachingMemoryResource(LegacyPinnedMemoryResource()),
    )  # fmt: skip
    device.sync()
    memory.close()
    other.close()


# ---- Events of the pool ----------------------------------------------------------------------------------------------


def wait_is_refused(world):
    with refused("cuStreamWaitEvent"):
        world.other.wait(world.stream)


def record_is_refused(world):
    with refused("cuEventRecord"):
        world.other.wait(world.stream)


def waiting_stream_is_closed(world):
    closed = world.device.create_stream()
    closed.close()
    with pytest.raises(ClosedError):
        closed.wait(world.stream)


def export_is_refused(world):
    with refused("cuStreamWaitEvent"):
        world.memory.__dlpack__(stream=world.other.handle)


def used_pinned(world):
    buffer = world.pinned.allocate(64)
    buffer.fill(1, stream=world.stream)
    buffer.close()
    world.device.sync()  # its event is in the context's own stream


def cache_lets_go(world):
    used_pinned(world)
    with refused("cuStreamWaitEvent"):
        world.pinned.trim()
    world.device.sync()


def cache_gives_again(world):
    used_pinned(world)
    used_pinned(world)
    world.pinned.trim()
    world.device.sync()


def default_stream_uses_twice(world):
    with SynchronousMemoryResource(world.device).allocate(64) as buffer:
        for _ in range(3):
            buffer.fill(1, stream=world.device.default_stream)
    world.device.sync()


def mark_is_refused(world):
    buffer = SynchronousMemoryResource(world.device).allocate(64)
    with complained("cuEventRecord"):
        buffer.fill(1, stream=world.device.default_stream)
        world.device.sync()
    buffer.close()
    world.device.sync()


def array_is_kept(world):
    launch(world.stream, ONE, world.increment, world.array)
    world.device.sync()


def chunk_is_waited_for(world):
    host = np.zeros(64, "u1")
    for _ in range(2):
        world.memory.copy_to(host, stream=world.stream)
    world.memory.copy_from(host, stream=world.stream)
    world.device.sync()
    world.device.trim_staging()


def download_is_refused(world):
    with refused("cuEventSynchronize"):
        world.memory.copy_to(np.zeros(64, "u1"), stream=world.stream)
    world.device.sync()
    world.device.trim_staging()


USERS_OF_EVENTS = [
    wait_is_refused,
    record_is_refused,
    waiting_stream_is_closed,
    export_is_refused,
    cache_lets_go,
    cache_gives_again,
    default_stream_uses_twice,
    mark_is_refused,
    array_is_kept,
    chunk_is_waited_for,
    download_is_refused,
]


@pytest.mark.parametrize("use", USERS_OF_EVENTS, ids=lambda use: use.__name__)
def test_events_come_back(use, world):
    """The same once more needs no new event. A context keeps 64 of them, in which a leak of a few would not be seen.

    Mutant: refused-waits-keep-their-event, refused-records-keep-their-event, pieces-that-leave-keep-their-event,
    pieces-that-are-used-again-keep-their-event, marks-take-a-new-event, uses-keep-their-event.
    """
    use(world)
    before = simulation.live()["event"]
    for _ in range(4):
        use(world)
    assert simulation.live()["event"] == before


def test_many_idle_events_are_not_kept(world, held_clock):
    """More at once than a context keeps: the rest is destroyed, each time. Mutant: events-beyond-the-limit-are-lost."""
    left = []
    for _ in range(2):
        with held_clock():
            for _ in range(100):
                launch(world.stream, ONE, world.increment, world.array)
        world.device.sync()
        left.append(simulation.live()["event"])
    assert left[0] == left[1]


# ---- Staging memory --------------------------------------------------------------------------------------------------


def chunk_is_trimmed(world):
    world.memory.copy_from(np.zeros(64, "u1"), stream=world.stream)
    world.device.sync()
    world.device.trim_staging()


def chunk_is_refused(world):
    world.device.trim_staging()
    with refused("cuMemHostAlloc"):
        world.memory.copy_from(np.zeros(64, "u1"), stream=world.stream)


def free_of_a_chunk_is_late(world):
    """Two chunks of which the first cannot be asked about: it stays, and is freed the next time."""
    with simulation.held_clock():
        for _ in range(2):
            world.memory.copy_from(np.zeros(64, "u1"), stream=world.stream)
        world.device.trim_staging()
    world.device.sync()
    world.device.trim_staging()


@pytest.mark.parametrize("history", [chunk_is_trimmed, chunk_is_refused, free_of_a_chunk_is_late], ids=lambda use: use.__name__)
def test_the_number_of_chunks_is_right(history, world, held_clock):
    """With 32 chunks a copy waits for one instead of making one: after 33 times one too many it would do so with none.

    Mutant: trims-count-one-chunk-less, chunks-that-were-not-made-are-counted.
    """
    for _ in range(33):
        history(world)
    world.device.trim_staging()
    before = simulation.live()["pinned_allocation"]
    with held_clock(), faults.failing("cuEventSynchronize", UNKNOWN) as waiting:
        for _ in range(2):
            world.memory.copy_from(np.zeros(64, "u1"), stream=world.stream)
        assert waiting.hits == 0 and simulation.live()["pinned_allocation"] == before + 2
    world.device.sync()
    world.device.trim_staging()
    assert simulation.live()["pinned_allocation"] == before


def test_a_chunk_stays_with_the_copy_that_could_not_be_marked(world, held_clock):
    """The copy runs, and no event says until when: the next copy must not write the chunk. Mutant: unmarked-chunks-are-idle."""
    world.device.trim_staging()
    second = world.device.allocate(64, stream=world.stream)
    with held_clock():
        with refused("cuEventRecord"):
            world.memory.copy_from(np.full(64, 1, "u1"), stream=world.stream)
        second.copy_from(np.full(64, 2, "u1"), stream=world.stream)
    host = np.zeros(64, "u1")
    for buffer, expected in ((world.memory, 1), (second, 2)):
        buffer.copy_to(host, stream=world.stream)
        assert (host == expected).all()
    second.close()


# ---- What is kept until its work is done -----------------------------------------------------------------------------


def test_what_waits_is_counted(world, held_clock):
    """Each call asks once about what waits. Owners that waited for nothing must be uncounted when they go, or it asks more often.

    Mutant: owners-without-work-are-not-counted.
    """
    gone = []

    class Owner:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return 0, self.stream.handle

        def __del__(self):
            gone.append(self)

    for _ in range(4):
        world.device.create_stream(Owner(world.other)).close()
        gc.collect()
        world.device.sync()
    assert len(gone) == 4, "an owner goes when its work is over"
    event = world.device.create_event()

    def ask(index):
        with held_clock():
            launch(world.stream, ONE, world.increment, world.array)
            before = simulation.calls("cuEventQuery")
            event.close()  # a call that lets go of what is done
            return simulation.calls("cuEventQuery") - before

    assert together(1, ask, schedule=Schedule(seed=1)) == [1]  # where the service does not look meanwhile


# ---- Accounts --------------------------------------------------------------------------------------------------------


def test_what_was_not_allocated_is_not_counted(device):
    """Mutant: what-was-not-allocated-is-counted."""
    counted = StatisticsMemoryResource(SynchronousMemoryResource(device))
    counted.allocate(16).close()
    with refused("cuMemAlloc_v2"):
        counted.allocate(4096)
    now = counted.statistics
    assert (now.current_bytes, now.current_count, now.total_bytes, now.total_count) == (0, 0, 16, 1)
    assert (now.peak_bytes, now.peak_count) == (16, 1), "nobody had more at any time"


def test_an_interrupted_allocation_is_not_charged():
    """Mutant: interrupted-allocations-stay-charged, cancelled-charges-stay."""

    class Interrupted:
        def allocate(self, size, *, stream=None):
            raise KeyboardInterrupt

    limited = LimitingMemoryResource(Interrupted(), 64)
    for _ in range(3):  # the limit holds one of them
        with pytest.raises(KeyboardInterrupt):
            limited.allocate(64)
    assert limited.statistics.current_count == limited.statistics.current_bytes == 0


def test_the_limit_is_as_large_as_before():
    """Mutant: confirmed-charges-stay."""
    limited = LimitingMemoryResource(LegacyPinnedMemoryResource(), 64)
    for _ in range(3):
        limited.allocate(64).close()


def test_a_buffer_that_a_hook_closed_is_credited():
    """It is closed before its account hears of it. Mutant: buffers-closed-by-hooks-stay-charged."""
    seen = []

    def close(allocation):
        for thing in gc.get_objects():
            if type(thing) is ftcuda.Buffer and not thing.is_closed and thing.handle == allocation.handle:
                thing.close()
                seen.append(allocation.handle)

    limited = LimitingMemoryResource(LegacyPinnedMemoryResource(), 64)
    with hooks.on_allocate(close):
        limited.allocate(64)
    assert len(seen) == 1
    now = limited.statistics
    assert (now.current_bytes, now.current_count, now.total_count) == (0, 0, 1)


# ---- Caches ----------------------------------------------------------------------------------------------------------


def figures(cache):
    now = cache.statistics
    return now.in_use_count, now.in_use_bytes, now.cached_count


def test_memory_that_is_freed_late_is_not_in_use(world):
    """Its last use could not be marked. Mutant: memory-that-is-freed-late-stays-in-use."""
    cache, before = world.pinned, simulation.live()["pinned_allocation"]
    buffer = cache.allocate(64)
    buffer.fill(1, stream=world.stream)
    with simulation.held_clock(), complained_later("cuEventRecord"):
        buffer.close()
    world.device.sync()
    assert figures(cache) == (0, 0, 0) and simulation.live()["pinned_allocation"] == before


@contextmanager
def complained_later(entry):
    """The same as complained(), where the device stands still."""
    with faults.failing(entry, UNKNOWN) as fault, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ftcuda.CUDAWarning)
        yield
        assert fault.hits == 1 and [entry in str(each.message) for each in seen] == [True]


def test_memory_that_is_freed_in_a_foreign_stream_is_not_in_use(world):
    """Nothing is kept in the order of a stream that others may destroy. Mutant: frees-in-foreign-streams-stay-in-use."""
    if not world.device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    cache = CachingMemoryResource(DeviceMemoryResource(world.device))
    foreign = Stream.from_handle(world.other.handle)
    cache.allocate(64, stream=world.stream).close(foreign)
    foreign.close()
    world.device.sync()
    assert figures(cache) == (0, 0, 0)
    cache.close()


def test_what_a_cache_keeps_is_for_all_streams(world):
    """Mutant: caches-keep-as-much-for-each-stream."""
    cache = CachingMemoryResource(SynchronousMemoryResource(world.device))
    for stream in (world.stream, world.other):
        cache.allocate(1 << 20, stream=stream).close()
    cache.trim(1 << 20)
    assert cache.statistics.cached_count == 1
    cache.close()
    world.device.sync()


@pytest.mark.parametrize("nth", [1, 2])
def test_what_a_cache_could_not_free_is_freed_later(world, nth):
    """Two pieces, of which one fails: the trim says so, and neither is lost.

    Mutant: pieces-that-cannot-leave-are-lost, caches-forget-the-first-failure.
    """
    cache, before = CachingMemoryResource(LegacyPinnedMemoryResource()), simulation.live()["pinned_allocation"]
    buffers = [cache.allocate(64) for _ in range(2)]
    for buffer in buffers:
        buffer.fill(1, stream=world.stream)
        buffer.close()
    with refused("cuStreamWaitEvent", nth):
        cache.trim()
    assert figures(cache) == (0, 0, 0)
    world.device.sync()
    assert simulation.live()["pinned_allocation"] == before


# ---- Leases ----------------------------------------------------------------------------------------------------------


def refused_fill(buffer, stream):
    buffer.fill(1, stream=stream)


def refused_export(buffer, stream):
    StridedMemoryView.from_buffer(buffer, (64,), dtype="u1").__dlpack__(stream=-1)


def refused_copy(buffer, stream):
    buffer.copy_from(np.zeros(64, "u1"), stream=stream)


def refused_view(buffer, stream):
    memoryview(buffer)


@pytest.mark.parametrize("use", [refused_fill, refused_export, refused_copy, refused_view], ids=lambda use: use.__name__)
def test_who_was_refused_gives_no_lease_back(use, stream):
    """A closed buffer lives by its last view. Mutant: refused-exports-end-a-lease."""
    before = simulation.live()["pinned_allocation"]
    buffer = LegacyPinnedMemoryResource().allocate(64)
    view = np.frombuffer(buffer, "u1")
    view[:] = 9
    buffer.close()
    for _ in range(2):
        with pytest.raises(ClosedError):
            use(buffer, stream)
    gc.collect()
    assert simulation.live()["pinned_allocation"] == before + 1
    assert (view == 9).all()
    del view
    gc.collect()
    assert simulation.live()["pinned_allocation"] == before


def test_a_refused_allocation_keeps_no_resource(world):
    """Mutant: refused-allocations-keep-their-resource."""
    before = simulation.live()["pinned_allocation"]
    upstream = LegacyPinnedMemoryResource()
    cache = CachingMemoryResource(upstream)
    cache.allocate(64).close()
    with refused("cuMemHostAlloc"):
        cache.allocate(1 << 16)
    cache.close()  # what it has in store goes when nobody is inside
    world.device.sync()
    assert simulation.live()["pinned_allocation"] == before


# ---- Events and contexts ---------------------------------------------------------------------------------------------


def test_a_refused_record_is_over(stream):
    """What follows it knows again what is done, and times it. Mutant: refused-records-stay-in-progress."""
    first, event = (stream.record(options={"timing_enabled": True}) for _ in range(2))
    with refused("cuEventRecord"):
        stream.record(event)
    stream.record(event)
    event.sync()
    assert event.is_done
    before = simulation.calls("cuEventQuery")
    assert event.is_done and simulation.calls("cuEventQuery") == before
    assert event - first >= 0
    first.close()
    event.close()


def test_a_limited_wait_for_the_device_tells_of_this_wait(device):
    """It is another thread that waits. Mutant: waits-of-the-device-hide-failures, waits-of-the-device-remember-failures."""
    for _ in range(2):
        with refused("cuCtxSynchronize"):
            device.sync(timeout=30)
        device.sync(timeout=30)


def test_a_stream_that_cannot_be_wrapped_leaves_the_context_as_it_was(world):
    """In a thread that has none. Mutant: refused-wraps-leave-their-context."""
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    handle = world.other.handle

    def wrap(index):
        current = ctypes.c_void_p()
        driver.cuCtxSetCurrent(None)
        with refused("cuCtxGetDevice"):
            Stream.from_handle(handle)
        assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0
        return current.value

    assert together(1, wrap) == [None]


@pytest.mark.skipif(not ftcuda.Device(0).features.graphs, reason="this driver profile has no graphs")
def test_a_node_that_was_put_in_no_order_spoils_its_graph(device):
    """The driver made it, and nothing would come behind it: nodes-without-order-spoil-nothing."""
    child = device.create_graph_builder().begin_building().end_building()
    builder = device.create_graph_builder().begin_building()
    with refused("cuStreamUpdateCaptureDependencies"):
        builder.embed(child)
    with pytest.raises(RuntimeError, match="the driver failed amid an addition"):
        builder.end_building()
    builder.close()
    child.close()
