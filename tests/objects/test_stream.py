import threading

import numpy as np
import pytest

from ftcuda import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    ClosedError,
    LaunchConfig,
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
    with pytest.raises(TypeError, match="__cuda_stream__"):
        stream.wait(5)
    with pytest.raises(ValueError, match="handle of 0"):
        Stream.from_handle(0)


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
    """Sabotage: with begin_exclusive() not setting its bit, the other thread's record is submitted at once."""
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


def test_exclusive_is_reentrant_and_bound_to_its_thread(stream):
    with stream.exclusive(), stream.exclusive():
        stream.record()
    section = stream.exclusive()
    section.__enter__()

    def leave(index):
        with pytest.raises(RuntimeError, match="did not begin it"):
            section.__exit__(None, None, None)

    together(1, leave)
    section.__exit__(None, None, None)


@simulated_only
@pytest.mark.thread_unsafe(reason="counts calls of the whole process")
def test_properties_do_not_call_the_driver(stream):
    from ftcuda.testing import simulation

    before = simulation.calls()
    assert (stream.handle, stream.priority, stream.is_nonblocking, stream.is_closed) is not None
    assert simulation.calls() == before
