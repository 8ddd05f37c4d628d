"""Promise 2 and 5: close() may race with anything; nothing is freed under pending work."""

import numpy as np
import pytest

from ftcuda import ClosedError, LaunchConfig, launch
from ftcuda.testing import simulation, together
from tests.conftest import simulated_only

ROUNDS = 60
ONE = LaunchConfig(grid=1, block=1)


def closed_or_done(call):
    """Runs `call`; True if it completed, False if it found the object closed. Anything else is a failure."""
    try:
        call()
    except ClosedError:
        return False
    return True


@pytest.mark.parametrize("use", ["sync", "record", "is_done", "launch", "wait", "fill", "exclusive"])
def test_closing_a_stream_against(use, device, code):
    """Mutant: without the lease in Submission or synchronize() the driver is called with a destroyed handle."""
    increment = code.get_kernel("increment")

    def run(stream, other, counter):
        def exclusive():
            with stream.exclusive():
                pass

        return {
            "sync": stream.sync, "record": stream.record, "is_done": lambda: stream.is_done, "wait": lambda: other.wait(stream),
            "launch": lambda: launch(stream, ONE, increment, counter), "fill": lambda: counter.fill(0, stream=stream), "exclusive": exclusive,
        }[use]  # fmt: skip

    other = device.create_stream()
    for _ in range(ROUNDS):
        stream = device.create_stream()
        counter = device.allocate(4, stream=stream)
        call = run(stream, other, counter)
        together(4, lambda index, call=call, stream=stream: stream.close() if index == 0 else closed_or_done(call))
        assert stream.is_closed
        counter.close()
    other.close()


@pytest.mark.parametrize("use", ["fill", "copy", "launch", "close", "view"])
def test_closing_a_buffer_against(use, device, stream, code):
    """Mutant: without the lease in begin_use() work is submitted with freed memory."""
    increment = code.get_kernel("increment")
    target = device.allocate(4, stream=stream)
    for _ in range(ROUNDS):
        buffer = device.allocate(4, stream=stream)
        other = device.create_stream()
        other.wait(stream)
        calls = {
            "fill": lambda: buffer.fill(1, stream=other), "copy": lambda: buffer.copy_to(target, stream=other),
            "launch": lambda: launch(other, ONE, increment, buffer), "close": buffer.close, "view": lambda: buffer.size,
        }  # fmt: skip
        call = calls[use]
        together(4, lambda index, call=call, buffer=buffer: buffer.close() if index == 0 else closed_or_done(call))
        assert buffer.is_closed
        other.close()
    target.close()


def test_closing_an_event_against_everything(device, stream):
    for _ in range(ROUNDS):
        event = device.create_event()
        calls = [
            event.close,
            event.sync,
            lambda: event.is_done,
            lambda: stream.record(event),
            lambda: stream.wait(event),
        ]
        together(5, lambda index, calls=calls: closed_or_done(calls[index]))
        assert event.is_closed


@simulated_only
@pytest.mark.thread_unsafe(reason="counts calls of the whole process")
@pytest.mark.parametrize(
    ("make", "entry"), [("create_stream", "cuStreamDestroy_v2"), ("create_event", "cuEventDestroy_v2")]
)
def test_many_closers_destroy_once(device, make, entry):
    """Mutant: with enter() as a plain fetch_add, handles are destroyed twice."""
    objects = [getattr(device, make)() for _ in range(ROUNDS)]
    before = simulation.calls(entry)
    together(8, lambda index: [thing.close() for thing in objects])
    assert simulation.calls(entry) - before == ROUNDS


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
@pytest.mark.parametrize("plain", [False, True])
def test_a_buffer_outlives_work_on_other_streams(device, code, plain):
    """Mutant: without the use in begin_use() the free comes first, and the simulated driver sees it."""
    from ftcuda import SynchronousMemoryResource

    home, other = device.create_stream(), device.create_stream()
    resource = SynchronousMemoryResource(device) if plain else device.memory_resource
    buffer = resource.allocate(4, stream=home)
    home.sync()

    def close_while_pending(index):
        with simulation.held_clock():
            launch(other, ONE, code.get_kernel("increment"), buffer)
            if plain or not resource.is_stream_ordered:
                simulation.release_clock()  # closing waits for the work, which must be able to run
            buffer.close()

    together(1, close_while_pending)
    other.sync()
    home.sync()
    assert simulation.violations() == []
    home.close()
    other.close()


def test_threads_that_exit_first(device, code):
    """Streams and buffers of a thread that is gone are as good as any."""

    def make(index):
        stream = device.create_stream()
        buffer = device.allocate(4, stream=stream)
        buffer.fill(0, stream=stream)
        return stream, buffer

    for stream, buffer in together(4, make):
        launch(stream, ONE, code.get_kernel("increment"), buffer)
        stream.sync()
        stream.close()
        buffer.close()


def test_a_view_beside_a_close_is_whole(pinned):
    """Mutant: views without a lease, whose memory goes with close()."""
    for _ in range(ROUNDS):
        buffer, view = pinned(np.zeros(4, np.uint8))
        del view

        def work(index, buffer=buffer):
            if index == 0:
                return buffer.close()
            try:
                return memoryview(buffer)
            except ClosedError:
                return None

        _, view = together(2, work)
        assert buffer.is_closed and (view is None or bytes(view) == bytes(4))


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the live handles of the whole process")
def test_a_long_lived_buffer_lets_finished_streams_go(device, stream):
    """Mutant: without forget_if_finished() each of these streams lives as long as the buffer."""
    weights = device.allocate(64, stream=stream)
    weights.fill(0, stream=stream)
    stream.sync()
    before = simulation.live()["stream"]
    for _ in range(100):
        passing = device.create_stream()
        weights.fill(1, stream=passing)
        passing.sync()
        passing.close()
    assert simulation.live()["stream"] <= before + 8
    weights.close()
