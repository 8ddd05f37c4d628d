"""Pinned memory on lease."""

import gc
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    CachingMemoryResource,
    ClosedError,
    Device,
    LimitingMemoryResource,
    OutOfMemoryError,
    StagingPool,
    StatisticsMemoryResource,
    launch,
)
from ftcuda.testing import faults, simulated_clock, together
from tests.conftest import simulated_only
from tests.objects.graphs import ONE, needs_graphs

pytestmark = pytest.mark.thread_unsafe(reason="makes threads of its own, and counts what the driver has")
OUT_OF_MEMORY = 2


def until_waiting(pool, threads):
    while pool.statistics.waiting < threads:
        pass


@pytest.fixture
def pool(device):
    pool = StagingPool(device, 4096)
    yield pool
    pool.close()


def test_a_lease(device, pool, stream):
    with pool.lease(1000) as lease:
        assert lease.size == 1000 and lease.memory_resource is pool and lease.device_id == -1
        assert lease.is_host_accessible and lease.is_device_accessible and not lease.is_managed
        array = np.frombuffer(lease, np.float32)
        array[:] = 7
        memory = device.allocate(1000, stream=stream)
        memory.copy_from(lease, stream=stream)
        assert pool.statistics == (1024, 1, 0, 0, 0)
    del array
    back = pool.lease(1000)
    memory.copy_to(back, stream=stream)
    stream.sync()
    assert set(np.frombuffer(back, np.float32).tolist()) == {7}
    back.close()
    memory.close()
    assert repr(pool) == f"<StagingPool of {device!r}>"
    assert (pool.size, pool.device, pool.device_id, pool.is_stream_ordered) == (4096, device, -1, False)


def test_memory_is_given_out_again(pool):
    addresses = set()
    for _ in range(10):
        with pool.lease(1000) as lease:
            addresses.add(lease.handle)
    assert len(addresses) == 1 and pool.statistics == (0, 0, 1024, 1, 0)
    pool.trim()
    assert pool.statistics == (0, 0, 0, 0, 0)


def test_other_sizes_take_the_place_of_idle_ones(pool):
    for size in (4096, 512, 2048, 3000, 4096):
        pool.lease(size).close()
        statistics = pool.statistics
        assert statistics.in_use_bytes == 0 and statistics.idle_bytes <= 4096
    assert pool.statistics.idle_bytes == 4096
    pool.trim(4096)
    assert pool.statistics.idle_bytes == 4096
    pool.trim(4095)
    assert pool.statistics.idle_bytes == 0


def test_memory_waits_for_the_copy_that_reads_it(device, pool, stream, held_clock):
    memory = device.allocate(4096, stream=stream)
    with held_clock():
        with pool.lease(4096) as lease:
            np.frombuffer(lease, np.uint8)[:] = 1
            memory.copy_from(lease, stream=stream)
        assert pool.statistics == (0, 0, 4096, 1, 0)
        with pytest.raises(TimeoutError, match="4096 bytes of <StagingPool"):
            pool.lease(4096, timeout=0)
        with pytest.raises(TimeoutError):
            pool.lease(1, timeout=0)
        threads = ThreadPoolExecutor(1)
        waits = threads.submit(pool.lease, 4096)
        until_waiting(pool, 1)
        with pytest.raises(TimeoutError):
            pool.lease(1, timeout=0.02)
        assert not waits.done()
    with waits.result(20) as lease:
        np.frombuffer(lease, np.uint8)[:] = 2
    threads.shutdown()
    answer = np.zeros(4096, np.uint8)
    memory.copy_to(answer, stream=stream)
    assert set(answer.tolist()) == {1}
    memory.close()


def test_arrays_keep_memory(pool):
    lease = pool.lease(4096)
    array = np.frombuffer(lease, np.uint8)
    lease.close()
    assert lease.is_closed
    with pytest.raises(TimeoutError):
        pool.lease(1, timeout=0)
    array[:] = 3
    del array
    pool.lease(4096, timeout=0).close()


@pytest.mark.parametrize("lost", ["dropped", "in a cycle", "raised"])
def test_lost_leases_end(pool, lost):
    lease = pool.lease(4096)
    if lost == "dropped":
        del lease
    elif lost == "in a cycle":
        cycle = [lease]
        cycle.append(cycle)
        del cycle, lease
    else:
        with pytest.raises(ZeroDivisionError), lease:
            1 / 0
    pool.lease(4096, timeout=20).close()


def test_a_lease_that_another_thread_drops(pool):
    """While its maker waits, who alone may end it, without the GIL: CPython leaves it to him. Mutant: one look for garbage."""
    kept = [pool.lease(4096)]

    def drop():
        until_waiting(pool, 1)
        begun = time.monotonic()
        while time.monotonic() - begun < 0.5:  # so that the wait has looked for garbage
            assert pool.statistics.waiting == 1
        kept.clear()

    dropping = threading.Thread(target=drop)
    dropping.start()
    pool.lease(4096, timeout=20).close()
    dropping.join()


