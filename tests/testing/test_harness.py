"""What ``python -m stress`` says of rounds that fail or hang: where everybody was, how to repeat it, and in time.

The hazards here are planted: each test writes one, runs the harness on it in a process, and reads its report.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ftcuda.testing import simulation
from tests.conftest import simulated_only

pytest.importorskip("rich", reason="the harness prints with rich")
pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="each test is a process that uses all cores")]

ROOT = Path(__file__).resolve().parents[2]
HAZARD = """
import ctypes
import sys
from threading import Event
from types import SimpleNamespace
from ftcuda.testing import schedule
from ftcuda.testing.hazard import Hazard, ProcessHazard


class Planted({base}):
    {body}
"""


@pytest.fixture
def plant(tmp_path):
    """Writes a hazard; returns its path, by which the harness finds it."""

    def write(body, base="Hazard"):
        path = tmp_path / "planted.py"
        path.write_text(HAZARD.format(base=base, body=body))
        return path

    return write


def stress(*arguments, **environment):
    """Runs the harness, which must fail and say so on its own; returns what it said on one long line each."""
    path = os.pathsep.join([str(ROOT), *sys.path[1:]])
    result = subprocess.run(
        [sys.executable, "-m", "stress", "--driver", "sim", *map(str, arguments)],
        capture_output=True, text=True, timeout=240, cwd=ROOT, env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip
    assert result.returncode == 1, f"exit {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


HANG = """threads = 3
    def act(self, state, index, random):
        if index != 1:
            Event().wait()  # for ever
        return 1
"""


def test_a_hang_is_reported_in_time(plant):
    """Mutant: with a time for each thread, the report would come after eight times as long.

    The bound is the round's timeout after the hang began; the process then ends, whatever its threads do.
    """
    path = plant(HANG)
    said = stress("--threads", 8, "--seconds", 1, "--timeout", 3, "--hazard", path, "--hazard", "close")
    assert (
        "together-0, together-2, together-3, together-4, together-5, together-6, together-7 did not end within 3.0 s"
        in said
    )
    for thread in (0, 2, 7):
        stack = said.partition(f"together-{thread}:\n")[2].partition("\n\n")[0]
        line = path.read_text().splitlines().index("            Event().wait()  # for ever") + 1
        assert f'  File "{path}", line {line} in act\n    Event().wait()  # for ever\n' in stack
    assert f"close did not run: {path} hung before" in said


def test_a_free_run_says_that_it_does_not_repeat(plant):
    path = plant("""
    def act(self, state, index, random):
        assert index != 2, "planted"
        return 1
""")
    said = stress("--threads", 4, "--seconds", 1, "--seed", 7, "--hazard", path)
    assert "repeat with" not in said
    assert "ran freely, so that nothing repeats it for certain" in said
    assert f"again: python -m stress --driver sim --threads 4 --hazard {path} --seed 7 --seeds 1000\n" in said
    assert (
        f"once found: python -m stress --driver sim --threads 4 --sched pct:10 --hazard {path} --seed 7 --seeds 2000"
        in said
    )
    assert "| AssertionError: planted\n" in said and "| in thread together-2\n" in said  # with the line that raised it
    assert re.search(rf'File "{re.escape(str(path))}", line \d+, in act\n.*assert index != 2, "planted"', said)


def test_a_scheduled_failure_repeats(plant):
    """The command in the report gives the same failure at the same step of the same trace."""
    path = plant("""
    def round(self, seed, random):
        return SimpleNamespace(order=[])
    def act(self, state, index, random):
        for _ in range(5):
            schedule.point()
            state.order.append(index)
        return 5
    def check(self, state):
        text = "".join(map(str, state.order))
        assert "0101" not in text, text
""")
    found = stress("--threads", 2, "--sched", "random", "--seeds", 500, "--hazard", path)
    command = re.search(r"^repeat with: (.*)$", found, re.MULTILINE)[1]
    again = stress(*shlex.split(command)[3:])
    assert failure(found) == failure(again)
    assert failure(found).startswith("AssertionError: ") and "0101" in failure(found)


def failure(said):
    """The line of the exception."""
    return re.search(r"^AssertionError.*$", said, re.MULTILINE)[0]


def test_a_deadlock_of_a_schedule(plant):
    path = plant("""
    def round(self, seed, random):
        return SimpleNamespace(one=schedule.Lock(), other=schedule.Lock())
    def act(self, state, index, random):
        first, second = (state.one, state.other) if index % 2 else (state.other, state.one)
        with first:
            schedule.point()
            with second:
                return 1
""")
    said = stress("--threads", 2, "--sched", "random", "--seeds", 100, "--hazard", path)
    assert "DeadlockError: schedule random, seed " in said and "thread 1 at test waits, held by thread 0\n" in said
    assert said.count("\n    with second:\n") >= 2
    assert re.search(r"^repeat with: .* --sched random ", said, re.MULTILINE)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the C library's sleep")
def test_a_thread_that_hangs_with_the_gil(plant):
    """No thread can run Python any more: the process ends all the same, with all stacks, the hazard and the seed."""
    path = plant("""
    def act(self, state, index, random):
        if index == 1:
            ctypes.PyDLL(None).sleep(300)
        return 1
""")
    said = stress("--threads", 2, "--seeds", 1, "--timeout", 1, "--seed", 5, "--hazard", path, PYTHON_GIL="1")
    assert re.search(rf'File "{re.escape(str(path))}", line \d+ in act\n', said)
    assert f'File "<hazard {path}, seed 0 + line>", line 5' in said


def test_a_process_that_hangs(plant):
    """It is ended, with the stacks of its threads in the report, before the harness takes its own threads for hung."""
    path = plant(
        '''program = """
import threading
threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
threading.Event().wait()
"""
''',
        base="ProcessHazard",
    )
    said = stress("--threads", 2, "--seeds", 1, "--timeout", 5, "--hazard", path)
    assert "AssertionError: exit 1\n" in said and "Timeout (0:00:03.500000)!" in said
    assert 'File "<string>", line 6 in <lambda>' in said and 'File "<string>", line 7 in <module>' in said
    assert "did not end within 5.0 s" not in said


def test_a_build_without_schedule_points_says_what_it_cannot_find(plant):
    path = plant("""
    def act(self, state, index, random):
        raise AssertionError("planted")
""")
    said = " ".join(stress("--threads", 1, "--seeds", 1, "--hazard", path).split())
    note = "NOTE: this build has no schedule points"
    assert (note in said) is not simulation.has_schedule_points()
    assert ("--seeds 2000, in a build with -Dschedule_points=true" in said) is not simulation.has_schedule_points()
