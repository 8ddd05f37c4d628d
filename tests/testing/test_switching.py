"""Switch points and known locks, in this process."""

import sys
import threading
from types import ModuleType

import pytest

from ftcuda.testing import Schedule, schedule, together
from ftcuda.testing.locks import Condition, RLock, known_locks
from ftcuda.testing.switching import UserFiles, switch_points
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="a scheduled session is the only one in its process")]


def test_whose_files_are_raced(tmp_path):
    root = tmp_path / "project"
    files = UserFiles(root, ["json", "vendor/*.py"])
    assert str(root / "package" / "module.py") in files and str(root / "vendor" / "other.py") in files
    assert str(tmp_path / "module.py") not in files and "module.py" not in files and None not in files
    assert str(root / ".venv" / "lib" / "site-packages" / "numpy" / "module.py") not in files
    assert threading.__file__ not in files and schedule.__file__ not in files
    import json

    assert json.decoder.__file__ in files
    assert schedule.__file__ not in UserFiles(root, ["ftcuda"])
    with pytest.raises(ValueError, match="race_files names 'no_such_package'"):
        UserFiles(root, ["no_such_package"])


def new_function(calls):
    """A function that has never run, of a file of its own."""
    names = {"calls": calls}
    exec(compile("def count(index):\n    calls['n'] += 1\n", "/of/a/user.py", "exec"), names)
    return names["count"]


def test_the_first_run_has_the_points_of_all_others():
    """Mutant: instrumenting a function when it has returned, so that its first run has no points."""
    traces, counts = [], []
    with switch_points({"/of/a/user.py"}):
        calls = {"n": 0}
        count = new_function(calls)
        for _ in range(3):
            calls["n"] = 0
            together(2, count, schedule=Schedule("random", seed=3))
            traces.append(schedule.last_trace())
            counts.append(calls["n"])
    assert len(set(traces)) == len(set(counts)) == 1 and traces[0][0] > 8
    together(2, count, schedule=Schedule("random", seed=3))
    assert schedule.last_trace()[0] < 5  # the points are gone


def test_points_need_a_tool_that_is_free():
    monitoring = sys.monitoring
    taken = [tool for tool in range(5) if monitoring.get_tool(tool) is None]
    for tool in taken:
        monitoring.use_tool_id(tool, "another")
    try:
        with pytest.raises(RuntimeError, match="all tools of sys.monitoring are in use"), switch_points(set()):
            pass
    finally:
        for tool in taken:
            monitoring.free_tool_id(tool)


def test_names_come_back_in_modules_imported_meanwhile(monkeypatch):
    real = threading.Lock
    before, meanwhile = ModuleType("before"), ModuleType("meanwhile")
    before.__file__, before.Lock = "/of/a/user.py", real
    monkeypatch.setitem(sys.modules, "before", before)
    with known_locks({"/of/a/user.py"}):
        assert before.Lock is threading.Lock is schedule.Lock
        monkeypatch.setitem(sys.modules, "meanwhile", meanwhile)
        meanwhile.Lock = threading.Lock
    assert before.Lock is meanwhile.Lock is threading.Lock is real


@pytest.mark.parametrize("seed", range(10))
def test_conditions_wake_who_came_first(seed):
    """Also those over a lock that is held twice."""
    lock = RLock()
    condition, order, came = Condition(lock), [], []

    def work(index):
        if index:
            with lock, condition:
                came.append(index)
                condition.wait()
                order.append(index)
            return
        while len(order) < 2:
            with condition:
                condition.notify()
            schedule.point()

    together(3, work, schedule=Schedule("random", seed=seed))
    assert len(came) == 2 and sorted(order) == [1, 2] and not lock.locked()


def test_locks_say_what_real_ones_say():
    lock, reentrant, condition = schedule.Lock(), RLock(), Condition()
    assert lock.acquire() and not lock.acquire(blocking=False) and not lock.acquire(timeout=0) and lock.locked()
    lock.release()
    assert reentrant.acquire() and reentrant.acquire(blocking=False)
    reentrant.release()
    assert reentrant.locked()
    reentrant.release()
    assert not reentrant.locked()
    for call in (lock.release, reentrant.release, condition.wait, condition.notify, condition.notify_all):
        with pytest.raises(RuntimeError):
            call()
    for wrong in ({"blocking": False, "timeout": 1}, {"timeout": -2}):
        with pytest.raises(ValueError):
            lock.acquire(**wrong)


def test_a_stuck_schedule_names_locks_made_before():
    assert "made before the test" in schedule.why_stuck() and 'schedule="free"' in schedule.why_stuck()
