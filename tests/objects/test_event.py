import threading

import pytest

from ftcuda import ClosedError, Event, EventOptions
from ftcuda.testing import together
from tests.conftest import simulated_only


def test_timing(device, stream):
    options = EventOptions(timing_enabled=True)
    start = stream.record(options=options)
    end = stream.record(options={"timing_enabled": True})
    end.sync()
    assert end.is_done and end - start >= 0.0
    assert start.is_timing_enabled and not start.is_blocking_sync
    assert start.device == device and start.handle != end.handle


def test_recording_again(stream):
    event = stream.record()
    assert stream.record(event) is event
    event.sync()


def test_never_recorded(device, stream):
    event = device.create_event({"timing_enabled": True})
    assert event.is_done
    event.sync()
    end = stream.record(options={"timing_enabled": True})
    end.sync()
    with pytest.raises(RuntimeError, match="not both are recorded"):
        end - event


def test_timing_is_off_by_default(stream):
    start, end = stream.record(), stream.record()
    end.sync()
    with pytest.raises(RuntimeError, match="timing_enabled=True"):
        end - start
    with pytest.raises(TypeError):
        end - 3


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_not_reached(stream):
    from ftcuda.testing import simulation

    with simulation.held_clock():
        start = stream.record(options={"timing_enabled": True})
        end = stream.record(options={"timing_enabled": True})
        assert not end.is_done and not stream.is_done
        with pytest.raises(RuntimeError, match="not both are reached"):
            end - start
    end.sync()


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the driver calls of the whole process")
def test_an_event_that_is_done_is_not_asked_about(stream):
    """Until it is recorded again, or somebody else has its handle. Mutant: what is known must go with the next record."""
    from ftcuda.testing import simulation

    def asked(event, done):
        before = simulation.calls("cuEventQuery")
        assert event.is_done is done
        return simulation.calls("cuEventQuery") - before

    event = stream.record()
    event.sync()
    assert [asked(event, True) for _ in range(3)] == [1, 0, 0]
    with simulation.held_clock():
        stream.record(event)
        assert [asked(event, False) for _ in range(2)] == [1, 1]
    event.sync()
    assert [asked(event, True) for _ in range(2)] == [1, 0]
    assert event.handle and [asked(event, True) for _ in range(2)] == [1, 1]
    event.close()
    with pytest.raises(ClosedError):
        event.is_done


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_a_query_does_not_outlive_the_record_that_it_asked_about(stream):
    """Threads ask all the time; right after a record that cannot be reached, nobody may be told that it was."""
    from ftcuda.testing import simulation

    event, stop = stream.record(), threading.Event()

    def act(index):
        if index:
            while not stop.is_set():
                event.is_done
            return
        try:
            for _ in range(100):
                event.sync()
                with simulation.held_clock():
                    stream.record(event)
                    assert not any(event.is_done for _ in range(5))
        finally:
            stop.set()

    together(4, act)
    event.close()


def test_close(stream):
    event = stream.record()
    event.close()
    event.close()
    assert event.is_closed
    for use in (event.sync, lambda: event.is_done, lambda: stream.record(event), lambda: stream.wait(event)):
        with pytest.raises(ClosedError):
            use()


def test_bad_arguments(device, stream):
    with pytest.raises(TypeError, match="Device.create_event"):
        Event()
    with pytest.raises(TypeError, match="must be an Event"):
        stream.record(5)
    with pytest.raises(ValueError, match="not both"):
        stream.record(stream.record(), EventOptions())
    with pytest.raises(TypeError):
        device.create_event({"colour": 1})
