"""Time that a test moves, or the scheduler."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import ftcuda
from ftcuda import LaunchConfig, launch
from ftcuda.testing import DeadlockError, Schedule, schedule, settle, simulated_clock, together
from tests.conftest import simulated_only
from tests.kernels import compile_code

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="moves the clock of the process")]

LONG = 1e6  # seconds: nobody waits for them by mistake
ONE = LaunchConfig(grid=1, block=1)


def outcome(waited, timeout):
    try:
        waited.sync(timeout=timeout)
    except TimeoutError:
        return "late"
    return "done"


def test_a_delay_takes_its_time(device, stream):
    """To the nanosecond, also for who waits for it, and for events. Mutant: it ends with the first move of the clock."""
    timing = {"timing_enabled": True}
    with simulated_clock() as clock, ThreadPoolExecutor(1) as pool:
        before = stream.record(options=timing)
        clock.delay(stream, LONG)
        clock.delay(stream, 1.0)  # begins when the first one ends
        after = stream.record(options=timing)
        before.sync()
        waits = pool.submit(outcome, stream, 2 * LONG)
        clock.advance(LONG, waiting=1)
        clock.advance(1 - 1e-9)
        assert clock.waiting == 1 and not after.is_done
        clock.advance(1e-9)
        assert waits.result(timeout=60) == "done"
        assert clock.now() == LONG + 1 and after - before == np.float32(1e3 * (LONG + 1))
    for event in (before, after):
        event.close()


def test_the_end_of_the_block_ends_delays_and_not_limits(device, stream, held_clock):
    """What is left of a limit is counted by the other clock. Mutant: it is compared with that clock as it is."""
    with ThreadPoolExecutor(2) as pool:
        with simulated_clock() as clock:
            clock.delay(stream, LONG)
            with held_clock():
                waits = pool.submit(outcome, stream, 100.0)
                clock.advance(99.0, waiting=1)
            assert clock.waiting == 1
        assert waits.result(timeout=60) == "done"
    with ThreadPoolExecutor(1) as pool, held_clock():
        stream.record()
        with simulated_clock() as clock:
            waits = pool.submit(outcome, stream, 1.01)
            clock.advance(1.0, waiting=1)
        assert waits.result(timeout=60) == "late"
        waits = pool.submit(outcome, stream, LONG)
        with simulated_clock() as clock:
            clock.advance(0.5 * LONG)
            clock.wait_for_waiting()
            clock.advance(LONG)
            assert waits.result(timeout=60) == "late"


def test_events_never_run_backwards(device, stream):
    """Across the ends of blocks and schedules. Mutant: the counter begins at zero; or real time goes on as if it had not moved."""
    events = [stream.record(options={"timing_enabled": True})]

    def record(index=0):
        events.append(stream.record(options={"timing_enabled": True}))
        stream.sync()

    stream.sync()
    for _ in range(2):
        with simulated_clock() as clock:
            record()
            clock.advance(LONG)
            record()
        record()
        together(1, record, schedule=Schedule("random", seed=1))
        record()
    assert all(later - earlier >= 0 for earlier, later in pairwise(events))
    for event in events:
        event.close()


def test_a_kernel_that_waits_for_its_clock_ends(stream, pinned):
    """Mutant: its clock stands still with the counter."""
    code = compile_code("""
