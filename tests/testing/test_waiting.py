"""The locks, events, queues and barriers that the scheduler knows; they work without one too, on any driver."""

import pytest

from ftcuda.testing import Schedule, schedule, together
from tests.conftest import simulated_only

pytestmark = pytest.mark.thread_unsafe(reason="a scheduled session is the only one in its process")


@pytest.mark.parametrize("scheduled", [pytest.param(Schedule("random", seed=4), marks=simulated_only), None])
def test_locks_events_queues_and_barriers(device, scheduled):
    lock, event, queue, barrier = schedule.Lock(), schedule.Event(), schedule.Queue(), schedule.Barrier(3)
    inside, most, places = [], [], []

    def work(index):
        places.append(barrier.wait())
        with lock:
            inside.append(index)
            device.sync()
            most.append(len(inside))
            inside.remove(index)
        if index == 0:
            for item in range(4):
                queue.put(item)
            event.set()
            return None
        assert event.wait()
        return [queue.get(), queue.get()]

    results = together(3, work, schedule=scheduled)
    assert most == [1, 1, 1] and sorted(places) == [0, 1, 2]
    assert sorted(results[1] + results[2]) == [0, 1, 2, 3]
    with pytest.raises(RuntimeError):
        lock.release()
