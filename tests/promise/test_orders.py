"""Two steps of one call whose order matters: the simulated driver holds one thread between them, and another one looks.

Each test names the mutant in stress/mutation/mutants.toml that swaps its steps or miscounts.
"""

import ctypes
import gc
import threading
import warnings
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace

import pytest

from ftcuda import (
    PER_THREAD_DEFAULT_STREAM,
    CachingMemoryResource,
    ClosedError,
    CUDAWarning,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    OutOfMemoryError,
    SynchronousMemoryResource,
    driver_info,
    launch,
)
from ftcuda.testing import Schedule, faults, simulation, together
from tests.conftest import simulated_only
from tests.kernels import SAXPY, compile_code

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="holds driver calls of the whole process")]

ONE = LaunchConfig(grid=1, block=1)


def beside(held, call, other):
    """Runs `call` in one thread until the fault `held` holds it, then `other(finish)` in another one.

    ``finish()`` lets the call go and waits for its end. Returns what `call` returned.
    """
    ended = threading.Event()

    def finish():
        held.release()
        assert ended.wait(10)

    def act(index):
        if index == 0:
            try:
                return call()
            finally:
                ended.set()
        while not held.waiting:
            assert not ended.is_set(), "the call ended and was not held"
        try:
            return other(finish)
        finally:
            held.release()

    return together(2, act)[0]


@contextmanager
def no_free_races():
    """For its block, which stops the clock, a free must come after all work with the memory; other races are by intent."""
    with simulation.watched_races():
        with simulation.held_clock():
            yield
        Device(0).sync()
    reports = simulation.violations()
    simulation.clear_violations()
    assert not any("a free" in report or "memory set aside" in report for report in reports), reports


@pytest.fixture
def driver():
    return ctypes.CDLL(driver_info().path)


@contextmanager
def blocked(driver, stream):
    """For its block, nothing that is submitted to `stream` is done."""
    go = threading.Event()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go.wait(30))
    assert driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None) == 0
    try:
        yield
    finally:
        go.set()
        stream.sync()


@pytest.fixture
def streams(device):
    made = [device.create_stream() for _ in range(4)]
    yield made
    device.sync()
    for stream in made:
        stream.close()


# ---- Events ----------------------------------------------------------------------------------------------------------


def test_a_query_answers_for_the_records_before_it(stream):
    """Another thread records between the driver's answer and the end of the query: nothing is known of that record.

    Mutant: queries-count-records-late.
    """
    event = stream.record()
    event.sync()
    with faults.holding("cuEventQuery", after=True) as query, simulation.held_clock():

        def record(finish):
            stream.record(event)
            finish()
            assert not event.is_done

        assert beside(query, lambda: event.is_done, record)
    event.sync()
    assert event.is_done


def test_a_query_amid_a_record_is_not_remembered(stream):
    """The record takes effect after the query, and returns after the next one. Mutant: done-is-known-amid-a-record."""
    event = stream.record()
    event.sync()
    with (
        faults.holding("cuEventRecord") as before,
        faults.holding("cuEventRecord", after=True) as after,
        simulation.held_clock(),
    ):

        def query(finish):
            done = event.is_done  # of the record before this one
            before.release()
            after.wait()
            try:
                assert done and not event.is_done
            finally:
                after.release()

        beside(before, lambda: stream.record(event), query)
    event.sync()


def test_what_is_known_goes_before_the_driver_hears_of_a_record(stream):
    """Mutant: records-are-counted-late."""
    event = stream.record()
    event.sync()
    assert event.is_done
    with faults.holding("cuEventRecord", after=True) as record, simulation.held_clock():

        def query(finish):
            assert not event.is_done

        beside(record, lambda: stream.record(event), query)
    event.sync()


# ---- The uses of a buffer --------------------------------------------------------------------------------------------


@pytest.fixture
def targets(device):
    made = [SynchronousMemoryResource(device).allocate(64) for _ in range(6)]
    yield made
    for target in made:
        target.close()


def crowd(device, buffer, targets):
    """Reads a buffer in so many streams that those which are finished leave its uses."""
    for target in targets:
        passing = device.create_stream()
        buffer.copy_to(target, stream=passing)
        passing.close()