extern "C" __global__ void wait(unsigned long long* until) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now < begin + 100000);
    until[0] = now - begin;
}""")
    buffer, took = pinned(np.zeros(1, np.uint64))
    with simulated_clock():
        launch(stream, ONE, code.get_kernel("wait"), buffer)
        stream.sync()
    assert took[0] == 100_000


def test_a_schedule_moves_the_clock(device, stream):
    """To the first limit when nobody else can go on. The same seed gives the same, in no time. Mutant: a deadlock is reported
    where somebody waits for a time; the clock jumps to the last limit; or while another thread can go on."""

    def run(kind, seed):
        moments = []

        def work(index):
            if index == 0:
                for _ in range(20):
                    schedule.point()
                assert clock.now() == 0  # the others wait meanwhile
                clock.delay(stream, 2.5 * LONG)
                moments.append((clock.now(), "delay", 0))
            for waited in (stream, device) if index else (stream.record(),):
                begun = clock.now()
                how = outcome(waited, LONG * (index + 1))
                assert how == "done" or clock.now() == begun + LONG * (index + 1)
                moments.append((clock.now(), how, index))

        with simulated_clock() as clock:
            together(3, work, schedule=Schedule(kind, 5, seed))
            trace = schedule.last_trace()
        settle()
        return moments, trace

    stream.record().sync()  # from here on it has a worker
    begun = time.monotonic()
    runs = {(kind, seed): run(kind, seed) for kind in ("random", "pct") for seed in range(20)}
    assert {of: run(*of) for of in runs} == runs
    assert time.monotonic() - begun < 60  # of some eighty million seconds
    ends = {how for moments, _ in runs.values() for _, how, index in moments}
    assert ends == {"delay", "late", "done"}


@pytest.mark.parametrize("timeout", [None, float("inf")])
def test_who_waits_without_a_limit_waits_for_no_time(device, stream, held_clock, timeout):
    """Nobody can go on is a deadlock then, and no end of a limit."""
    given_up = []

    def work(index):
        stream.sync(timeout=timeout)
        given_up.append(index)

    with held_clock(), pytest.raises(DeadlockError):
        stream.record()
        together(2, work, schedule=Schedule("random", seed=1))
    while len(given_up) < 2:
        time.sleep(0)


def test_a_schedule_needs_no_block(device, stream, held_clock):
    """Its limits are of its own time; those of other threads, and afterwards, of the real one."""
    with held_clock():
        assert together(2, lambda index: outcome(stream.record(), LONG), schedule=Schedule("random", seed=1)) == ["late"] * 2
        assert outcome(stream, 0.001) == "late"


def test_moves_of_a_scheduled_thread(device, stream):
    """It comes back at once: who waits has its turn later."""

    def work(index):
        if index:
            return outcome(stream, 2.0)
        clock.advance(1.0)
        return clock.now()

    with simulated_clock() as clock:
        clock.delay(stream, 1.0)
        assert together(2, work, schedule=Schedule("random", seed=3)) == [1.0, "done"]


def test_threads_that_advance_move_the_clock_in_turn(device):
    """Mutant: an advance that goes to where it began to, whatever others did meanwhile."""
    streams = [device.create_stream() for _ in range(4)]
    for _ in range(20):
        with simulated_clock() as clock:
            for stream in streams:
                clock.delay(stream, 0.5)
            times = []
            moved = together(5, lambda index: clock.advance(1.0) if index else times.extend(clock.now() for _ in range(200)))
            assert moved == [None] * 5 and clock.now() == 4.0
            assert times == sorted(times)
    for stream in streams:
        stream.close()


def test_work_is_not_done_before_its_time(device, stream):
    """Mutant: a clock that says the time of limits, which comes after the work of that time."""
    with simulated_clock() as clock:
        for _ in range(40):
            begun = clock.now()
            clock.delay(stream, 10.0)

            def wait(index, begun=begun):
                if index == 0:
                    return clock.advance(20.0, waiting=1)
                stream.sync(timeout=50.0)
                return clock.now() - begun

            assert together(2, wait)[1] >= 10.0


def test_a_clock_whose_block_has_ended(device, stream):
    with simulated_clock() as clock:
        pass
    with simulated_clock() as other:
        for use in (clock.now, lambda: clock.waiting, clock.wait_for_waiting, lambda: clock.advance(1), lambda: clock.delay(stream, 1)):
            with pytest.raises(RuntimeError, match="has ended"):
                use()
        assert other.now() == 0


def test_a_clock_has_an_end(run_python):
    """In a process of its own: the time of a process never runs backwards."""
    assert run_python(END_OF_TIME).split() == ["8.0", "8.0", "refused"]


END_OF_TIME = """
from ftcuda import Device
from ftcuda.testing import simulated_clock
Device(0).create_stream()
with simulated_clock() as clock:
    for _ in range(8):
        clock.advance(1e9)
    print(clock.now() / 1e9)
    try:
        clock.advance(1e9)
    except ValueError as error:
        print(clock.now() / 1e9, "refused" if "the clock ends" in str(error) else error)
"""


def test_what_a_clock_refuses(device, stream):
    with simulated_clock() as clock:
        for seconds in (-1, float("nan"), float("inf"), 2e9):
            for move in (clock.advance, lambda seconds: clock.delay(stream, seconds)):
                with pytest.raises(ValueError, match="from 0 to a billion"):
                    move(seconds)
        with pytest.raises(RuntimeError, match="do not nest"), simulated_clock():
            pass
        with pytest.raises(TimeoutError, match="0 threads wait, and not 2"):  # by the real clock
            clock.advance(1, waiting=2, timeout=0.01)
        for move in (clock.advance, lambda seconds: clock.delay(stream, seconds)):
            for wrong in (True, "1", None):
                with pytest.raises(TypeError, match="must be a number"):
                    move(wrong)
        with pytest.raises(TypeError, match="must be a Stream, not int"):
            clock.delay(5, 1)
        for wrong in (-1, True):
            with pytest.raises(ValueError, match="number of threads"):
                clock.advance(1, waiting=wrong)
        with pytest.raises(TypeError):
            clock.advance(1, waiting=1.5)
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout must be"):
                clock.advance(1, timeout=wrong)
        assert clock.now() == 0
        closed = device.create_stream()
        handle = closed.handle
        closed.close()
        with pytest.raises(ftcuda.ClosedError):
            clock.delay(closed, 1)
        assert handle
