"""Promise 7 and 8: errors, capture, collection, fork and exit."""

import gc
import os
import sys

import numpy as np
import pytest

import ftcuda
from tests.conftest import simulated_only

SETUP = """
import ftcuda, sys
from ftcuda import *
device = Device(0)
stream = device.create_stream()
ONE = LaunchConfig(grid=1, block=1)
def kernel(source):
    code = Program('extern "C" __global__ ' + source, "c++").compile("ptx" if ftcuda.driver_info().simulated else "cubin")
    return code.get_kernel("k")
"""


@pytest.fixture(autouse=True)
def programs_fit(request):
    if "run_python" in request.fixturenames:
        request.getfixturevalue("ptx_fits")


def test_a_fault_is_deferred_and_poisons(run_python):
    said = run_python(
        SETUP
        + """
k = kernel("void k(int* p) { *p = 1; }")
launch(stream, ONE, k, 64)
try: stream.sync()
except CUDAError as error:
    assert error.code == 700 and error.entry_point == "cuStreamQuery" and "deferred" in str(error), error
    print(error)
for use in (stream.sync, stream.record, lambda: launch(stream, ONE, k, 64), device.sync, device.create_stream, device.create_event,
            lambda: device.allocate(4, stream=stream)):
    try: use()
    except ContextPoisonedError as error: assert "cuStreamQuery" in str(error) and error.code == 700
    else: sys.exit("no error")
stream.close()
print("poisoned")
"""
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said and "poisoned" in said


@simulated_only
@pytest.mark.parametrize(
    ("source", "code", "place"),
    [
        ("void k(char* p) { *(int*)(p + 2) = 1; }", 716, "misaligned address"), ("void k(int* p) { p[100] = 1; }", 700, "write of 4 bytes"),
        ("void k(int* p) { __trap(); }", 715, "trap"),
    ],
)  # fmt: skip
def test_faults_say_where(run_python, source, code, place):
    said = run_python(
        SETUP
        + f"""
from ftcuda.testing import simulation
buffer = device.allocate(16, stream=stream)
launch(stream, ONE, kernel({source!r}), buffer)
try: stream.sync()
except CUDAError as error: assert error.code == {code}, error
print(simulation.last_fault())
"""
    )
    assert place in said and "kernel k, block (0,0,0), thread (0,0,0)" in said


def test_first_use_from_many_threads(run_python):
    run_python("""
import ftcuda
from ftcuda.testing import together
def work(index):
    stream = ftcuda.Device(0).create_stream()
    buffer = ftcuda.Device(0).allocate(100, stream=stream)
    stream.sync()
    return ftcuda.driver_info().path, id(buffer.memory_resource), id(ftcuda.Device(0).memory_resource)
assert len(set(together(16, work))) == 1
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_an_error(run_python):
    said = run_python(
        SETUP
        + """
import os, warnings
warnings.simplefilter("ignore")  # Python's own about forking
buffer = device.allocate(4, stream=stream)
child = os.fork()
if child == 0:
    for use in (stream.sync, stream.record, lambda: Device(0), lambda: device.create_stream(), lambda: buffer.fill(0, stream=stream),
                lambda: Stream.from_handle(stream.handle)):
        try: use()
        except ForkedProcessError: pass
        else: os._exit(1)
    buffer.close(); stream.close(); del buffer, stream
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stream.sync()
print("parent goes on")
"""
    )
    assert "parent goes on" in said


def test_exit_with_live_objects_and_daemon_threads(run_python):
    run_python(
        SETUP
        + """
import threading
buffer = device.allocate(4, stream=stream)
def spin():
    while True:
        stream.record(); buffer.fill(1, stream=stream); stream.sync()
for _ in range(4): threading.Thread(target=spin, daemon=True).start()
for _ in range(100): stream.record()
"""
    )


def test_a_resource_of_the_user_s_is_not_called_at_exit(run_python):
    """Mutant: a finalizer that finds its module empty says so on stderr."""
    said = run_python(
        SETUP
        + """
import threading
class Lent(MemoryResource):
    is_device_accessible = is_host_accessible = True
    device_id = -1
    def __init__(self): self._memory, self._live = LegacyPinnedMemoryResource(), {}
    def allocate(self, size, *, stream=None):
        block = self._memory.allocate(size)
        self._live[block.handle] = block
        return Buffer.from_handle(block.handle, size, mr=self, stream=stream)
    def deallocate(self, ptr, size, *, stream): print("called"); self._live.pop(ptr).close()
lent, made = Lent(), []
thread = threading.Thread(target=lambda: made.append(lent.allocate(8)))
thread.start(); thread.join()
"""
    )
    assert said == ""


def test_hooks_are_not_called_at_exit(run_python):
    """Mutant: what a hook needs is gone, and Python prints an error without words."""
    said = run_python(
        SETUP
        + """
from ftcuda.memory import hooks
hooks.on_free(lambda allocation: None)
sys.kept = LegacyPinnedMemoryResource().allocate(8)
"""
    )
    assert said == ""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython 3.14 waits for threads that are just detaching")
def test_daemon_threads_make_few_calls_at_exit(run_python):
    """Mutant: without the wait they make thousands, and one process of seven hundred crashes. It is a wait by the real
    clock: 10 ms before each call."""
    said = run_python(
        """
import atexit, threading, time
calls = 0
def look():
    before, begin = calls, time.perf_counter()
    while calls < before + 4: time.sleep(0)  # the first one may have waited before
    theirs = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(2000): stream.record(event)  # which would be 20 s
    print("few" if theirs >= 0.03 else f"four in {theirs} s", "fast" if time.perf_counter() - begin < 15 else "slow")
atexit.register(look)  # runs after what ftcuda registers at its first use
"""
        + SETUP
        + """
event = stream.record()
def spin():
    global calls
    while True:
        stream.record(event)
        calls += 1
threading.Thread(target=spin, daemon=True).start()
while calls < 1000: time.sleep(0)
"""
    )
    assert "few fast" in said


def test_collection_on_a_thread_without_a_context(run_python):
    """Mutant: without the ContextScope in Buffer::destroy() the driver answers INVALID_CONTEXT, which a deferred error reports."""
    run_python(
        SETUP
        + """
import gc, threading
cycle = [device.allocate(100), device.allocate(100, stream=stream), device.create_event(), device.create_stream()]
cycle.append(cycle)
del cycle
collector = threading.Thread(target=gc.collect)
collector.start()
collector.join()
device.sync()  # a failure would come out here, as a warning that is an error
"""
    )


@simulated_only
@pytest.mark.thread_unsafe(reason="plans faults for the whole process")
@pytest.mark.parametrize(
    ("make", "entry", "thing"),
    [("create_stream", "cuStreamDestroy_v2", "stream"), ("create_event", "cuEventDestroy_v2", "event")],
)
def test_what_a_destructor_cannot_raise_comes_out_once(device, make, entry, thing):
    from ftcuda.testing import faults

    lost = getattr(device, make)()
    handle = lost.handle
    with faults.failing(entry, 999) as fault:
        del lost
        gc.collect()
        assert fault.hits == 1
    with pytest.warns(ftcuda.CUDAWarning, match=f"cannot destroy {thing}.*CUDA_ERROR_UNKNOWN.*{entry}"):
        device.sync()
    device.sync()
    _destroy(entry, handle)


def _destroy(entry, handle):
    """Destroys by hand what the fault kept alive."""
    import ctypes

    getattr(ctypes.CDLL(ftcuda.driver_info().path), entry)(ctypes.c_void_p(handle))


@simulated_only
@pytest.mark.thread_unsafe(reason="captures, which every thread's calls could end")
@pytest.mark.parametrize("mode", [0, 1])
def test_housekeeping_does_not_end_a_capture(device, code, mode):
    """Another thread's allocations, frees, queries, loads and destructions while a stream captures, GLOBAL and THREAD_LOCAL.

    Mutant: without RelaxedCapture they fail with 900 and end the capture.
    """
    import ctypes

    from ftcuda.testing import together
    from tests.kernels import SAXPY, compile_code

    driver = ctypes.CDLL(ftcuda.driver_info().path)
    stream, other = device.create_stream(), device.create_stream()
    assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(stream.handle), mode) == 0

    def housekeeping(index):
        buffer = device.allocate(100, stream=other)
        buffer.fill(0, stream=other)
        event = other.record()
        event.sync()
        assert event.is_done and other.is_done in (True, False)  # the other thread may have submitted since
        pageable = np.full(100, 1 + index, np.uint8)
        buffer.copy_from(pageable, stream=other)  # through staging memory, which this may be the first to need
        assert (buffer.copy_to(np.empty(100, np.uint8), stream=other) == pageable).all()
        device.trim_staging()
        buffer.close()
        ftcuda.LegacyPinnedMemoryResource().allocate(100).close()
        ftcuda.SynchronousMemoryResource(device).allocate(100).close()
        compile_code(SAXPY).get_kernel("empty")
        if device.features.memory_pools:
            device.memory_resource.trim()
        gc.collect()

    together(2, housekeeping)
    graph = ctypes.c_void_p()
    assert driver.cuStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(graph)) == 0
    assert driver.cuGraphDestroy(graph) == 0
    stream.close()
    other.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="captures, which every thread's calls could end")
def test_memory_used_by_a_capturing_stream_is_freed_later(device, stream, code):
    import ctypes

    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    buffer = device.allocate(4, stream=stream)
    capturing = device.create_stream()
    capturing.wait(stream)
    buffer.fill(0, stream=capturing)
    driver.cuStreamBeginCapture_v2(ctypes.c_void_p(capturing.handle), 1)
    buffer.close()
    graph = ctypes.c_void_p()
    assert driver.cuStreamEndCapture(ctypes.c_void_p(capturing.handle), ctypes.byref(graph)) == 0
    driver.cuGraphDestroy(graph)
    capturing.close()
    device.sync()


@simulated_only
@pytest.mark.thread_unsafe(reason="captures, which every thread's calls could end; counts driver calls")
def test_memory_used_by_another_threads_capture_is_freed_later(device, stream):
    """No event can be recorded in a capture that has failed, and no graph comes of it that could keep the memory: nobody
    knows when that is free before nothing runs.

    Mutant: without the note that the use could not be marked the memory goes at once.
    """
    import ctypes

    from ftcuda.testing import faults, simulation, together

    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    buffer = device.memory_resource.upstream.allocate(4, stream=stream)

    def captured(index):
        device.set_current()
        default, graph = ctypes.c_void_p(2), ctypes.c_void_p()  # the thread's own default stream
        with faults.failing("cuEventRecord", 901):  # another thread ends the capture behind the fill
            buffer.fill(0, stream=ftcuda.PER_THREAD_DEFAULT_STREAM)
        assert driver.cuStreamBeginCapture_v2(default, 1) == 0
        assert driver.cuStreamSynchronize(default) != 0  # which no capture survives
        with pytest.raises(ftcuda.CUDAError, match="INVALIDATED"):
            buffer.fill(0, stream=ftcuda.PER_THREAD_DEFAULT_STREAM)
        assert driver.cuStreamEndCapture(default, ctypes.byref(graph)) != 0

    together(1, captured)
    freed = simulation.calls("cuMemFreeAsync") + simulation.calls("cuMemFree_v2")
    with pytest.warns(ftcuda.CUDAWarning, match="cannot mark use"):
        buffer.close()
    assert simulation.calls("cuMemFreeAsync") + simulation.calls("cuMemFree_v2") == freed
    device.sync()
    assert simulation.calls("cuMemFreeAsync") + simulation.calls("cuMemFree_v2") == freed + 1


def test_the_gil_stays_off():
    import sysconfig

    assert sys._is_gil_enabled() == (not sysconfig.get_config_var("Py_GIL_DISABLED"))
