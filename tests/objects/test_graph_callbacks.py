"""Callbacks in graphs: functions of the host's between kernels, which see what was before and are seen by what comes after."""

import ctypes
import gc
import sys
import threading
import weakref
from time import monotonic

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, launch
from ftcuda.testing import together
from tests.objects.graphs import DRIVER, ONE, needs_graphs, new_log, written

pytestmark = needs_graphs
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_a_callback_is_called_in_order(make_builder, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    append = code.get_kernel("append")
    seen = []

    def look():
        seen.append(written(view))
        view[0] += 1
        view[view[0]] = 100

    builder.begin_building()
    launch(builder, ONE, append, buffer, 1)
    builder.callback(look)
    launch(builder, ONE, append, buffer, 2)
    graph = builder.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 100, 2] * 2 and seen == [[1], [1, 100, 2, 1]]
    graph.close()


def test_the_rest_waits_until_it_returns(make_builder, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    begun, allowed = threading.Event(), threading.Event()
    builder.begin_building()
    builder.callback(lambda: (begun.set(), allowed.wait(60)))
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    graph = builder.end_building().complete()
    graph.launch(stream)
    assert begun.wait(60)
    assert written(view) == [] and not stream.is_done
    allowed.set()
    stream.sync()
    assert written(view) == [1]
    graph.close()


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_the_function_lives_as_long_as_the_graph(make_builder, device, stream):
    class Counter:
        count = 0

        def __call__(self):
            self.count += 1

    counter = Counter()
    gone = weakref.ref(counter)
    builder = make_builder()
    builder.begin_building().callback(counter)
    graph = builder.end_building().complete()
    builder.close()
    del counter
    for _ in range(3):
        graph.launch(stream)
    stream.sync()
    gc.collect()
    assert gone().count == 3
    graph.close()
    end = monotonic() + 20
    while gone() is not None and monotonic() < end:  # it goes a moment after the work
        device.sync()
        gc.collect()
        ftcuda.memory.wait_for_deallocations()
    assert gone() is None


@pytest.mark.thread_unsafe(reason="sys.unraisablehook is the process's")
def test_what_it_raises_goes_to_the_hook(make_builder, code, pinned, stream, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: told.append((type(raised.exc_value), str(raised.exc_value))))
    builder = make_builder()
    buffer, view = new_log(pinned)

    def fail():
        raise KeyboardInterrupt("no")

    builder.begin_building()
    builder.callback(fail)
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert told == [(KeyboardInterrupt, "no")] and written(view) == [1]
    graph.close()


def test_it_calls_the_driver_for_nothing(make_builder, device, code, pinned, stream):
    """A driver may let nobody in until the device is idle, which waits for the callback: decision 35."""
    builder = make_builder()
    other_builder = device.create_graph_builder()
    other_builder.begin_building()
    launch(other_builder, ONE, code.get_kernel("empty"))
    other = other_builder.end_building().complete()
    buffer, view = new_log(pinned)
    append = code.get_kernel("append")
    side, refused = device.create_stream(), []

    def work():
        for call in (
            lambda: device.allocate(1 << 16, stream=side), lambda: launch(side, ONE, append, buffer, 7), side.sync, side.record,
            lambda: other.launch(side), device.create_stream, other_builder.complete, lambda: other.executable_count,
        ):  # fmt: skip
            try:
                call()
            except ftcuda.CUDAError as error:
                refused.append((error.code, error.name))
        other.close()
        gc.collect()

    builder.begin_building()
    builder.callback(work)
    launch(builder, ONE, append, buffer, 8)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert refused == [(800, "CUDA_ERROR_NOT_PERMITTED")] * 8
    assert written(view) == [8] and other.is_closed
    graph.close()
    other_builder.close()
    side.close()


@pytest.mark.parametrize("kind", ["none", "number", "bytes", "bytearray"])
def test_a_function_pointer(make_builder, stream, kind):
    told = []

    @FUNCTION
    def function(address):
        told.append(address if kind in ("none", "number") else ctypes.string_at(address, 5))

    data = {"none": None, "number": 12345, "bytes": b"hello", "bytearray": bytearray(b"hello")}[kind]
    builder = make_builder()
    builder.begin_building().callback(function, user_data=data)
    if kind == "bytearray":
        data[:] = b"other"
    del data
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert told == [{"none": None, "number": 12345}.get(kind, b"hello")]
    graph.close()


@pytest.mark.parametrize(
    ("fn", "user_data", "error", "match"),
    [
        (5, None, TypeError, "callable"),
        (print, b"data", ValueError, "function pointers of ctypes"),
        (FUNCTION(), None, ValueError, "null pointer"),
        (ctypes.CFUNCTYPE(None)(print), None, TypeError, "prototype"),
        (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(id), None, TypeError, "prototype"),
        (FUNCTION(print), "text", TypeError, "bytes-like"),
        (FUNCTION(print), -1, ValueError, "user_data"),
    ],
)
def test_bad_arguments(make_builder, fn, user_data, error, match):
    builder = make_builder()
    builder.begin_building()
    with pytest.raises(error, match=match):
        builder.callback(fn, user_data=user_data)
    builder.end_building()


def test_outside_of_a_capture(make_builder):
    builder = make_builder()
    with pytest.raises(RuntimeError, match="after its begin_building"):
        builder.callback(print)
    builder.begin_building().end_building()
    with pytest.raises(RuntimeError, match="after its begin_building"):
        builder.callback(print)
    builder.close()
    with pytest.raises(ClosedError):
        builder.callback(print)


def test_graphs_of_many_threads_call_back(make_builder, device):
    """One after the other, as many times as they were launched."""
    counts = [0] * 4
    inside = []

    def serve(index):
        stream = device.create_stream()
        builder = device.create_graph_builder()

        def count():
            inside.append(index)
            assert len(inside) == 1
            counts[index] += 1
            inside.pop()

        builder.begin_building().callback(count)
        graph = builder.end_building().complete()
        for _ in range(50):
            graph.launch(stream)
        stream.sync()
        graph.close()
        builder.close()
        stream.close()

    together(4, serve)
    assert counts == [50] * 4


PROGRAM = """
import atexit, threading
exit_began = threading.Event()
atexit.register(exit_began.set)  # before ftcuda's own, and so called after it
import ftcuda
device = ftcuda.Device(0)
stream = device.create_stream()
builder = device.create_graph_builder()
begun = threading.Event()
builder.begin_building()
builder.callback({function})
builder.callback(lambda: print("called late"))
graph = builder.end_building().complete()
graph.launch(stream)
begun.wait(30)
print("leaving", flush=True)
"""


@pytest.mark.parametrize("ends", ["returns", "waits for ever"])
def test_exit_in_a_callback(run_python, ends):
    """The process ends, and nothing is called after its begin."""
    function = {
        "returns": "lambda: (begun.set(), exit_began.wait(30))",
        "waits for ever": "lambda: (begun.set(), threading.Lock().acquire(), threading.Event().wait())",
    }[ends]
    said = run_python(PROGRAM.format(function=function)).split("\n")
    assert "leaving" in said and said[-2:] == ["leaving", ""]


@pytest.mark.skipif(DRIVER < (12, 0), reason="updates of graphs need a driver of CUDA 12")
def test_update_changes_the_function(make_builder, device, stream):
    called = []
    builders = []
    for name in "ab":
        builder = device.create_graph_builder()
        builder.begin_building().callback(lambda name=name: called.append(name))
        builders.append(builder.end_building())
    graph = builders[0].complete()
    graph.launch(stream)
    graph.update(builders[1])
    for builder in builders:
        builder.close()
    graph.launch(stream)
    stream.sync()
    assert called == ["a", "b"]
    graph.close()


def test_values_of_many_launches(make_builder, code, pinned, stream):
    """The function sees the value of its own launch, whatever comes behind."""
    builder = make_builder()
    buffer, view = pinned(np.zeros(1, np.int32))
    seen = []
    builder.begin_building()
    launch(builder, ONE, code.get_kernel("increment"), buffer)
    builder.callback(lambda: seen.append(int(view[0])))
    graph = builder.end_building().complete()
    for _ in range(100):
        graph.launch(stream)
    stream.sync()
    assert seen == list(range(1, 101))
    graph.close()


def test_a_callback_that_forks(run_python):
    """Its child ends as it says, or with the thread, which is all that is left of it."""
    program = """
import ftcuda, os, warnings
warnings.simplefilter("ignore")
device = ftcuda.Device(0)
stream = device.create_stream()
builder = device.create_graph_builder().begin_building()
children = []
def fork():
    child = os.fork()
    if child: children.append(child)
builder.callback(fork)
graph = builder.end_building().complete()
graph.launch(stream)
stream.sync()
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""
    assert run_python(program) == "0\n"
