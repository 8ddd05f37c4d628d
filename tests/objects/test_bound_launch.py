import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

from ftcuda import BoundLaunch, Buffer, ClosedError, LaunchConfig, LegacyPinnedMemoryResource, StridedMemoryView
from ftcuda.testing import together
from tests.kernels import compile_code

ONE = LaunchConfig(grid=1, block=1)

SOURCE = r"""
struct Pair { int a; double b; };
extern "C" __global__ void put(double* out, int i, float f, double d, Pair p) {
    out[0] = i; out[1] = f; out[2] = d; out[3] = p.a; out[4] = p.b;
}
extern "C" __global__ void none() {}
"""
PAIR = np.dtype([("a", "i4"), ("b", "f8")], align=True)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


@pytest.fixture(scope="module")
def code():
    code = compile_code(SOURCE)
    code.get_kernel("put")  # loads it, so that no test finds a new module
    return code


@pytest.fixture
def put(code):
    return code.get_kernel("put")


@pytest.fixture
def out():
    buffer = LegacyPinnedMemoryResource().allocate(40)
    yield buffer
    buffer.close()


def stored(bound, out, stream):
    bound.launch(stream)
    stream.sync()
    return np.frombuffer(out, "f8").tolist()


@pytest.mark.thread_unsafe(reason="writes the buffer of its fixture")
def test_the_kernel_gets_what_is_bound(put, out, stream):
    bound = put.bind(ONE, out, 3, 0.5, 7, Pair(4, 5.0))
    assert bound.kernel is put and bound.config is ONE and repr(bound) == "<BoundLaunch of <Kernel put>>"
    assert stored(bound, out, stream) == [3, 0.5, 7, 4, 5]
    bound.set(1, -3)
    bound.set(-1, np.array((6, 8.0), PAIR)[()])
    bound.set(3, 2.5)
    assert stored(bound, out, stream) == [-3, 0.5, 2.5, 6, 8]


@pytest.mark.thread_unsafe(reason="writes the buffer of its fixture")
def test_arguments_are_what_the_kernel_gets(put, out, stream):
    pair = Pair(1, 2.0)
    bound = put.bind(ONE, out, True, 0.1, 7, pair)
    pair.a = 9
    buffer, flag, narrow, wide, structure = bound.arguments
    assert buffer is out and flag is True
    assert narrow == float(np.float32(0.1)) and narrow != 0.1
    assert wide == 7.0 and type(wide) is float
    assert type(structure) is Pair and (structure.a, structure.b) == (1, 2.0)
    for value, kind in (
        (np.array((3, 4.0), PAIR)[()], np.void),
        (bytes(16), bytes),
    ):
        bound.set(4, value)
        assert type(bound.arguments[4]) is kind and bytes(bound.arguments[4]) == bytes(value)
    bound.set(1, np.int32(-2))
    bound.set(2, np.float32(0.5))
    assert bound.arguments[1:3] == (np.int32(-2), np.float32(0.5)) and type(bound.arguments[1]) is np.int32
    bound.set(0, out.handle)
    assert bound.arguments[0] == out.handle
    assert stored(bound, out, stream)[:2] == [-2, 0.5]


@pytest.mark.thread_unsafe(reason="writes the buffer of its fixture")
def test_who_waits_for_a_section_launches_what_is_bound_when_it_is_over(put, out, stream, when_waiting):
    """Mutant: it launches what was bound when it began to wait, though another launch had newer arguments already."""
    bound = put.bind(ONE, out, 1, 0.5, 7, Pair(4, 5.0))
    waiting = threading.Thread(target=lambda: bound.launch(stream))
    with stream.exclusive():
        waiting.start()
        when_waiting()
        bound.set(1, 2)
        bound.launch(stream)
    waiting.join()
    stream.sync()
    assert np.frombuffer(out, "f8")[0] == 2


def test_no_arguments(code, stream):
    bound = code.get_kernel("none").bind(ONE)
    assert bound.arguments == ()
    bound.launch(stream)
    with pytest.raises(IndexError, match="0 arguments, and no argument 0"):
        bound.set(0, 1)


