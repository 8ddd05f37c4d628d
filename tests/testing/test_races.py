"""The oracle for missing order between streams."""

import pytest

from ftcuda import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Buffer, LaunchConfig, launch
from ftcuda.testing import simulation, together
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="reads the violations of the whole process")]

ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture
def found(device):
    """Runs a function with races watched; returns what was reported. It is no failure of the test then."""

    def run(function):
        with simulation.watched_races():
            function()
            device.sync()
        reported = simulation.violations()
        simulation.clear_violations()
        return reported

    return run


@pytest.fixture(params=["cache", "pool"])
def source(request, device):
    """What buffers come from, for tests that free while the clock is held: a free of plain memory would wait for it."""
    if request.param == "cache":
        return device
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    return device.memory_resource.upstream


@pytest.fixture
def streams(device):
    made = [device.create_stream() for _ in range(3)]
    yield made
    for stream in made:
        stream.close()


def test_two_fills_without_an_event(found, device, streams):
    """One is done long before the other is submitted; nobody waited for it, and that is reported."""
    buffer = device.allocate(64, stream=streams[0])
    device.sync()

    def race():
        buffer.fill(1, stream=streams[0])
        with simulation.held_clock():  # so that no query sees the first one done by chance
            buffer.fill(2, stream=streams[1])

    (report,) = found(race)
    assert "a fill" in report and "bytes 0 to 64 of an allocation of 64" in report
    buffer.close()


@pytest.mark.parametrize("order", ["event", "stream", "host", "chain"])
def test_order_is_recognised(found, device, streams, order):
    first, second, third = streams
    buffer = device.allocate(64, stream=first)
    device.sync()

    def ordered():
        buffer.fill(1, stream=first)
        if order == "event":
            second.wait(first.record())
        elif order == "stream":
            second.wait(first)
        elif order == "host":
            first.sync()
        else:
            third.wait(first)
            second.wait(third)
        buffer.fill(2, stream=second)

    assert found(ordered) == []
    buffer.close()


def test_kernels_in_clusters(found, device, streams, code):
    """Their blocks are watched like any others: four write to one place, of two launches."""
    if not device.features.cluster_launch:
        pytest.skip(reason="this driver profile has no clusters")
    first, second, _ = streams
    config = LaunchConfig(grid=1, cluster=2, block=1)
    buffer = device.allocate(64, stream=first)
    buffer.fill(0, stream=first)
    device.sync()

    def race(other):
        launch(first, config, code.get_kernel("store"), buffer.handle, 1)
        launch(second, config, code.get_kernel("store"), other, 2)

    assert found(lambda: race(buffer.handle + 4)) == []
    (report,) = found(lambda: race(buffer.handle))
    assert "kernel store" in report and "bytes 0 to 4" in report
    buffer.close()


def test_kernels_are_known_by_their_exact_ranges(found, device, streams, code):
    """Stores to different words do not race; to the same word they do; reads beside reads do not; nor atomics."""
    first, second, _ = streams
    store, increment = code.get_kernel("store"), code.get_kernel("increment")
    buffer = device.allocate(64, stream=first)
    buffer.fill(0, stream=first)
    device.sync()

    def both(one, other):
        def race():
            launch(first, ONE, *one)
            launch(second, ONE, *other)

        return race

    assert found(both((store, buffer.handle, 1), (store, buffer.handle + 4, 2))) == []
    assert found(both((increment, buffer), (increment, buffer))) == []
    (report,) = found(both((store, buffer.handle, 1), (store, buffer.handle, 2)))
    assert "kernel store" in report and "bytes 0 to 4" in report
    (report,) = found(both((increment, buffer), (store, buffer.handle, 2)))
    assert "updates" in report and "writes" in report
    buffer.close()


@pytest.mark.parametrize("cached", [True, False])
def test_a_free_comes_after_every_use(found, device, streams, cached):
    """ftcuda's own promise: close() orders the free after the work of all streams. Without the cache, of a pool's or plain memory."""
    first, second, _ = streams
    source = device if cached else device.memory_resource.upstream

    def used_elsewhere():
        buffer = source.allocate(64, stream=first)
        second.wait(first)
        buffer.fill(1, stream=second)
        buffer.close()

    assert found(used_elsewhere) == []


def test_a_free_comes_after_streams_that_were_closed(found, device, streams, source):
    """Mutant: without the query in is_finished() the fifth use forgets the closed streams, whose work is still queued."""

    def used_and_closed():
        buffer = source.allocate(64, stream=streams[0])
        device.sync()
        with simulation.held_clock():
            for value in range(6):
                passing = device.create_stream()
                buffer.fill(value, stream=passing)
                passing.close()
            buffer.close()

    reports = found(used_and_closed)  # the fills race, by intent; the free does not, nor what stands for it in a cache
    assert reports and not any("a free" in report or "memory set aside" in report for report in reports), reports


@pytest.mark.parametrize("per_thread", [True, False])
def test_a_free_comes_after_default_streams(found, device, streams, source, per_thread):
    """Another thread's default stream cannot be named at the time of the free: the event behind its work was kept.

    Mutant: without mark_use() in end_use() the free waits for this thread's own default stream.
    """

    def used_by_another_thread():
        buffer = source.allocate(64, stream=streams[0])
        device.sync()
        default = PER_THREAD_DEFAULT_STREAM if per_thread else LEGACY_DEFAULT_STREAM
        with simulation.held_clock():
            together(1, lambda index: buffer.fill(1, stream=default))
            buffer.close()

    assert found(used_by_another_thread) == []


def test_an_export_waits_for_another_threads_default_stream(found, device):
    """Each thread has a per-thread default stream of its own, which the consumer's is not, though both go by one name."""
    buffer = device.allocate(1 << 20, stream=device.create_stream())
    same = Buffer.from_handle(buffer.handle, buffer.size)  # whose uses the buffer does not know

    def exported():
        together(1, lambda _: buffer.fill(1, stream=PER_THREAD_DEFAULT_STREAM))
        buffer.__dlpack__(stream=2)
        same.fill(2, stream=PER_THREAD_DEFAULT_STREAM)

    assert found(exported) == []
    same.close()
    buffer.close()


def test_an_export_needs_no_current_context(device):
    """The legacy default stream is made to wait, of which the driver must know whose it is."""
    buffer = device.allocate(64)
    together(1, lambda _: buffer.fill(1, stream=PER_THREAD_DEFAULT_STREAM))
    together(1, lambda _: buffer.__cuda_array_interface__)  # in a thread that has used nothing yet
    buffer.close()
