"""Replayed interleavings."""

import pytest

from ftcuda.testing import DeadlockError, Schedule, schedule, together
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="a scheduled session is the only one in its process")]


def interleave(device, kind, seed):
    """Three threads on one stream; returns the order in which they came by, and the trace."""
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    order = []

    def work(index):
        for _ in range(3):
            buffer.fill(index, stream=stream)
            order.append(index)
            stream.sync()

    together(3, work, schedule=Schedule(kind, 5, seed))
    buffer.close()
    stream.close()
    return tuple(order), schedule.last_trace()


@pytest.mark.parametrize("kind", ["random", "pct"])
def test_a_seed_replays(device, kind):
    """Sabotage: with the workers' indices counted through, and not from each session's begin, traces differ."""
    runs = {seed: interleave(device, kind, seed) for seed in range(20)}
    assert all(interleave(device, kind, seed) == run for seed, run in runs.items())
    assert len({trace for _, (_, trace) in runs.values()}) > 15
    assert len({order for order, _ in runs.values()}) > 5


def test_schedules_are_read():
    assert Schedule.parse("pct:7", 3) == Schedule("pct", 7, 3) and Schedule.parse("random").kind == "random"
    for text in ("", "pct:0", "pct:x", "random:3", "fair"):
        with pytest.raises(ValueError, match="a schedule is"):
            Schedule.parse(text)


def test_the_environment_names_a_schedule(run_python):
    said = run_python(
        """
from ftcuda.testing import together, schedule, Schedule
import ftcuda
device = ftcuda.Device(0)
traces = []
for _ in range(3):
    together(2, lambda index: device.create_event().close())
    traces.append(schedule.last_trace())
print(traces)
""",
        FTCUDA_SIM_SCHED="pct:3",
        FTCUDA_SIM_SEED="9",
    )
    assert "(0, " not in said


def test_a_deadlock_is_reported_with_everybodys_place(device):
    one, other = schedule.Lock(), schedule.Lock()

    def work(index):
        first, second = (one, other) if index else (other, one)
        with first:
            device.sync()
            with second:
                pass

    def until_deadlock():
        for seed in range(100):
            together(2, work, schedule=Schedule("random", seed=seed))

    with pytest.raises(
        DeadlockError, match=r"seed \d+: nobody can go on:\nthread 0 at test waits\nthread 1 at test waits"
    ):
        until_deadlock()


def test_failures_name_the_schedule(device):
    def fail(index):
        device.sync()
        raise SystemExit(index)

    with pytest.raises(BaseExceptionGroup) as caught:
        together(2, fail, schedule=Schedule("pct", 3, 77))
    assert "schedule pct:3, seed 77" in caught.value.__notes__[0] and len(caught.value.exceptions) == 2
