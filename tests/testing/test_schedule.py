"""Replayed interleavings."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ftcuda.testing import DeadlockError, Schedule, faults, schedule, simulated_clock, simulation, together
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
    """Mutant: with the workers' indices counted through, and not from each session's begin, traces differ."""
    runs = {seed: interleave(device, kind, seed) for seed in range(20)}
    assert all(interleave(device, kind, seed) == run for seed, run in runs.items())
    assert len({trace for _, (_, trace) in runs.values()}) > 10
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

    with pytest.raises(DeadlockError) as caught:
        until_deadlock()
    said = str(caught.value)
    where = "nobody can go on:\nthread 0 at test waits, held by thread 1\nthread 1 at test waits, held by thread 0\n"
    assert where in said
    for name in ("together-0", "together-1"):  # each with the line where it waits
        stack = said.partition(f"{name}:\n")[2].partition("\n\n")[0]
        assert f'File "{__file__}"' in stack and "\n    with second:\n" in stack


@pytest.mark.parametrize("seconds", [0.15, 0], ids=["for-long", "for-a-moment"])
def test_a_thread_that_is_not_scheduled_has_a_lock(seconds):
    """It lets go without a turn; the scheduled ones wait for it, and nobody says that they cannot go on."""
    lock, wanted, held = schedule.Lock(), threading.Semaphore(0), threading.Semaphore(0)
    times = 2 if seconds else 200
    over, counted = threading.Event(), []

    def outside():
        while wanted.acquire() and not over.is_set():
            with lock:
                held.release()
                over.wait(seconds)  # if for long, until the scheduled ones let others go on

    def work(index):
        for _ in range(times):
            wanted.release()
            if seconds:
                held.acquire()
            with lock:
                counted.append(index)

    other = threading.Thread(target=outside)
    other.start()
    try:
        for seed in range(3):
            together(2, work, schedule=Schedule("pct", depth=2, seed=seed))
    finally:
        over.set()
        wanted.release()
        other.join()
    assert counted.count(0) == counted.count(1) == 3 * times


def test_a_thread_that_is_not_scheduled_uses_the_same_stream(device):
    """It takes the locks of the library in no order that the seed knows."""
    stream, over = device.create_stream(), threading.Event()

    def outside():
        while not over.is_set():
            stream.record().close()

    other = threading.Thread(target=outside)
    other.start()
    try:
        for seed in range(20):
            together(2, lambda _: [stream.record().close() for _ in range(20)], schedule=Schedule("random", seed=seed))
    finally:
        over.set()
        other.join()


def test_sections_in_opposite_orders(run_python):
    """The deadlock is found, and said who waits where; in a build without schedule points, only that nobody moves."""
    said = run_python(
        """
import os, sys, threading
import ftcuda
from ftcuda.testing import DeadlockError, Schedule, schedule, simulated_clock, simulation, together
device = ftcuda.Device(0)
one, other = device.create_stream(), device.create_stream()
both = schedule.Barrier(2)

def work(index):
    first, second = (one, other) if index else (other, one)
    with first.exclusive():
        both.wait()
        with second.exclusive():
            pass

try:
    with simulated_clock() as clock:
        if not simulation.has_schedule_points():  # the one whose turn it is waits for the other
            threading.Thread(target=clock.advance, args=(2,), kwargs={"waiting": 1}, daemon=True).start()
        together(2, work, timeout=2, schedule=Schedule("random"))
except (DeadlockError, TimeoutError) as hang:
    found = type(hang) is (DeadlockError if simulation.has_schedule_points() else TimeoutError)
    print(found, str(hang).count("in work"), str(hang).count("thread 0 at "))
    sys.stdout.flush()
