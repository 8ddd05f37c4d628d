import sys
import threading
from types import SimpleNamespace

import pytest

from ftcuda.testing import Sequencer, together


def test_results_by_index():
    assert together(4, lambda index, base: base + index, 10) == [10, 11, 12, 13]


def test_every_exception_is_collected():
    def work(index):
        raise (SystemExit if index else ValueError)(index)

    with pytest.raises(BaseExceptionGroup) as caught:
        together(3, work)
    assert len(caught.value.exceptions) == 3 and caught.group_contains(SystemExit)
    threads = {note for failure in caught.value.exceptions for note in failure.__notes__}
    assert threads == {f"in thread together-{index}" for index in range(3)}


def test_calls_at_once_keep_what_could_not_be_raised_apart(run_python):
    """Mutant: each call puts the hook back that it found, which the other one may have set."""
    run_python(
        """
import sys, threading
from ftcuda.testing import together

class Late:
    def __del__(self):
        raise ValueError("late")

before = sys.unraisablehook
first_began, second_began, first_ended = (threading.Event() for _ in range(3))

def first(index):
    first_began.set()
    assert second_began.wait(20)

def second(index):
    second_began.set()
    assert first_ended.wait(20)
    Late()

def call_first():
    together(1, first)
    first_ended.set()

thread = threading.Thread(target=call_first)
thread.start()
assert first_began.wait(20)
try:
    together(1, second)
except BaseExceptionGroup as failures:
    assert [str(failure) for failure in failures.exceptions] == ["late"]
else:
    raise AssertionError("what a destructor raised was lost")
thread.join()
assert sys.unraisablehook is before
"""
    )


class Never:
    """Who waits for it is known to be there."""

    def __init__(self):
        self.is_waited_for, self.ends = threading.Event(), threading.Event()

    def wait(self):
        self.is_waited_for.set()
        self.ends.wait()


@pytest.fixture
def time_is_over(monkeypatch):
    """For `together`, with a thread that still runs when it is joined for a time: `meanwhile(timeout)` is called then."""

    def until(meanwhile):
        now = 100.0

        class Thread(threading.Thread):
            def join(self, timeout):
                nonlocal now
                meanwhile(self, timeout)
                now += timeout

        module = sys.modules["ftcuda.testing.together"]
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
        monkeypatch.setattr(module, "threading", SimpleNamespace(Thread=Thread, Barrier=threading.Barrier))

    return until


@pytest.mark.thread_unsafe(reason="sets the clock that together() reads")
def test_a_stuck_thread_is_reported(time_is_over):
    """By file, line and stack, as every thread is; and what another thread had raised is the cause."""
    never = Never()

    def work(index):
        if index == 0:
            raise ValueError("the reason why the other one waits for ever")
        if index == 1:
            never.wait()

    def meanwhile(thread, timeout):
        if thread.name == "together-1":
            assert never.is_waited_for.wait(100)
        else:
            threading.Thread.join(thread)

    time_is_over(meanwhile)
    try:
        with pytest.raises(TimeoutError, match="^together-1 did not end within 1000 s:\n") as caught:
            together(3, work, timeout=1000)
    finally:
        never.ends.set()
    stack = str(caught.value).partition("together-1:\n")[2].partition("\n\n")[0]
    line = work.__code__.co_firstlineno + 4
    assert f'  File "{__file__}", line {line} in work\n    never.wait()\n' in stack
    assert "MainThread:\n" in str(caught.value) or threading.current_thread() is not threading.main_thread()
    (cause,) = caught.value.__cause__.exceptions
    assert "the reason why" in str(cause)


@pytest.mark.thread_unsafe(reason="sets the clock that together() reads")
def test_the_time_is_for_all_threads(time_is_over):
    """Mutant: with a join that may take the whole time for each thread, eight of them take eight times as long."""
    never, joins = threading.Event(), []
    time_is_over(lambda thread, timeout: joins.append(timeout))
    try:
        with pytest.raises(TimeoutError, match="together-0, .*together-7 did not end within 1.5 s"):
            together(8, lambda index: never.wait(), timeout=1.5)
    finally:
        never.set()
    assert joins == [1.5] + [0] * 7


@pytest.mark.skipif(
    sys._is_gil_enabled(), reason="with the GIL nobody but the hung thread runs Python, so that nobody can tell"
)
@pytest.mark.skipif(sys.platform == "win32", reason="needs the C library's sleep")
def test_a_thread_that_hangs_attached_ends_the_process(run_python):
    """Its stack cannot be read, since it never lets go of the interpreter: the process ends, rather than never."""
    said = run_python(
        """
import ctypes
from ftcuda.testing import together
together(2, lambda index: index and ctypes.PyDLL(None).sleep(300), timeout=3)
""",
        expect=1,
    )
    assert "in all_stacks" in said and 'File "<string>", line 4 in <lambda>' in said


def test_stacks_are_read_by_one_thread_at_a_time(run_python):
    """faulthandler has one timer: set by two threads at once, one was left that nobody stopped and ended the process."""
    run_python(
        """
import faulthandler, threading, time
from ftcuda.testing import stacks, together
from ftcuda.testing.stacks import all_stacks
set_now, come = [], []
class Lock:  # that knows who has come to it
    def __init__(self): self.lock = threading.Lock()
    def __enter__(self):
        come.append(1)
        self.lock.acquire()
    def __exit__(self, *exception): self.lock.release()
stacks.TIMER = Lock()
def dump_traceback_later(*arguments, **options):
    set_now.append(1)
    while len(come) < 4: time.sleep(0)  # all are here, or wait for this one
def cancel_dump_traceback_later():
    most.append(len(set_now))
    set_now.pop()
faulthandler.dump_traceback_later, faulthandler.cancel_dump_traceback_later = (
    dump_traceback_later,
    cancel_dump_traceback_later,
)
most = []
assert all(f"together-{index}:" in stacks for index, stacks in enumerate(together(4, lambda index: all_stacks())))
assert most == [1] * 4, most
"""
    )


def test_sequencer():
    sequencer = Sequencer()
    order = []

    def work(index):
        for number in range(index + 1, 10, 3):
            with sequencer.step(number):
                order.append(number)

    together(3, work)
    assert order == sorted(order) and len(order) == 9
    with pytest.raises(ValueError, match="taken already"), sequencer.step(3):
        pass
    with pytest.raises(TimeoutError, match="nobody took"), Sequencer(timeout=0.01).step(2):
        pass
