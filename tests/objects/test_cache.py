"""What a caching resource gives out again, to whom and when."""

import contextlib
import ctypes
import gc

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    CachingMemoryResource,
    ClosedError,
    CUDAError,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    OutOfMemoryError,
    StatisticsMemoryResource,
    SynchronousMemoryResource,
)
from ftcuda.testing import together
from tests.conftest import simulated_only
from tests.objects.graphs import assert_goes

KIB, MIB = 1 << 10, 1 << 20

pytestmark = pytest.mark.thread_unsafe(
    reason="compares addresses and statistics of a cache that the threads would share"
)


@pytest.fixture(params=["pool", "plain"])
def cache(request, device):
    """A cache of device memory, in front of the device's own resource or of plain allocations."""
    resource = CachingMemoryResource(SynchronousMemoryResource(device) if request.param == "plain" else None)
    yield resource
    resource.close()


@pytest.fixture
def pinned():
    resource = CachingMemoryResource(LegacyPinnedMemoryResource())
    yield resource
    resource.close()


@pytest.fixture
def other(device):
    stream = device.create_stream()
    yield stream
    stream.close()


def freed(resource, size, stream):
    """The address of memory that was allocated and freed."""
    with resource.allocate(size, stream=stream) as buffer:
        return buffer.handle


def test_a_stream_gets_its_own_memory_again(cache, stream, other):
    address = freed(cache, 60_000, stream)
    elsewhere = cache.allocate(60_000, stream=other)
    assert elsewhere.handle != address  # in other's order nothing says that stream is done with it
    again = cache.allocate(57_400, stream=stream)  # of the same class, which is of 61,440 bytes
    assert again.handle == address and again.size == 57_400
    assert cache.statistics == (2 * 61_440, 2, 0, 0, 1, 2)
    larger = cache.allocate(61_441, stream=stream)
    for buffer in (again, elsewhere, larger):
        buffer.close()
    assert cache.statistics == (0, 0, 2 * 61_440 + 65_536, 3, 1, 3)
    cache.trim()
    assert cache.statistics == (0, 0, 0, 0, 1, 3)