def test_a_stream_with_a_submission_inside_is_not_finished(device, streams, targets):
    """It is closed, and has nothing to do yet: what is being submitted comes. Mutant: finished-streams-have-guests."""
    buffer = device.allocate(64, stream=streams[0])
    closing = device.create_stream()
    device.sync()
    with no_free_races(), faults.holding("cuMemcpyAsync") as submission:

        def close(finish):
            closing.close()
            crowd(device, buffer, targets[1:])
            finish()
            buffer.close()

        beside(submission, lambda: buffer.copy_to(targets[0], stream=closing), close)


def test_a_slot_is_free_when_its_stream_is_gone(device, streams, targets):
    """Another thread looks for a slot while the finished stream of one is being destroyed.

    Mutant: forgotten-streams-are-given-back-first.
    """
    buffer = device.allocate(64, stream=streams[0])
    for value in range(3):  # with the home stream, as many as the first block of uses has slots
        passing = device.create_stream()
        buffer.fill(value, stream=passing)
        passing.close()
    device.sync()
    with no_free_races(), faults.holding("cuStreamDestroy_v2") as destruction:

        def read(finish):
            buffer.copy_to(targets[4], stream=streams[2])
            finish()
            buffer.close()

        beside(destruction, lambda: buffer.copy_to(targets[3], stream=streams[1]), read)


def test_an_idle_home_stream_is_not_finished(device, streams, targets):
    """It is open, and what comes after is not added again. Mutant: open-streams-are-finished."""
    buffer = device.allocate(64, stream=streams[0])
    device.sync()
    with no_free_races():
        crowd(device, buffer, targets[1:])
        buffer.copy_to(targets[0], stream=streams[0])
        buffer.close()


def test_a_default_streams_work_is_marked_before_the_lease_goes(device, streams):
    """Another thread closes between the two. Mutant: default-stream-work-is-marked-late."""
    buffer = device.allocate(64, stream=streams[0])
    device.sync()
    with no_free_races(), faults.holding("cuEventRecord") as mark:

        def close(finish):
            buffer.close()
            finish()

        beside(mark, lambda: buffer.fill(1, stream=PER_THREAD_DEFAULT_STREAM), close)


def test_the_event_of_a_free_is_its_own_until_the_wait(device, streams):
    """Another thread takes an event meanwhile, and records it elsewhere. Mutant: frees-lend-their-events."""
    home, second, third, fourth = streams
    buffer = device.allocate(64, stream=home)
    second.wait(home)
    device.sync()
    with no_free_races(), faults.holding("cuStreamWaitEvent") as wait:
        buffer.fill(1, stream=second)

        def record(finish):
            fourth.wait(third)
            finish()

        beside(wait, buffer.close, record)


def test_a_refused_launch_gives_back_no_lease_that_it_did_not_get(device, streams, code):
    """A fill is inside while the buffer closes; launches that come too late must not free it. Mutant: refused-uses-end."""
    buffer = device.allocate(64, stream=streams[0])
    streams[1].wait(streams[0])
    with faults.holding("cuMemsetD8Async") as fill:

        def close(finish):
            buffer.close()
            with pytest.raises(ClosedError):
                launch(streams[1], ONE, code.get_kernel("increment"), buffer)
            before = simulation.violations()
            finish()
            device.sync()
            assert before == simulation.violations() == []

        beside(fill, lambda: buffer.fill(1, stream=streams[0]), close)


# ---- Handles ---------------------------------------------------------------------------------------------------------

def call_later(world):
    """By an event, since others may capture a stream whose handle they know."""
    assert world.stream.handle
    world.stream.when_done(int)