def test_what_does_not_fit_is_refused_and_changes_nothing(put, out, stream):
    bound = put.bind(ONE, out, 1, 2.0, 3.0, bytes(16))
    for index, value, error in (
        (1, 2**40, OverflowError),
        (1, "word", TypeError),
        (4, 1, TypeError),
        (4, bytes(15), ValueError),
        (2, out, TypeError),
        (5, 0, IndexError),
        (-6, 0, IndexError),
        (0, np.zeros(4), TypeError),
    ):
        with pytest.raises(error):
            bound.set(index, value)
    assert bound.arguments == (out, 1, 2.0, 3.0, bytes(16))
    with pytest.raises(TypeError, match="5 arguments, 1 were given"):
        put.bind(ONE, out)
    with pytest.raises(TypeError):
        put.bind(None, out)
    with pytest.raises(TypeError, match="StridedMemoryView"):
        put.bind(ONE, np.zeros(5), 1, 2.0, 3.0, bytes(16))
    with pytest.raises(TypeError):
        bound.launch(None)
    with pytest.raises(TypeError, match="Kernel.bind"):
        BoundLaunch()


def test_a_closed_buffer_is_refused_until_it_is_replaced(put, device, stream):
    first, second = (device.allocate(40, stream=stream) for _ in range(2))
    bound = put.bind(ONE, first, 1, 2.0, 3.0, bytes(16))
    first.close()
    with pytest.raises(ClosedError):
        bound.launch(stream)
    bound.set(0, second)
    bound.launch(stream)
    second.close()


def test_replaced_arguments_are_let_go(put, device, stream, out):
    """Those of threads that launched before too: a stripe's copy must not outlive the set."""
    bound = put.bind(ONE, device.allocate(40, stream=stream), 1, 2.0, 3.0, bytes(16))
    together(3, lambda index: bound.launch(stream))
    kept = weakref.ref(bound.arguments[0])
    bound.set(0, out)
    gc.collect()
    assert kept() is None
    bound.launch(stream)
    stream.sync()


def test_views_are_bound(put, device, stream):
    buffer = device.allocate(40, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (5,), dtype="f8")
    bound = put.bind(ONE, view, 1, 2.0, 3.0, bytes(16))
    bound.launch(stream)
    assert bound.arguments[0] is view
    buffer.close()
    with pytest.raises(ClosedError):
        bound.launch(stream)


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_foreign_memory_is_kept_until_the_work_is_done(put, device, stream, held_clock):
    """Mutant: kept only while it is bound, the producer is gone under the running kernel."""

    class Producer:
        def __init__(self, buffer):
            self.__cuda_array_interface__ = {
                "shape": (5,),
                "typestr": "<f8",
                "data": (buffer.handle, False),
                "version": 3,
            }

    memory = LegacyPinnedMemoryResource().allocate(40)
    other = LegacyPinnedMemoryResource().allocate(40)
    producer = Producer(Buffer.from_handle(memory.handle, 40))
    alive = weakref.ref(producer)
    bound = put.bind(ONE, StridedMemoryView.from_cuda_array_interface(producer, -1), 1, 2.0, 3.0, bytes(16))
    del producer
    with held_clock():
        bound.launch(stream)
        bound.set(0, other)
        gc.collect()
        assert alive() is not None
    stream.sync()
    bound.launch(stream)
    bound.set(0, memory)  # lets go of what is done
    gc.collect()
    assert alive() is None
    stream.sync()


def test_every_thread_sees_a_set(put, device):
    """Mutant: a stripe that keeps its copy launches with the old value."""
    out = LegacyPinnedMemoryResource().allocate(40)
    bound, barrier = put.bind(ONE, out, 1, 2.0, 3.0, bytes(16)), threading.Barrier(4)

    def work(index):
        stream = device.create_stream()
        bound.launch(stream)
        stream.sync()
        barrier.wait()
        if index == 0:
            bound.set(1, 5)
            out_values[0] = 0
        for turn in range(4):
            barrier.wait()
            if turn == index:
                bound.launch(stream)
                stream.sync()
                assert out_values[0] == 5
                out_values[0] = 0
        stream.close()

    out_values = np.frombuffer(out, "f8")
    together(4, work)