@pytest.mark.parametrize(
    ("size", "rounded"),
    [
        (1, 512),
        (512, 512),
        (513, 1024),
        (4096, 4096),
        (4097, 4608),
        (8192, 8192),
        (8193, 9216),
        (MIB, MIB),
        (MIB + 1, 9 * MIB // 8),
    ],
)
def test_sizes_are_rounded_up_by_an_eighth_at_most(cache, stream, size, rounded):
    with cache.allocate(size, stream=stream) as buffer:
        assert cache.statistics.in_use_bytes == rounded and buffer.size == size


def test_every_class_holds_what_it_is_for(cache, stream):
    """At the edges of all classes: a piece that was kept for a size has at least that size."""
    sizes = sorted(
        {
            size
            for doubling in range(9, 17)
            for eighth in range(8, 17)
            for size in ((eighth << doubling) // 8 + d for d in (-1, 0, 1))
        }
    )
    for size in sizes:
        with cache.allocate(size, stream=stream) as buffer:
            assert size <= cache.statistics.in_use_bytes < size + max(512, size // 8 + 1)
            buffer.fill(1, stream=stream)  # out of bounds, if an earlier size had left too little
    stream.sync()


def test_large_and_empty_buffers_pass_by(cache, stream):
    for size in (0, (32 << 20) + 1):
        with cache.allocate(size, stream=stream):
            assert cache.statistics.in_use_count == 0
    with cache.allocate(32 << 20, stream=stream):
        assert cache.statistics.in_use_bytes == 32 << 20
    cache.trim()


def test_memory_of_default_streams_is_not_kept(cache, device):
    freed(cache, KIB, device.default_stream)
    assert cache.statistics.cached_count == 0


def test_memory_in_the_order_of_foreign_streams_is_not_kept(request, cache, device, stream):
    """Their owners destroy them when they like; plain memory is kept by an event, in the order of no stream.

    Mutant: kept, it is freed in a stream that is gone.
    """
    is_plain = request.node.callspec.params["cache"] == "plain" or not device.features.memory_pools
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    handle = ctypes.c_void_p()
    assert driver.cuStreamCreateWithPriority(ctypes.byref(handle), 1, 0) == 0
    foreign = ftcuda.Stream.from_handle(handle.value)
    freed(cache, KIB, foreign)
    buffer = cache.allocate(KIB, stream=stream)
    foreign.wait(stream)
    buffer.close(foreign)
    assert cache.statistics.cached_count == int(is_plain) and cache.statistics.in_use_count == 0
    foreign.sync()
    foreign.close()
    assert driver.cuStreamDestroy_v2(handle) == 0
    cache.trim()


def test_memory_is_given_out_after_the_work_of_other_streams(cache, device, stream, other, held_clock):
    """Mutant: without the order of the free after other streams' work, the copy reads what is written next."""
    target = LegacyPinnedMemoryResource().allocate(KIB)
    with held_clock():
        first = cache.allocate(KIB, stream=stream)
        address = first.handle
        first.fill(1, stream=stream)
        other.wait(stream)
        first.copy_to(target, stream=other)
        first.close()
        second = cache.allocate(KIB, stream=stream)
        assert second.handle == address
        second.fill(2, stream=stream)
    device.sync()
    assert set(bytes(target)) == {1}
    second.close()
    target.close()


def test_plain_memory_of_captured_streams_is_given_out_when_the_work_is_done(device, stream, other, held_clock):
    """Mutant: plain-memory-is-kept-without-an-event."""
    assert stream.handle and other.handle  # others may capture them: no free waits in their order
    cache = CachingMemoryResource(SynchronousMemoryResource(device))
    with held_clock():
        first = cache.allocate(KIB, stream=stream)
        address = first.handle
        other.wait(stream)
        first.fill(1, stream=other)
        first.close()  # waits for nothing
        second = cache.allocate(KIB, stream=stream)
        assert second.handle != address
    other.sync()
    device.sync()
    third = cache.allocate(KIB, stream=other)  # in any stream
    assert third.handle == address and cache.statistics.hits == 1
    second.close()
    third.close()
    assert cache.statistics.in_use_count == 0
    cache.close()


def test_frees_in_front_of_plain_memory_wait_for_nothing(device, stream, held_clock):
    cache = CachingMemoryResource(SynchronousMemoryResource(device))
    with held_clock():
        buffer = cache.allocate(KIB, stream=stream)
        buffer.fill(1, stream=stream)
        buffer.close()  # would wait for the fill
        cache.allocate(KIB, stream=stream).close()
    assert cache.statistics.misses == 1
    cache.close()


@simulated_only
def test_a_use_of_freed_memory_is_reported(cache, device, stream, other):
    """It is allocated as the driver sees it. Mutant: a cache that does not set it aside, and nobody notices."""
    from ftcuda.testing import simulation

    address = freed(cache, KIB, stream)
    stale = ftcuda.Buffer.from_handle(address, KIB)
    stale.fill(1, stream=other)
    device.sync()
    assert any("already submitted" in text for text in simulation.violations())
    simulation.clear_violations()
    again = cache.allocate(KIB, stream=stream)
    stale.fill(1, stream=stream)
    again.close()


def test_pinned_memory_is_given_out_when_the_work_is_done(pinned, stream, device, held_clock):
    """The host writes it at once. Mutant: without the event it writes under the running copy."""
    target = device.allocate(KIB, stream=stream)
    with held_clock():
        first = pinned.allocate(KIB, stream=stream)
        address = first.handle
        target.copy_from(first, stream=stream)
        first.close()
        second = pinned.allocate(KIB, stream=stream)
        assert second.handle != address and pinned.statistics.hits == 0
    stream.sync()
    third = pinned.allocate(KIB)  # in any stream, or none
    assert third.handle == address and pinned.statistics.hits == 1
    np.frombuffer(third, "u1")[0] = 1
    for buffer in (second, third, target):
        buffer.close()


def test_managed_memory_is_kept_too(device, stream):
    cache = CachingMemoryResource(ManagedMemoryResource())
    assert cache.is_managed and cache.is_host_accessible
    freed(cache, KIB, stream)
    stream.sync()
    freed(cache, KIB, stream)
    assert cache.statistics.hits == 1
    cache.close()


def test_more_than_the_limit_goes_back(stream):
    cache = CachingMemoryResource(max_cached_size=16 * KIB)
    buffers = [cache.allocate(4 * KIB, stream=stream) for _ in range(5)]
    addresses = [buffer.handle for buffer in buffers]
    for buffer in buffers:
        buffer.close()
    assert cache.statistics.cached_bytes == 16 * KIB  # the oldest went
    again = [cache.allocate(4 * KIB, stream=stream) for _ in range(4)]
    assert {buffer.handle for buffer in again} == set(addresses[1:])
    for buffer in again:
        buffer.close()
    cache.trim(6 * KIB)
    assert cache.statistics.cached_bytes == 4 * KIB
    cache.close()


def test_more_than_was_in_use_goes_back(cache, stream):
    freed(cache, 8 * MIB, stream)
    assert cache.statistics.cached_bytes == 8 * MIB
    freed(cache, 7 * MIB, stream)  # 15 MiB would be more than 8, a sixteenth of 8, and 2
    assert cache.statistics.cached_bytes == 7 * MIB
    with cache.allocate(7 * MIB, stream=stream), cache.allocate(8 * MIB, stream=stream):
        assert cache.statistics.in_use_bytes == 15 * MIB
    assert cache.statistics.cached_bytes == 15 * MIB
    cache.trim()
    freed(cache, 3 * MIB, stream)
    freed(cache, 2 * MIB, stream)  # what was in use before is forgotten
    assert cache.statistics.cached_bytes == 5 * MIB
    freed(cache, MIB, stream)
    assert cache.statistics.cached_bytes == 3 * MIB


def test_a_stream_makes_room_for_another(cache, stream, other):
    """What one has in store goes back where another needs new memory."""
    freed(cache, 8 * MIB, stream)
    with cache.allocate(6 * MIB, stream=other):
        assert cache.statistics.cached_bytes == 0  # with 8 in store, 14 would be held where 8 were in use
    assert cache.statistics.cached_bytes == 6 * MIB


def test_memory_that_is_freed_in_another_stream(cache, stream, other):
    """It is in store for that one, and no more of it than all streams had in use, a sixteenth of that and 2 MiB."""
    for _ in range(4):
        buffer = cache.allocate(MIB, stream=stream)
        other.wait(stream)
        buffer.close(other)
    assert cache.statistics.in_use_bytes == 0 and cache.statistics.cached_bytes == 3 * MIB
    assert cache.allocate(MIB, stream=other).close() is None and cache.statistics.hits == 1


def test_memory_of_closed_streams_goes_back(cache, device, stream):
    """When another stream's first piece comes. Mutant: a list that does not keep its stream frees in a destroyed one."""
    for _ in range(3):
        gone = device.create_stream()
        freed(cache, KIB, gone)
        gone.close()
        del gone
    assert cache.statistics.cached_count == 1
    freed(cache, KIB, stream)
    assert cache.statistics.cached_count == 1


@simulated_only
def test_a_capturing_stream_passes_by(cache, stream, device):
    """What a graph uses it uses at each launch. Mutant: with the cache, its memory is somebody else's by then.

    A pool's is refused, since the graph would allocate it.
    """
    freed(cache, KIB, stream)
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
    held = cache.allocate(2 * KIB, stream=stream)
    held.fill(0, stream=stream)
    assert driver.cuStreamBeginCapture_v2(handle, 2) == 0
    try:
        before = cache.statistics.hits
        with contextlib.suppress(ftcuda.CUDAError):
            cache.allocate(KIB, stream=stream).close()
        assert cache.statistics.hits == before
        held.close()  # while the capture goes on nobody can wait for the work before it
        assert cache.statistics.in_use_count == 1 and cache.statistics.cached_count == 1
        cache.trim()  # a free would become part of the graph: it comes with the next synchronisation
        assert cache.statistics.cached_count == 0
    finally:
        assert driver.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0
        assert driver.cuGraphDestroy(graph) == 0
    assert_goes(lambda: cache.statistics.in_use_count == 0, device)


@simulated_only
def test_out_of_memory_empties_the_cache(device, stream, limit_memory):
    with_cache = CachingMemoryResource()
    limit_memory(1 << 20)
    freed(with_cache, 700_000, stream)
    with_cache.allocate(500_000, stream=stream).close()
    with pytest.raises(OutOfMemoryError):
        with_cache.allocate(2 << 20, stream=stream)
    freed(with_cache, 700_000, stream)
    SynchronousMemoryResource(device).allocate(500_000).close()  # nor does it keep memory from others
    with_cache.close()


def test_a_closed_cache_keeps_nothing(device, stream):
    cache = CachingMemoryResource()
    buffer = cache.allocate(KIB, stream=stream)
    freed(cache, KIB, stream)
    cache.close()
    with pytest.raises(ClosedError):
        cache.allocate(KIB, stream=stream)
    buffer.close()
    assert cache.statistics.cached_count == 0


def test_a_closed_resource_lives_as_long_as_its_cache(device, stream):
    """Mutant: without the lease the pool is destroyed, and the next miss allocates from nothing."""
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    pool = ftcuda.DeviceMemoryResource(device, {"max_size": 0})
    cache = CachingMemoryResource(pool)
    pool.close()
    device.sync()
    freed(cache, KIB, stream)
    cache.close()
    device.sync()


def test_the_devices_own_resource_is_a_cache(device, stream):
    cache = device.memory_resource
    assert type(cache) is CachingMemoryResource
    assert type(cache.upstream) is (DeviceMemoryResource if device.features.memory_pools else SynchronousMemoryResource)
    before = cache.statistics.hits
    assert freed(device, KIB, stream) == freed(device, KIB, stream)
    StatisticsMemoryResource(cache).allocate(KIB, stream=stream).close()
    assert cache.statistics.hits == before + 2


@simulated_only
def test_nothing_beyond_what_was_asked_for_is_in_use(cache, stream):
    """Though the memory is larger, new or given out again. Mutant: the simulated driver is not told how large."""
    for _ in range(2):
        with cache.allocate(100, stream=stream) as buffer:
            beyond = ftcuda.Buffer.from_handle(buffer.handle, 101)
            with pytest.raises(CUDAError, match="INVALID_VALUE"):
                beyond.fill(1, stream=stream)
            buffer.fill(1, stream=stream)
    assert cache.statistics.hits == 1


def test_what_it_cannot_be_in_front_of(device):
    class Written(MemoryResource):
        pass

    cache = CachingMemoryResource()
    with pytest.raises(ValueError, match="is a cache already"):
        CachingMemoryResource(cache)
    for other in (Written(), StatisticsMemoryResource(cache)):
        with pytest.raises(TypeError, match="put that around the cache"):
            CachingMemoryResource(other)
    with pytest.raises(TypeError):
        CachingMemoryResource(4)
    with pytest.raises(ValueError):
        CachingMemoryResource(max_cached_size=-1)
    cache.close()
    gone = LegacyPinnedMemoryResource()
    gone.close()
    with pytest.raises(ClosedError):
        CachingMemoryResource(gone)


def test_threads_share_a_cache(cache, device):
    """Each finds what it wrote: no piece is given out twice. Mutant: without the lock of a shard some are."""
    shared = device.create_stream()

    def work(index):
        own = device.create_stream()
        for turn in range(60):
            stream = (own, shared)[turn % 2]
            buffers = [cache.allocate(KIB, stream=stream) for _ in range(3)]
            for number, buffer in enumerate(buffers):
                buffer.fill(8 * index + number, stream=stream)
            for number, buffer in enumerate(buffers):
                host = np.empty(KIB, "u1")
                buffer.copy_to(host, stream=stream)
                assert (host == 8 * index + number).all()
                buffer.close()
            if turn % 20 == 0:
                cache.trim()
        own.close()

    together(4, work)
    shared.close()
    figures = cache.statistics
    assert figures.in_use_count == 0 and figures.hits + figures.misses == 4 * 60 * 3 and figures.hits > 0
    gc.collect()
