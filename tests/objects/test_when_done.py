"""Functions that are called when work is done."""

import _thread
import ctypes
import gc
import sys
import threading
import warnings
import weakref
from dataclasses import dataclass
from functools import partial
from time import monotonic

import pytest

import ftcuda
from ftcuda import ClosedError, host_launch
from ftcuda.testing import faults, together
from tests.conftest import simulated_only
from tests.objects.graphs import needs_graphs
from tests.objects.waiting import Gates

PATIENCE = 60  # seconds
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.fixture
def gates(code):
    gates = Gates(code)
    yield gates
    gates.close()


@pytest.fixture
def unraisable(monkeypatch):
    """What went to the hook, and an event that says that something did."""
    seen, came = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda said: (seen.append((said.exc_value, said.object)), came.set()))
    return seen, came


def called(what, function=lambda: None):
    """A function that is called when `what` is done, by now."""
    over = threading.Event()
    answers = []

    def call():
        try:
            answers.append(function())
        finally:
            over.set()

    what.when_done(call)
    assert over.wait(PATIENCE)
    return answers


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_it_is_called_when_the_work_is_done(stream, gates, kind):
    buffer, view = gates.word()
    for value in range(1, 51):
        gates.store(stream, buffer, value)
        assert called(stream if kind == "stream" else stream.record(), lambda: int(view[0])) == [value]


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_not_before_and_once(device, gates, kind):
    stream = device.create_stream()
    open_gate, calls = gates.shut(stream), []
    over = threading.Event()
    what = stream if kind == "stream" else stream.record()
    what.when_done(lambda: (calls.append(stream.is_done), over.set()))
    assert not over.wait(0.05)
    open_gate()
    assert over.wait(PATIENCE)
    assert called(stream) == [None]
    assert calls == [True]


def test_it_is_another_thread_and_the_stream_goes_on(stream, gates):
    begun, allowed = threading.Event(), threading.Event()
    threads = []
    stream.when_done(lambda: (threads.append(threading.get_ident()), begun.set(), allowed.wait(PATIENCE)))
    assert begun.wait(PATIENCE)
    buffer, view = gates.word()
    gates.store(stream, buffer, 8)
    stream.sync(timeout=PATIENCE)  # though the function has not returned
    assert view[0] == 8 and not allowed.is_set()
    allowed.set()
    assert threads != [threading.get_ident()]


def test_functions_come_one_after_the_other(device):
    """From many threads and streams, each once."""
    streams = [device.create_stream() for _ in range(4)]
    inside, most, calls, over = [], [], [], threading.Semaphore(0)

    def call(name):
        inside.append(name)
        most.append(len(inside))
        calls.append(name)
        inside.remove(name)
        over.release()

    def work(index):
        for turn in range(25):
            streams[index].when_done(lambda turn=turn: call((index, turn)))

    together(4, work)
    assert all(over.acquire(timeout=PATIENCE) for _ in range(100))
    assert sorted(calls) == [(index, turn) for index in range(4) for turn in range(25)] and set(most) == {1}
    for stream in streams:
        stream.close()


def test_what_it_may_do(device, gates):
    """All that others may: launch, allocate, collect, close its stream, and ask for the next one."""
    stream = device.create_stream()
    buffer, view = gates.word()
    last = threading.Event()

    def first():
        gates.store(stream, buffer, 6)
        memory = device.allocate(64, stream=stream)
        memory.close()
        gc.collect()
        stream.sync()
        stream.when_done(second)
        stream.close()

    def second():
        assert stream.is_closed and view[0] == 6
        last.set()

    stream.when_done(first)
    assert last.wait(PATIENCE)


@pytest.mark.thread_unsafe(reason="changes sys.unraisablehook")
def test_what_it_raises_comes_with_the_place(stream, unraisable):
    seen, came = unraisable

    def fails():
        raise KeyError("lost")

    stream.when_done(fails); line = sys._getframe().f_lineno  # noqa: E702
    assert came.wait(PATIENCE)
    (error, function), *others = seen
    assert others == [] and function is fails and isinstance(error, KeyError)
    assert error.__notes__ == [f"in a function that when_done() was given at {__file__}:{line}"]
    assert called(stream) == [None]  # the thread goes on


