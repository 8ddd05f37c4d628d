"""Waits that end before the work: timeouts and signals."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ftcuda import CUDAError, LaunchConfig, launch
from ftcuda.testing import simulated_clock, together
from tests.conftest import expires, simulated_only
from tests.kernels import IS_SIMULATED

ONE = LaunchConfig(grid=1, block=1)
SHORTEST = 0.01  # seconds that a wait for a device takes before it gives up


@pytest.fixture(params=["stream", "event", "blocking event", "device"])
def waiter(request, device, stream):
    """What waits, for what was submitted to `stream` before it was asked for."""

    def make():
        if request.param == "stream":
            return stream
        if request.param == "device":
            return device
        return stream.record(options={"blocking_sync": request.param != "event"})

    return make


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_timeout(waiter, device, stream, code, pinned, held_clock):
    """Mutant: a wait that has no limit never comes back here; one that is too short has gone when its time is not over."""
    buffer, places = pinned(np.zeros(1, np.int32))
    with held_clock():
        launch(stream, ONE, code.get_kernel("store"), buffer, 7)
        waited = waiter()
        for timeout in (0, 0.0, 0.02, np.float32(0.01)):
            takes = max(timeout, SHORTEST) if waited is device else float(timeout)
            message = r"cannot synchronise <\w+.*: it was not done in time; the work goes on"
            expires(lambda timeout=timeout: waited.sync(timeout), takes, message)
        assert places[0] == 0
    waited.sync(timeout=60)
    assert places[0] == 7
    if waited is not device:
        waited.sync(timeout=0)  # what is done is asked about once
    waited.sync(float("inf"))
    waited.sync()


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_timeouts_in_many_threads(device, stream, held_clock):
    event, threads = None, 6
    with held_clock(), simulated_clock() as clock:
        event, ended = stream.record(), []

        def act(index):
            if index == threads:
                while len(ended) < threads:
                    clock.advance(0.001)
                return
            try:
                for waited in (device, stream, event):
                    timeout, begun = 0.02 * (index % 2), clock.now()
                    with pytest.raises(TimeoutError):
                        waited.sync(timeout)
                    assert clock.now() - begun >= timeout - 1e-9
            finally:
                ended.append(index)

        together(threads + 1, act)
    together(6, lambda index: (device.sync(timeout=60), stream.sync(timeout=60), event.sync(60)))


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_a_device_wait_covers_what_came_before_it(device, stream, code, pinned, held_clock):
    """Also after a wait that gave up, whose answer is for less. Mutant: the first answer is everybody's."""
    store = code.get_kernel("store")
    buffer, places = pinned(np.zeros(1, np.int32))
    for turn in range(1, 20):
        with held_clock():
            launch(stream, ONE, store, buffer, -turn)
            expires(lambda: device.sync(timeout=0), SHORTEST)
        launch(stream, ONE, store, buffer, turn)
        device.sync(timeout=60)
        assert places[0] == turn


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_a_device_wait_does_not_cover_what_came_after_it_began(device, stream, code, pinned, held_clock):
    """Mutant: whoever asks while it is on is told by it that work is done which it did not wait for."""
    from ftcuda.testing import faults

    store = code.get_kernel("store")
    buffer, places = pinned(np.zeros(1, np.int32))
    with ThreadPoolExecutor(1) as pool, faults.holding("cuCtxSynchronize", after=True) as held:
        expires(lambda: device.sync(timeout=0), SHORTEST)  # the wait goes on without it, and is held when it is over
        held.wait()
        with held_clock(), simulated_clock() as clock, faults.holding("cuCtxSynchronize") as again:
            launch(stream, ONE, store, buffer, 7)
            seen = pool.submit(lambda: (device.sync(timeout=60), int(places[0])))
            clock.wait_for_waiting()  # it has asked
            held.release()
            again.wait(timeout=10)  # a wrong answer is there by now
            clock.advance(0)  # and was asked for
            assert clock.waiting == 1
            again.release()
        assert seen.result() == (None, 7)


@simulated_only
@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_work_that_was_given_up_on_keeps_its_memory(device, stream, code, held_clock):
    """What is freed at a synchronisation of the device is not freed by one that was given up. Mutant: it is forgotten."""
    from ftcuda.testing import simulation

    before = simulation.live()
    with held_clock():
        module = type(code).from_ptx(code.code)
        launch(stream, ONE, module.get_kernel("empty"))
        del module
        expires(lambda: device.sync(timeout=0.001), SHORTEST)
        assert simulation.live()["module"] == before["module"] + 1
    device.sync(timeout=60)
    assert simulation.live()["module"] == before["module"]
    assert simulation.violations() == []


@pytest.mark.parametrize("timeout", [-1, -0.001, float("nan")])
def test_no_time(stream, device, timeout):
    for waited in (stream, stream.record(), device):
        with pytest.raises(ValueError, match="timeout must be seconds from 0 up"):
            waited.sync(timeout)
        with pytest.raises(TypeError, match="must be real number, not str"):
            waited.sync(str(timeout))
        with pytest.raises((TypeError, ValueError)):
            waited.sync("soon")


def test_closed(device):
    stream = device.create_stream()
    event = stream.record()
    for thing in (stream, event):
        thing.close()
        with pytest.raises(RuntimeError, match=f"the {type(thing).__name__.lower()} is closed"):
            thing.sync(timeout=1)


