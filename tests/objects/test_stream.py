import threading

import numpy as np
import pytest

from ftcuda import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    ClosedError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Stream,
    StreamOptions,
    launch,
)
from ftcuda.testing import together
from tests.conftest import simulated_only


def test_options(device):
    plain = device.create_stream()
    assert plain.is_nonblocking and plain.device == device
    blocking = device.create_stream(options=StreamOptions(nonblocking=False, priority=-1))
    assert not blocking.is_nonblocking and blocking.priority == -1
    assert device.create_stream(options={"priority": 0}).priority == 0


@pytest.mark.parametrize("priority", [1, -100])
def test_priority_out_of_range(device, priority):
    with pytest.raises(ValueError, match="priority must be from"):
        device.create_stream(options={"priority": priority})


def test_wrong_options(device):
    with pytest.raises(TypeError, match="StreamOptions"):
        device.create_stream(options=3)
    with pytest.raises(TypeError, match="Device.create_stream"):
        Stream()


def test_close_is_idempotent_and_final(stream):
    stream.close()
    stream.close()
    assert stream.is_closed
    for use in (
        stream.sync,
        stream.record,
        lambda: stream.is_done,
        lambda: stream.wait(stream),
        lambda: stream.exclusive().__enter__(),
    ):
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_wait_orders_streams(device, pinned):
    stream, other = device.create_stream(), device.create_stream()
    buffer, _ = pinned(np.zeros(4, np.int32))
    target = device.allocate(16, stream=stream)
    target.fill(7, stream=stream)
    other.wait(stream)
    target.copy_to(buffer, stream=other)
    other.sync()
    assert bytes(buffer) == b"\7" * 16
    event = other.record()
    stream.wait(event)
    stream.sync()
    assert stream.is_done and event.is_done
    stream.close()
    other.close()


def test_protocol(stream):
    assert stream.__cuda_stream__() == (0, stream.handle)
    wrapped = Stream.from_handle(stream.handle)
    assert wrapped == stream and wrapped.handle == stream.handle
    wrapped.sync()
    wrapped.close()
    assert not stream.is_closed
    stream.sync()


class Foreign:
    def __init__(self, value):
        self._value = value

    def __cuda_stream__(self):
        return self._value


def test_foreign_streams(device, stream):
    stream.wait(Foreign((0, stream.handle)))
    assert device.create_stream(Foreign((0, stream.handle))).handle == stream.handle
    with pytest.raises(TypeError, match="must return"):
        stream.wait(Foreign(5))
    with pytest.raises(ValueError, match="version 1"):
        stream.wait(Foreign((1, stream.handle)))
    with pytest.raises(ValueError, match="__cuda_stream__"):
        stream.wait(5)
    for wrong in ((0, "7"), (0, None), (0, -1), (0, 2**64)):
        with pytest.raises((TypeError, ValueError), match="__cuda_stream__"):
            stream.wait(Foreign(wrong))


HANDLES = {0: LEGACY_DEFAULT_STREAM, 1: LEGACY_DEFAULT_STREAM, 2: PER_THREAD_DEFAULT_STREAM}


@pytest.mark.parametrize("handle", HANDLES)
def test_handles_of_default_streams(device, handle):
    """0 is what CuPy and torch call the legacy default stream by."""
    meant = HANDLES[handle]
    for found in (Stream.from_handle(handle), Stream.from_handle(np.int64(handle))):
        assert found == meant and hash(found) == hash(meant) and repr(found) == repr(meant)
        assert found.__cuda_stream__() == meant.__cuda_stream__() and found.device == device
        found.close()
        found.sync()
        assert not found.is_closed
    wrapped = device.create_stream(Foreign((0, handle)))
    assert wrapped == meant and wrapped.device == device


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock, and reads the violations of the whole process")
@pytest.mark.parametrize("handle", HANDLES)
def test_work_is_ordered_by_handles_of_default_streams(device, code, held_clock, handle):
    """A launch, waits both ways and a free by the stand-in of another library. The oracle reports missing order."""
    from ftcuda.testing import simulation

    theirs, ours = Foreign((0, handle)), device.create_stream()
    buffer = device.allocate(4, stream=ours)
    host = LegacyPinnedMemoryResource().allocate(4)
    store, config = code.get_kernel("store"), LaunchConfig(grid=1, block=1)
    with simulation.watched_races():
        with held_clock():
            Stream.from_handle(handle).wait(ours)  # which has made the buffer
            launch(theirs, config, store, buffer, 1)
            ours.wait(theirs)
            launch(ours, config, store, buffer, 2)
            Stream.from_handle(handle).wait(ours)
            launch(theirs, config, store, buffer, 3)
            event = Stream.from_handle(handle).record()
            ours.wait(event)
            buffer.copy_to(host, stream=theirs)
            buffer.close(theirs)
        device.sync()
    assert simulation.violations() == [] and np.frombuffer(host, np.int32)[0] == 3
    ours.close()


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM])
def test_default_streams(device, default, code, pinned):
    buffer, view = pinned(np.zeros(4, np.int32))
    target = device.allocate(16, stream=default)
    target.fill(3, stream=default)
    target.copy_to(buffer, stream=default)
    default.sync()
    assert bytes(buffer) == b"\3" * 16
    default.close()
    assert not default.is_closed
    target.close()


def test_a_section_holds_other_threads_back(stream):
    """Mutant: with begin_exclusive() not setting its bit, the other thread's record is submitted at once."""
    submitted = threading.Event()

    def intrude():
        stream.record()
        submitted.set()

    intruder = threading.Thread(target=intrude)
    with stream.exclusive():
        stream.record()
        intruder.start()
        assert not submitted.wait(0.3)
        stream.record()
    intruder.join()
    assert submitted.is_set()


def test_exclusive_sections_are_contiguous(device, stream, code, pinned):
    append = code.get_kernel("append")
    config = LaunchConfig(grid=1, block=1)
    threads, rounds, steps = 3, 20, 5
    log, entries = pinned(np.zeros(1 + (threads * steps + 40) * rounds, np.int32))

    def submit(index):
        for turn in range(rounds):
            if index == threads:  # the intruder, which knows no sections
                for _ in range(40):
                    launch(stream, config, append, log, -1)
                continue
            with stream.exclusive():
                for step in range(steps):
                    launch(stream, config, append, log, 1000 * index + steps * turn + step)

    together(threads + 1, submit)
    stream.sync()
    assert entries[0] == len(entries) - 1
    first_steps = [at for at, entry in enumerate(entries) if at > 0 and entry >= 0 and entry % 1000 % steps == 0]
    assert len(first_steps) == threads * rounds
    for at in first_steps:
        assert list(entries[at : at + steps]) == list(range(entries[at], entries[at] + steps))


@simulated_only
@pytest.mark.thread_unsafe(reason="counts calls of the whole process")
def test_properties_do_not_call_the_driver(stream):
    from ftcuda.testing import simulation

    before = simulation.calls()
    assert (stream.handle, stream.priority, stream.is_nonblocking, stream.is_closed) is not None
    assert simulation.calls() == before


def test_a_closed_stream_gives_no_handle_away(device):
    """A wrapper of another library asks at each use; the handle may be another stream's by then."""
    stream = device.create_stream()

    class Wrapper:
        def __cuda_stream__(self):
            return stream.__cuda_stream__()

    assert device.create_stream(Wrapper()).handle == stream.handle
    stream.close()
    for use in (stream.__cuda_stream__, lambda: device.create_stream(Wrapper()), lambda: device.allocate(8, stream=Wrapper())):
        with pytest.raises(ClosedError, match="closed"):
            use()