@pytest.mark.thread_unsafe(reason="changes sys.unraisablehook")
def test_the_place_may_be_no_code_of_pythons(stream, unraisable):
    seen, came = unraisable
    _thread.start_new_thread(stream.when_done, (lambda: 1 // 0,))
    assert came.wait(PATIENCE)
    assert seen[0][0].__notes__ == ["in a function that when_done() was given at the begin of a thread"]


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_the_function_goes_after_its_call(stream):
    class Counter:
        def __call__(self):
            pass

    counter, called = Counter(), threading.Event()
    gone = weakref.ref(counter)
    stream.when_done(counter)
    del counter
    end = monotonic() + PATIENCE
    while gone() is not None and monotonic() < end:
        called.wait(0.01)
    assert gone() is None


def test_what_is_refused(device):
    stream, event = device.create_stream(), device.create_event()
    with pytest.raises(TypeError, match="fn must be callable, not int"):
        stream.when_done(3)
    stream.close()
    event.close()
    with pytest.raises(ClosedError, match="the stream is closed"):
        stream.when_done(print)
    with pytest.raises(ClosedError, match="the event is closed"):
        event.when_done(print)


# ---- Host functions -------------------------------------------------------------------------------------------------


def test_a_host_function_has_its_place_in_the_stream(stream, gates):
    buffer, view = gates.word()
    seen = []
    for value in range(1, 51):
        gates.store(stream, buffer, value)
        host_launch(stream, lambda: seen.append(int(view[0])))
    stream.sync()
    assert seen == list(range(1, 51))


def test_later_work_waits_for_it(stream, gates):
    begun, allowed = threading.Event(), threading.Event()
    buffer, view = gates.word()
    host_launch(stream, lambda: (begun.set(), allowed.wait(PATIENCE)))
    gates.store(stream, buffer, 9)
    assert begun.wait(PATIENCE)
    assert view[0] == 0 and not stream.is_done
    allowed.set()
    stream.sync()
    assert view[0] == 9


@pytest.mark.thread_unsafe(reason="its functions wait for others of the process's two threads")
def test_host_functions_and_others_wait_for_no_other_kind(device):
    """Each kind has a thread: what frees memory in the one may wait for the device, and so for the other one."""
    streams = [device.create_stream() for _ in range(2)]
    for first, second in ((streams[0].when_done, partial(host_launch, streams[1])), (partial(host_launch, streams[0]), streams[1].when_done)):
        begun, over, allowed = threading.Event(), threading.Event(), threading.Event()
        first(lambda begun=begun, allowed=allowed: (begun.set(), allowed.wait(PATIENCE)))
        assert begun.wait(PATIENCE)
        second(over.set)
        assert over.wait(PATIENCE)
        allowed.set()
    for stream in streams:
        stream.close()


@pytest.mark.thread_unsafe(reason="changes sys.unraisablehook")
def test_what_a_host_function_raises(stream, unraisable):
    seen, came = unraisable

    def fails():
        raise KeyError("lost")

    host_launch(stream, fails)
    stream.sync()
    assert came.wait(PATIENCE)
    assert [(type(error), function) for error, function in seen] == [(KeyError, fails)]


def test_a_function_pointer_goes_to_the_driver(stream):
    """What it is told lives until it is called, though nobody else keeps it."""
    seen = []
    begun, allowed = threading.Event(), threading.Event()

    def look(data):
        seen.append(ctypes.string_at(data, 3))

    host_launch(stream, lambda: (begun.set(), allowed.wait(PATIENCE)))
    host_launch(stream, FUNCTION(look), user_data=bytearray(b"abc"))
    host_launch(stream, FUNCTION(lambda number: seen.append(number)), user_data=77)
    gc.collect()
    assert begun.wait(PATIENCE) and seen == []
    allowed.set()
    stream.sync()
    assert seen == [b"abc", 77]


@needs_graphs
def test_in_a_graph_builder_it_is_a_callback(device, stream):
    calls = []
    builder = device.create_graph_builder().begin_building()
    host_launch(builder, lambda: calls.append(len(calls)))
    graph = builder.end_building().complete()
    assert calls == []
    for _ in range(3):
        graph.launch(stream)
    stream.sync()
    assert calls == [0, 1, 2]
    graph.close()
    builder.close()


def test_host_functions_that_are_refused(device, stream):
    with pytest.raises(TypeError, match="fn must be callable, not int"):
        host_launch(stream, 3)
    with pytest.raises(ValueError, match="user_data is for function pointers of ctypes"):
        host_launch(stream, print, user_data=1)
    with pytest.raises(TypeError, match="stream must be a Stream"):
        host_launch(None, print)
    closed = device.create_stream()
    closed.close()
    with pytest.raises(ClosedError, match="cannot launch a host function in <Stream 0x\\w+ closed>"):
        host_launch(closed, print)


def test_exceptions_that_take_no_note(stream, monkeypatch):
    """They are reported, and the next function is called."""

    @dataclass(frozen=True)
    class Frozen(Exception):
        number: int

    class Odd(Exception):
        __notes__ = 3

    seen, called = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda found: seen.append(type(found.exc_value)))

    def fail(error):
        raise error

    for error in (Frozen(1), Odd()):
        stream.when_done(partial(fail, error))
    stream.when_done(called.set)
    assert called.wait(PATIENCE)
    assert seen == [Frozen, Odd]


@simulated_only
def test_a_warning_that_is_an_error_comes_before_the_call(device, stream):
    """Nothing was begun, so that who tries again is called once."""
    calls, called = [], threading.Event()
    buffer = device.memory_resource.upstream.allocate(64, stream=stream)
    pointer = buffer.handle
    with faults.failing("cuMemFreeAsync" if device.features.memory_pools else "cuMemFree_v2", 999):
        del buffer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ftcuda.CUDAWarning):
            stream.when_done(lambda: calls.append(1))
        stream.when_done(called.set)
    assert called.wait(PATIENCE) and calls == []
    assert ctypes.CDLL(ftcuda.driver_info().path).cuMemFree_v2(ctypes.c_uint64(pointer)) == 0


@pytest.mark.parametrize("call", ["stream.when_done(called.set)", "ftcuda.host_launch(stream, called.set)"])
def test_a_thread_that_cannot_start_is_tried_again(run_python, call):
    """Mutant: the claim on it stays, and what is called later is never called."""
    run_python(
        f"""
import _thread, threading
import ftcuda

ftcuda.Device(0).set_current()
stream, called, start = ftcuda.Device(0).create_stream(), threading.Event(), _thread.start_new_thread

def refuse(*arguments):
    raise RuntimeError("can't start new thread")

_thread.start_new_thread = refuse
try:
    {call}
    raise AssertionError("there is no thread that would call")
except RuntimeError as error:
    assert "can't start" in str(error), error
assert not called.is_set()
_thread.start_new_thread = start
{call}
assert called.wait(60)
"""
    )