os._exit(0)  # the threads are stuck
"""
    )
    assert said == "True 2 1\n"


@pytest.mark.skipif(
    not simulation.has_schedule_points(), reason="the schedule knows the core's locks in builds with schedule points"
)
def test_locks_of_the_core_name_their_holders(device, code):
    """One thread is kept in a driver call that it makes under a lock; the report says that the other waits for it.

    Mutant: without hold() in Mutex::lock() nobody is known to hold it.
    """
    kernel = code.get_kernel("store")
    kernel.attributes.max_dynamic_shared_size_bytes

    ended = threading.Semaphore(0)

    def end_time(fault, clock):
        fault.wait()  # who waits there keeps its turn, so that nobody moves any more
        clock.advance(1)

    def work(index):
        kernel.attributes.max_dynamic_shared_size_bytes = sizes.pop()
        ended.release()

    said = ""
    for seed in range(20):
        sizes = [51200 + 2048 * seed, 50176 + 2048 * seed]  # the driver is told of sizes that grow
        with (
            simulated_clock() as clock,
            ThreadPoolExecutor(1) as pool,
            faults.holding("cuFuncSetAttribute") as fault,
        ):
            ending = pool.submit(end_time, fault, clock)
            try:
                together(2, work, timeout=1, schedule=Schedule("random", seed=seed))
            except TimeoutError as late:
                said = str(late)
            ending.result()
            fault.release()
        assert ended.acquire(timeout=30) and ended.acquire(timeout=30)  # both are gone before the next session
        if "at locked, held by thread" in said:
            break
    waiting, holding = re.search(r"thread (\d) at locked, held by thread (\d)\n", said).groups()
    assert waiting != holding
    assert f"thread {holding} at cuFuncSetAttribute\n" in said


def launch_callback(device, callback):
    """In a stream of its own; returns when it has been called."""
    stream = device.create_stream()
    builder = stream.create_graph_builder().begin_building()
    builder.callback(callback)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    for closed in (graph, builder, stream):
        closed.close()


def test_callbacks_have_a_turn(device):
    """Those of two graphs, each in a worker of its own, and one thread calls both."""

    def run(seed):
        order = []

        def work(index):
            for _ in range(3):
                launch_callback(device, lambda: (order.append(index), schedule.point(), order.append(index)))

        together(2, work, schedule=Schedule("random", 5, seed))
        assert sorted(order) == [0] * 6 + [1] * 6 and order[::2] == order[1::2]
        return tuple(order), schedule.last_trace()

    *_, before, after = ([run(seed) for seed in range(20)] for _ in range(3))  # the first ones fill what is in store
    if simulation.has_schedule_points():  # else the thread that calls them runs freely
        assert before == after
    assert len({order for order, _ in before}) > 2


@pytest.mark.skipif(
    not simulation.has_schedule_points(),
    reason="the schedule knows the thread of callbacks in builds with schedule points",
)
def test_a_callback_waits_for_a_scheduled_thread(device):
    """Mutant: without take_part() in take(), the callback waits while its worker has the turn, for 20 s."""
    for seed in range(5):
        event, said = schedule.Event(), []
        functions = (
            lambda: launch_callback(device, lambda: said.append((event.wait(), simulation.schedule_is_on()))),
            event.set,
        )
        together(2, lambda index: functions[index](), schedule=Schedule("random", seed=seed))
        assert said == [(True, True)]


def test_threads_that_pass_the_turn_to_each_other_do_not_starve_a_third(device):
    """Mutant: without `starvation`, whoever has the lowest priority never runs."""

    def meet(seed):
        there, back = schedule.Queue(), schedule.Queue()
        finished = []

        def work(index):
            if index == 2:
                device.sync()
                finished.append(True)
                return 0
            mine, others = (there, back) if index else (back, there)
            turns = 0
            while not finished:
                others.put(None)
                mine.get()
                turns += 1
            others.put(None)
            return turns

        return together(3, work, timeout=20, schedule=Schedule("pct", 1, seed))

    turns = [max(meet(seed)) for seed in range(20)]
    assert max(turns) > 100, "the third was never last"


@pytest.mark.parametrize("clock", ["real", "simulated"])
def test_the_time_ends_a_session(device, clock):
    """Two threads that poll for what nobody does have steps enough, but no end. They stand still while they are looked at.
    The limit is one of the real clock, unless the test has its own."""
    given_up, turns = threading.Event(), [0, 0]

    def work(index):
        while not given_up.is_set():
            turns[index] += 1
            schedule.point()

    def end_time(moved):
        while not all(turns):
            time.sleep(0)
        moved.advance(limit - 1)
        before = list(turns)
        while not all(now > then for now, then in zip(turns, before, strict=True)):
            time.sleep(0)
        moved.advance(1)

    limit = 2.0 if clock == "real" else 1000.0
    message = rf"seed 1: not all threads ended within {limit} s:\nthread 0 at test\n"
    try:
        with pytest.raises(TimeoutError, match=message), ThreadPoolExecutor(1) as pool:
            if clock == "real":
                together(2, work, timeout=limit, schedule=Schedule("random", seed=1))
            else:
                with simulated_clock() as moved:
                    ending = pool.submit(end_time, moved)
                    together(2, work, timeout=limit, schedule=Schedule("random", seed=1))
                    ending.result()
    finally:
        given_up.set()
    assert all(turns)
    together(2, lambda index: device.sync(), schedule=Schedule("random", seed=1))  # the next session is not disturbed


def test_points_of_threads_that_have_the_gil(run_python):
    """A thread may come to a point while it is attached to the interpreter: others must be able to have it meanwhile.

    Mutant: where it waits for its turn without letting go of the interpreter, the thread whose turn it is never moves.
    """
    run_python(
        """
import ctypes, sys
import ftcuda
from ftcuda.testing import Schedule, schedule, together
assert sys._is_gil_enabled()
point = ctypes.PyDLL(ftcuda.driver_info().path).ftcuda_schedule_point  # called with the GIL
point.argtypes, point.restype = [ctypes.c_char_p], None
WHERE = b"attached"

def traces(seed):
    order = []

    def work(index):
        for _ in range(20):
            point(WHERE)
            order.append(index)

    together(3, work, timeout=10, schedule=Schedule("random", seed=seed))
    return schedule.last_trace(), order

for seed in range(10):
    (steps, trace), order = traces(seed)
    assert ((steps, trace), order) == traces(seed)
    assert steps >= 60 and order != sorted(order), (steps, order)
""",
        PYTHON_GIL="1",
    )


def test_failures_name_the_schedule(device):
    def fail(index):
        device.sync()
        raise SystemExit(index)

    with pytest.raises(BaseExceptionGroup) as caught:
        together(2, fail, schedule=Schedule("pct", 3, 77))
    assert "schedule pct:3, seed 77" in caught.value.__notes__[0] and len(caught.value.exceptions) == 2