def test_who_waits_collects_seldom(pool, monkeypatch):
    """However many wait: one at a time, for a tenth of the time. Mutant: each collects for itself."""
    collections = []

    def collect():
        begin = time.monotonic()
        threading.Event().wait(0.03)
        collections.append((begin, time.monotonic()))

    monkeypatch.setattr(gc, "collect", collect)

    def wait(index):
        with pytest.raises(TimeoutError):
            pool.lease(4096, timeout=2)

    with pool.lease(4096):
        while not collections:  # real ones may have been long, and so the time until the next
            wait(0)
        together(8, wait)
    assert len(collections) >= 2
    for (begin, end), (next_begin, _) in pairwise(collections):
        assert next_begin - end >= min(9 * (end - begin), 10) * 0.99


def test_leases_come_in_turn(pool):
    """A large one is not overtaken by small ones that come after it."""
    first, second = pool.lease(2048), pool.lease(2048)
    order = []

    def wait_for(size):
        lease = pool.lease(size)
        order.append(size)
        lease.close()

    threads = []
    for number, size in enumerate((4096, 512, 1024)):
        threads.append(threading.Thread(target=wait_for, args=(size,)))
        threads[-1].start()
        until_waiting(pool, number + 1)
    first.close()  # enough for the small ones
    for _ in range(5):
        with pytest.raises(TimeoutError):
            pool.lease(1, timeout=0.01)
    assert order == []
    second.close()
    for thread in threads:
        thread.join(20)
    assert order[0] == 4096 and sorted(order) == [512, 1024, 4096] and pool.statistics.waiting == 0


def test_a_finalizer_that_leases(pool):
    """Amid the wait of its own thread, which has the first place in the line."""
    leased = []

    class Garbage:
        def __init__(self, lease):
            self.lease, self.cycle = lease, self

        def __del__(self):
            self.lease.close()
            with pool.lease(512, timeout=20) as lease:
                leased.append(lease.size)

    Garbage(pool.lease(4096))
    with pool.lease(4096, timeout=40) as lease:
        assert lease.size == 4096 and leased == [512]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_a_handler_that_leases(pool):
    """The same of a signal's."""
    first, leased = pool.lease(4096), []

    def handle(*_):
        first.close()
        with pool.lease(512, timeout=20) as lease:
            leased.append(lease.size)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pool.lease(4096, timeout=40) as lease:
            assert lease.size == 4096 and leased == [512]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_cache_in_front_is_refused(pool):
    with pytest.raises(ValueError, match="gives its memory out again itself"):
        CachingMemoryResource(pool)


@needs_graphs
def test_what_a_graph_uses(device, pool, stream, code):
    """It is leased again when the graph is gone."""
    builder = device.create_graph_builder().begin_building()
    lease = pool.lease(4096)
    view = np.frombuffer(lease, np.int32)
    launch(builder, ONE, code.get_kernel("store"), lease, 11)
    graph = builder.end_building().complete()
    builder.close()
    view[0] = 0
    del view
    lease.close()
    graph.launch(stream)
    with pytest.raises(TimeoutError):
        pool.lease(1, timeout=0.01)
    graph.close()
    device.sync()
    pool.lease(4096, timeout=20).close()


def test_waits_end_in_time(pool):
    with pool.lease(4096):
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match="were not there in time"):
            pool.lease(1, timeout=0.3)
        assert 0.3 <= time.monotonic() - begun < 10
    assert pool.statistics.waiting == 0


def test_a_close_ends_waits(pool):
    lease = pool.lease(4096)
    with ThreadPoolExecutor(2) as threads:
        waits = [threads.submit(pool.lease, size) for size in (4096, 1)]
        until_waiting(pool, 2)
        pool.close()
        for wait in waits:
            with pytest.raises(ClosedError, match="StagingPool"):
                wait.result(20)
    assert pool.is_closed
    with pytest.raises(ClosedError):
        pool.lease(1)
    with pytest.raises(ClosedError):
        pool.allocate(1)
    np.frombuffer(lease, np.uint8)[:] = 5
    lease.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the clock of all threads")
def test_a_close_ends_waits_at_once(pool):
    """No time passes, after which a wait would ask again. Mutant: a wait that does not ask."""
    lease = pool.lease(4096)
    with simulated_clock() as clock, ThreadPoolExecutor(2) as threads:
        waits = [threads.submit(pool.lease, size) for size in (4096, 1)]
        clock.wait_for_waiting(2)
        pool.close()
        for wait in waits:
            with pytest.raises(ClosedError, match="StagingPool"):
                wait.result(20)
    lease.close()