CALLS = {
    "stream sync": ("cuStreamSynchronize", "stream", lambda w: w.stream.sync()),
    "stream query": ("cuStreamQuery", "stream", lambda w: w.stream.is_done),
    "submission": ("cuEventRecord", "stream", lambda w: w.stream.record(w.start)),
    "when done": ("cuEventRecord", "stream", call_later),
    "event sync": ("cuEventSynchronize", "event", lambda w: w.event.sync()),
    "event query": ("cuEventQuery", "event", lambda w: w.event.is_done),
    "record": ("cuEventRecord", "event", lambda w: w.stream.record(w.event)),
    "wait": ("cuStreamWaitEvent", "event", lambda w: w.stream.wait(w.event)),
    "elapsed": ("cuEventElapsedTime", "event", lambda w: w.event - w.start),
    "elapsed from": ("cuEventElapsedTime", "start", lambda w: w.event - w.start),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_handle_outlives_the_calls_inside(device, name):
    """It is closed while a call is on its way to the driver. Mutant: the mutants that take a lease away."""
    entry, closed, call = CALLS[name]
    stream = device.create_stream()
    start, event = (stream.record(options={"timing_enabled": True}) for _ in range(2))
    stream.sync()
    world = SimpleNamespace(stream=stream, start=start, event=event)
    with faults.holding(entry) as inside:

        def close(finish):
            getattr(world, closed).close()
            finish()

        beside(inside, lambda: call(world), close)
    assert simulation.violations() == []
    for thing in (start, event, stream):
        thing.close()


def test_a_submission_beside_the_close_of_its_stream(device):
    """Where there are schedule points, the close also comes between looking and entering. Mutant: submission-without-lease."""
    event = device.create_event()
    for seed in range(60):
        stream = device.create_stream()

        def act(index, stream=stream):
            if index == 0:
                stream.close()
                return
            with suppress(ClosedError):
                stream.record(event)

        together(2, act, schedule=Schedule("random", seed=seed))
    assert simulation.violations() == []
    event.close()


# ---- Accounts, modules, sections -------------------------------------------------------------------------------------


def test_an_account_is_credited_after_the_free(device):
    """Whom the limit admits finds memory. Mutant: accounts-are-credited-early."""
    limiting = LimitingMemoryResource(SynchronousMemoryResource(device), 96)
    buffer = limiting.allocate(96)
    with faults.holding("cuMemFree_v2") as free:

        def allocate(finish):
            with pytest.raises(OutOfMemoryError, match="of the 96 that it allows"):
                limiting.allocate(64)
            finish()
            limiting.allocate(64).close()

        beside(free, buffer.close, allocate)


def test_what_is_retired_during_a_synchronisation_waits_for_the_next(device, stream):
    """The kernel was launched after the wait, its module is let go of before the end. Mutant: retired-is-taken-late."""
    unloads = simulation.calls("cuModuleUnload")
    with faults.holding("cuCtxSynchronize", after=True) as wait:

        def retire(finish):
            kernel = compile_code(SAXPY).get_kernel("empty")  # made here: the last reference goes here
            with simulation.held_clock():
                launch(stream, ONE, kernel)
                del kernel
                finish()
                assert simulation.calls("cuModuleUnload") == unloads

        beside(wait, device.sync, retire)
    device.sync()
    assert simulation.calls("cuModuleUnload") == unloads + 1


def test_streams_closed_in_their_own_sections_are_destroyed(device):
    """The section's bit does not count as a lease. Mutant: sections-count-as-somebody."""
    destroyed = simulation.calls("cuStreamDestroy_v2")
    for _ in range(3):
        stream = device.create_stream()
        with stream.exclusive():
            stream.close()
        assert stream.is_closed
    assert simulation.calls("cuStreamDestroy_v2") == destroyed + 3


# ---- Events that are used again --------------------------------------------------------------------------------------


def lend_elsewhere(streams, driver, finish):
    """Takes an event while a call is held, records it where nothing is done, and lets the call go: it must not wait for that."""
    with blocked(driver, streams[2]):
        streams[3].wait(streams[2])
        finish()


def test_the_event_of_a_cached_piece_is_its_own_until_the_wait(device, streams, driver):
    """Mutant: caches-lend-their-events."""
    cache = CachingMemoryResource(LegacyPinnedMemoryResource())
    buffer = cache.allocate(64)
    buffer.fill(1, stream=streams[0])
    buffer.close()
    streams[0].sync()
    with faults.holding("cuStreamWaitEvent") as wait:
        beside(wait, cache.trim, lambda finish: lend_elsewhere(streams, driver, finish))
    assert cache.statistics.cached_count == 0


def test_the_event_of_a_chunk_is_its_own_until_the_end_of_the_wait(device, streams, driver):
    """Mutant: chunks-lend-their-events."""
    buffer, host = device.allocate(64, stream=streams[0]), bytearray(64)
    buffer.fill(7, stream=streams[0])
    with faults.holding("cuEventSynchronize") as wait:

        def download():
            buffer.copy_to(host, stream=streams[0])

        beside(wait, download, lambda finish: lend_elsewhere(streams, driver, finish))
    assert host == bytes([7] * 64)
    buffer.close()


# ---- One thread ------------------------------------------------------------------------------------------------------


def test_a_named_stream_orders_the_free(device, streams, code):
    """After what it was given by others too, of whom ftcuda knows nothing. Mutant: buffers-close-before-their-stream-is-known."""
    buffer = device.allocate(64, stream=streams[0])
    device.sync()
    with no_free_races():
        launch(streams[1], ONE, code.get_kernel("store"), buffer.handle, 1)
        buffer.close(streams[1])


@pytest.mark.parametrize("use", ["fill", "launch"])
def test_a_closed_stream_does_not_become_a_use(device, streams, code, use):
    """It would be destroyed again when the buffer lets it go. Mutant: fills- and launches-use-before-they-submit."""
    buffer, closed = device.allocate(64, stream=streams[0]), device.create_stream()
    closed.close()
    with pytest.raises(ClosedError):
        if use == "fill":
            buffer.fill(1, stream=closed)
        else:
            launch(closed, ONE, code.get_kernel("increment"), buffer)
    buffer.close()
    device.sync()
    assert simulation.violations() == []


def test_a_cache_gives_the_youngest_in_a_streams_order(device, streams):
    """Which the device's own caches still know. Mutant: caches-give-the-oldest."""
    cache = CachingMemoryResource(SynchronousMemoryResource(device))
    first, second = (cache.allocate(64, stream=streams[0]) for _ in range(2))
    address = second.handle
    first.close()
    second.close()
    assert cache.allocate(64, stream=streams[0]).handle == address


def test_a_cache_gives_the_oldest_of_what_the_host_reaches(device, streams, driver):
    """The youngest may still be in use. Mutant: caches-give-the-oldest."""
    cache = CachingMemoryResource(LegacyPinnedMemoryResource())
    first, second = (cache.allocate(64) for _ in range(2))
    first.fill(1, stream=streams[0])
    first.close()
    device.sync()
    with blocked(driver, streams[1]):
        second.fill(1, stream=streams[1])
        second.close()
        cache.allocate(64)
        assert cache.statistics.hits == 1


def test_what_was_refused_is_not_in_use(device):
    """Mutant: caches-use-what-they-did-not-get."""
    cache = CachingMemoryResource(SynchronousMemoryResource(device))
    stream = device.create_stream()
    with faults.failing("cuMemAlloc_v2", 2):
        buffer = cache.allocate(64, stream=stream)  # at the second try
    assert cache.statistics.in_use_count == 1
    buffer.close()
    assert cache.statistics.in_use_count == 0
    stream.close()


def test_one_capturing_stream_among_others_delays_a_free(device, streams, driver):
    """Mutant: the-last-use-says-whether-one-is-captured."""
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    home, capturing, last, _ = streams
    buffer = device.allocate(64, stream=home)
    for stream in (capturing, last):
        stream.wait(home)
        buffer.fill(0, stream=stream)
    device.sync()
    graph = ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(capturing.handle), 1) == 0
    buffer.close()
    assert driver.cuStreamEndCapture(ctypes.c_void_p(capturing.handle), ctypes.byref(graph)) == 0
    assert driver.cuGraphDestroy(graph) == 0
    device.sync()


def test_too_many_deferred_errors_are_counted(device, driver):
    """Mutant: deferred-errors-take-one-more, deferred-errors-are-announced-early."""
    events = [device.create_event() for _ in range(70)]
    handles = [event.handle for event in events]
    for count, expected in ((1, ["cannot destroy event"]), (69, ["cannot destroy event"] * 64 + ["5 more failures"])):
        with ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(faults.failing("cuEventDestroy_v2", 999))
            del events[:count]
            gc.collect()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", CUDAWarning)
            device.sync()
        assert [str(warning.message)[: len(text)] for warning, text in zip(seen, expected, strict=True)] == expected
    for handle in handles:
        assert driver.cuEventDestroy_v2(ctypes.c_void_p(handle)) == 0