@simulated_only
@pytest.mark.thread_unsafe(reason="captures in the whole process")
def test_capture_forbids_waits_with_a_limit_too(device):
    """The error is the driver's own, whoever waits, however."""
    import ctypes

    import ftcuda

    driver = ctypes.CDLL(ftcuda.driver_info().path)
    stream = device.create_stream()

    def capturing(wait):
        assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(stream.handle), 1) == 0
        try:
            with pytest.raises(CUDAError) as caught:
                wait()
        finally:
            driver.cuStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(ctypes.c_void_p()))
        return caught.value.code

    codes = set()
    for wait in (lambda: stream.sync(), lambda: stream.sync(timeout=1), lambda: device.sync(), lambda: device.sync(timeout=1)):
        codes.add(capturing(wait))
    assert codes == {900}
    stream.close()


SETUP = """
import faulthandler, os, signal, sys, threading, time
import ftcuda
from ftcuda import *
faulthandler.dump_traceback_later(60, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts without
device = Device(0)
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource().allocate(8)
memoryview(pinned).cast("B")[:] = bytes(8)
ONE = LaunchConfig(grid=1, block=1)
source = '''
extern "C" __global__ void wait_for(volatile int* p) { while (p[0] == 0) {} p[1] = 7; }
extern "C" __global__ void set(volatile int* p) { p[0] = 1; }'''
code = Program(source, "c++").compile("ptx" if ftcuda.driver_info().simulated else "cubin")
kernel, setter = code.get_kernel("wait_for"), code.get_kernel("set")
beside = device.create_stream()
def set_flag():  # as a kernel, whose stores another kernel may see at any time
    launch(beside, ONE, setter, pinned)
def answer():
    view = memoryview(pinned).cast("i")
    try: return view[1]
    finally: view.release()
launch(stream, ONE, kernel, pinned)
event = stream.record()
def calls():  # of the driver, where it tells
    if not ftcuda.driver_info().simulated:
        return -1
    from ftcuda.testing import simulation
    return simulation.calls()
"""


@pytest.mark.parametrize("waited", ["stream", "event", "device"])
@pytest.mark.parametrize("timeout", ["", "60"])
def test_an_interrupt_ends_a_wait_and_not_the_work(ptx_fits, run_python, waited, timeout):
    """Ctrl-C while a kernel runs that waits for the host. Mutant: a wait in the main thread that asks for no signals."""
    program = SETUP + f"""
done = []
def worker():  # other threads wait on
    {waited}.sync()
    done.append(answer())
thread = threading.Thread(target=worker)
thread.start()
begins, asked = threading.Event(), -1
def interrupt():  # once the main thread waits, or is about to
    begins.wait()
    while calls() == asked >= 0:
        time.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
def wait():
    global asked
    asked = calls()
    begins.set()
    {waited}.sync({timeout})
interrupter = threading.Thread(target=interrupt)
interrupter.start()
try: wait()
except KeyboardInterrupt: print("interrupted")
else: sys.exit("not interrupted")
assert not stream.is_done and not event.is_done and not done
set_flag()
{waited}.sync({timeout})
thread.join()
interrupter.join()
assert done == [7] and answer() == 7
pinned.close()
stream.close()
"""
    assert "interrupted" in run_python(program)


def test_a_handler_that_raises_nothing_does_not_end_the_wait(ptx_fits, run_python):
    program = SETUP + """
calls = []
def handle(number, frame):
    calls.append(number)
    if len(calls) == 2: set_flag()
    else: threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, handle)
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
stream.sync()
assert len(calls) == 2 and answer() == 7
"""
    run_python(program)


def test_a_poisoned_context_ends_a_wait(ptx_fits, run_python):
    program = """
import sys, ftcuda
from ftcuda import *
device = Device(0)
stream = device.create_stream()
flag = LegacyPinnedMemoryResource().allocate(4)
memoryview(flag).cast("i")[0] = 0
source = '''
extern "C" __global__ void bad(volatile int* flag, int* p) { while (*flag == 0) {} *p = 1; }
extern "C" __global__ void set(volatile int* flag) { *flag = 1; }'''
code = Program(source, "c++").compile("ptx" if ftcuda.driver_info().simulated else "cubin")
ONE = LaunchConfig(grid=1, block=1)
bad, setter, beside = code.get_kernel("bad"), code.get_kernel("set"), device.create_stream()
launch(stream, ONE, bad, flag, 64)
event = stream.record()  # refused once the kernel has failed, so it fails only now
launch(beside, ONE, setter, flag)
for wait in (lambda: stream.sync(timeout=60), lambda: event.sync(timeout=60), lambda: device.sync(timeout=60), device.sync):
    try: wait()
    except CUDAError as error: assert error.code == 700, error
    else: sys.exit("no error")
"""
    run_python(program)


@pytest.mark.skipif(not IS_SIMULATED, reason="counts the driver's calls")
@pytest.mark.thread_unsafe(reason="counts the driver calls of the whole process")
def test_threads_use_the_drivers_own_wait(stream, device):
    """Only the main thread asks again and again, and only it needs a thread that waits for the device."""
    from ftcuda.testing import simulation

    def calls(function):
        before = [simulation.calls(name) for name in ("cuStreamSynchronize", "cuEventSynchronize", "cuStreamQuery", "cuEventQuery")]
        function()
        after = [simulation.calls(name) for name in ("cuStreamSynchronize", "cuEventSynchronize", "cuStreamQuery", "cuEventQuery")]
        return [b - a for a, b in zip(before, after, strict=True)]

    event = stream.record()
    event.sync()

    def in_thread():
        together(1, lambda index: (stream.sync(), event.sync()))

    assert calls(in_thread) == [1, 1, 0, 0]
    assert threading.current_thread() is threading.main_thread()
    assert calls(lambda: (stream.sync(), event.sync())) == [0, 0, 1, 1]