@simulated_only
def test_a_closed_pool_frees_all(device, stream, held_clock):
    from ftcuda.testing import simulation

    before = simulation.live()["pinned_allocation"]
    pool = StagingPool(device, 8192)
    memory = device.allocate(1024, stream=stream)
    idle, used, kept = (pool.lease(1024) for _ in range(3))
    with held_clock():
        memory.copy_from(used, stream=stream)
        used.close()
        idle.close()
        assert simulation.live()["pinned_allocation"] == before + 3
        pool.close()
    kept.close()
    del pool
    device.sync()
    assert simulation.live()["pinned_allocation"] == before
    memory.close()


def test_many_threads_and_little_memory(device):
    """Each byte that is copied is its own thread's, though there is memory for two leases and 16 threads want one."""
    pool = StagingPool(device, 2 * 1024)

    def run(index):
        stream = device.create_stream()
        memory = device.allocate(1024, stream=stream)
        for turn in range(20):
            with pool.lease(1024) as lease:
                np.frombuffer(lease, np.uint16)[:] = 100 * index + turn
                memory.copy_from(lease, stream=stream)
            with pool.lease(1024) as lease:
                memory.copy_to(lease, stream=stream)
                stream.sync()
                assert set(np.frombuffer(lease, np.uint16).tolist()) == {100 * index + turn}
        memory.close()
        stream.close()

    together(16, run)
    statistics = pool.statistics
    assert (statistics.in_use_count, statistics.waiting) == (0, 0) and statistics.idle_bytes <= 2048
    pool.close()


def test_as_a_memory_resource(device, pool, stream, code):
    with pool.allocate(64) as buffer, pool.allocate(64, stream=stream) as other:
        np.frombuffer(buffer, np.int32)[:] = 0
        launch(stream, ONE, code.get_kernel("store"), buffer, 9)
        stream.sync()
        assert np.frombuffer(buffer, np.int32)[0] == 9 and other.memory_resource is pool
    with pool.lease(4096), pytest.raises(OutOfMemoryError, match="4096 of the 4096 bytes that it has at most are on lease"):
        pool.allocate(1)
    counted = StatisticsMemoryResource(LimitingMemoryResource(pool, 128))
    with counted.allocate(128):
        with pytest.raises(OutOfMemoryError):
            counted.allocate(64)
        assert counted.statistics.current_bytes == 128
    with pool.lease(0) as nothing:
        assert nothing.size == 0 and nothing.handle == 0 and pool.statistics.in_use_count == 0


def test_hooks_are_told(pool):
    from ftcuda.memory import hooks

    told = []
    with hooks.on_allocate(lambda *arguments, **named: told.append(arguments or named)):
        pool.lease(64).close()
    assert len(told) == 1


@simulated_only
def test_there_is_no_memory(pool):
    """Nothing is taken from the pool, and the next one may have it all."""
    with faults.failing("cuMemHostAlloc", OUT_OF_MEMORY), pytest.raises(OutOfMemoryError):
        pool.lease(4096)
    assert pool.statistics == (0, 0, 0, 0, 0)
    pool.lease(4096, timeout=0).close()


@simulated_only
def test_memory_of_an_unmarked_use_comes_back_when_nothing_runs(device, pool, stream):
    memory = device.allocate(4096, stream=stream)
    lease = pool.lease(4096)
    memory.copy_from(lease, stream=stream)
    with faults.failing("cuEventRecord", OUT_OF_MEMORY), pytest.warns(ftcuda.CUDAWarning):
        lease.close()
        device.sync()
    pool.lease(4096, timeout=20).close()
    memory.close()


@pytest.mark.parametrize(
    ("size", "error", "match"),
    [(-1, ValueError, "from 0"), (4097, ValueError, "which has 4096"), (2**70, ValueError, "from 0"), ("1", TypeError, "int"), (True, TypeError, "int")],
)
def test_bad_sizes(device, pool, size, error, match):
    with pytest.raises(error, match=match):
        pool.lease(size)
    if size != 4097:
        with pytest.raises(error, match=match):
            StagingPool(device, size)


def test_bad_pools(device, pool):
    with pytest.raises(ValueError, match="1 at least"):
        StagingPool(device, 0)
    with pytest.raises(TypeError, match="constant"):
        pool.__init__(device, 4096)
    for timeout, error in ((-1, ValueError), (True, TypeError), ("1", TypeError), (float("nan"), ValueError)):
        with pytest.raises(error, match="timeout|real number"):
            pool.lease(1, timeout=timeout)
    assert StagingPool(None, 1).lease(1).size == 1
    assert StagingPool(0, 1).device is Device(0)
