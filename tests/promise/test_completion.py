"""Waits for completions where much ends at once: contexts, processes, forks; and a service that costs nothing while nobody waits."""

import asyncio
import os
import re
import threading
from pathlib import Path

import pytest

from ftcuda import ClosedError
from ftcuda.testing import Schedule, together
from tests.conftest import simulated_only

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.thread_unsafe(reason="its processes use all processors")

BEGIN = """
import asyncio, os, sys, threading, time
import numpy as np
import ftcuda
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, host_launch, launch
from tests.kernels import compile_code

device = Device(0)
stream = device.create_stream()
ONE = LaunchConfig(grid=1, block=1)
code = compile_code('''
extern "C" __global__ void hold(const volatile int* gate) { while (*gate == 0); }
extern "C" __global__ void fault(const volatile int* gate) { while (*gate == 0); *(int*)8 = 1; }
''')
gate_buffer = LegacyPinnedMemoryResource().allocate(4)
gate = np.frombuffer(gate_buffer, np.int32)
gate[0] = 0
closed_buffer = LegacyPinnedMemoryResource().allocate(4)
np.frombuffer(closed_buffer, np.int32)[0] = 0
"""


@simulated_only
@pytest.mark.parametrize("shared", [False, True])
def test_a_dead_context_ends_its_waits(run_python, shared):
    """All of them, with the context's error, also those of streams whose work was in order. Within 10 ms, of which a busy machine
    knows nothing: ten seconds are allowed here. Mutants: nobody asks whether the context lives, or only once.
    """
    said = run_python(
        BEGIN
        + f"""
others = [device.create_stream()]  # its kernel takes a processor
if {shared}:
    others[0].handle, stream.handle
raised, called = [], []
sys.unraisablehook = lambda said: raised.append(said.exc_value)

async def fails(awaited):
    try:
        await awaited
    except ftcuda.CUDAError as error:
        return type(error).__name__, error.code, time.monotonic()

async def main():
    launch(stream, ONE, code.get_kernel("fault"), gate_buffer)
    for other in others:
        launch(other, ONE, code.get_kernel("hold"), closed_buffer)
    events = [each.record() for each in (stream, *others)]
    stream.when_done(lambda: called.append(1))
    tasks = [asyncio.create_task(fails(each)) for each in (stream, *others, *events)]
    await asyncio.wait(tasks, timeout=0.05)
    assert not any(task.done() for task in tasks)
    begun = time.monotonic()
    gate[0] = 1
    answers = await asyncio.wait_for(asyncio.gather(*tasks), 20)
    took = max(when for *_, when in answers) - begun
    assert all(name in ("CUDAError", "ContextPoisonedError") and code == 700 for name, code, _ in answers), answers
    assert took < 10, took
    print("took", round(1000 * took, 2), "ms", flush=True)
    try:
        await stream
    except ftcuda.ContextPoisonedError as error:
        print(error, flush=True)

asyncio.run(asyncio.wait_for(main(), 60))
end = time.monotonic() + 20
while not raised and time.monotonic() < end:
    time.sleep(0)
assert called == [] and [error.code for error in raised] == [700], raised
assert "in a function that when_done() was given at <string>:" in raised[0].__notes__[0]
os._exit(0)
""",
    )
    assert "cannot await <Stream" in said and "the device's context ended with" in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_awaits_nothing(run_python):
    """Calls raise there, the waits of the parent go on, and what is dropped waits for nobody. Mutant: a loop that ends in the child
    locks what a thread of the parent may have had, which builds with checked locks do not survive.
    """
    run_python(
        BEGIN
        + """
import gc, signal, warnings
warnings.simplefilter("ignore")

async def awaits(what):
    await what

def in_child():
    event = stream.record
    for use in (lambda: asyncio.run(awaits(stream)), lambda: stream.when_done(print), lambda: host_launch(stream, print)):
        try:
            use()
        except ftcuda.ForkedProcessError:
            continue
        raise SystemExit("no error")
    loops.pop().close()
    gc.collect()

loops = [asyncio.new_event_loop()]
loops[0].run_until_complete(awaits(stream))

async def main():
    launch(stream, ONE, code.get_kernel("hold"), gate_buffer)
    task = asyncio.ensure_future(stream)
    await asyncio.sleep(0)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        asyncio.events._set_running_loop(None)
        status = 1
        try:
            in_child()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not task.done()
    gate[0] = 1
    assert await asyncio.wait_for(task, 60) is stream

asyncio.run(main())
called = threading.Event()
stream.when_done(called.set)
assert called.wait(60)
"""
    )


@simulated_only
def test_each_of_many_awaits_ends_once(run_python, ptx_fits):
    """The program of a million awaits, with few of them: its last ones find a context that dies."""
    said = run_python(
        "import sys; from stress.awaits import run; sys.exit(run(3000, 2, 1))",
        PYTHONPATH=f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    )
    found = re.fullmatch(r"3,200 awaits in 2 loops, [0-9.]+ s: (.*); resident .*\n", said)
    ends = {how: int(number.replace(",", "")) for number, how in re.findall(r"([0-9,]+) ([a-z][a-z0-9 ]+)", found[1])}
    assert set(ends) == {"done", "given up", "of what was closed", "error 700"} and sum(ends.values()) == 3200
    assert ends["error 700"] == 200, said


@pytest.mark.parametrize("way", ["return", "daemon", "callback"])
def test_exit_with_waits_pending(run_python, way):
    """Nobody is waited for: the process ends, with the device's work unfinished."""
    run_python(
        BEGIN
        + f"""
way = {way!r}
stream.when_done(lambda: None)
stream.sync()
begun = threading.Event()

def loop():
    async def main():
        launch(stream, ONE, code.get_kernel("hold"), gate_buffer)
        tasks = [asyncio.ensure_future(stream) for _ in range(5)]
        await asyncio.sleep(0)
        stream.when_done(lambda: print("called"))
        begun.set()
        if way == "daemon":
            await asyncio.wait(tasks)
        for task in tasks:
            task.cancel()
    asyncio.run(main())

if way == "callback":
    stream.when_done(lambda: (begun.set(), threading.Event().wait()))
    assert begun.wait(60)
elif way == "daemon":
    threading.Thread(target=loop, daemon=True).start()
    assert begun.wait(60)
else:
    loop()
print("ends", flush=True)
"""
    )


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the time of other threads is Linux's to tell")
def test_nothing_spins_while_nothing_is_pending(run_python):
    """Neither after the last wait is over nor before the first; with each pace. Mutant: a service that goes on looking."""
    for pace in ("", "spin", "sleep"):
        run_python(
            BEGIN
            + """
async def main():
    for _ in range(20):
        host_launch(stream, lambda: None)
        await stream

asyncio.run(main())

def of_others(seconds):
    "What other threads have used of the processor while this one has used so much."
    mine, all_of_it = time.thread_time(), time.process_time()
    while time.thread_time() - mine < seconds:
        pass
    return time.process_time() - all_of_it - (time.thread_time() - mine)

of_others(0.1)  # what was begun is done
used = of_others(0.5)
assert used < 0.02, used
""",
            FTCUDA_REACTOR=pace,
        )


def test_a_pace_that_there_is_not(run_python):
    said = run_python("import ftcuda", expect=1, FTCUDA_REACTOR="fast")
    assert "FTCUDA_REACTOR must be spin, sleep or nothing, not 'fast'" in said


@simulated_only
def test_a_schedule_decides_between_await_and_close(device):
    """Under a seed a coroutine looks at its word by itself, and lets others go on. Both outcomes come, and no third one."""

    def race(seed):
        stream = device.create_stream()

        def act(index):
            if index == 0:
                return stream.close()
            try:
                return asyncio.run(awaited(stream))
            except ClosedError:
                return "refused"

        _, came = together(2, act, schedule=Schedule("random", seed=seed))
        return came if came == "refused" else came is stream

    async def awaited(stream):
        return await stream

    seen = [race(seed) for seed in range(30)]
    assert set(seen) == {True, "refused"}
    assert [race(seed) for seed in range(5)] == seen[:5]


@simulated_only
def test_functions_of_a_schedule_are_called_after_it(device, stream):
    """The service waits until a test's schedule is over."""
    calls = []

    def act(index):
        stream.when_done(lambda: calls.append(index))
        stream.sync()
        return list(calls)

    assert together(2, act, schedule=Schedule("random", seed=3)) == [[], []]
    over = threading.Event()
    stream.when_done(over.set)
    assert over.wait(60) and sorted(calls) == [0, 1]
