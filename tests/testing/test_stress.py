"""``python -m ftcuda.stress`` where there is no checkout: it races hazards of others, and says what it was not given.

Each test writes hazards to a folder of its own, and runs the harness there, in a process.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import simulated_only

pytest.importorskip("rich", reason="the harness prints with rich")
pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="each test is a process that uses all cores")]

ROOT = Path(__file__).resolve().parents[2]
HAZARD = """
from types import SimpleNamespace

from ftcuda.testing.hazard import Hazard


class Count(Hazard):
    oracle = "the number that was counted, against that of the turns"

    def round(self, seed, random):
        return SimpleNamespace(counted=0, stream=self.env.device.create_stream())

    def act(self, state, index, random):
        for _ in range(3):
            {body}
        return 3

    def check(self, state):
        state.stream.close()
        if state.counted != {counted}:
            raise AssertionError(f"{{state.counted}} were counted")
"""
ALLOCATE = "self.env.device.allocate(64, stream=state.stream).close()"
CLEAN = HAZARD.format(body=ALLOCATE, counted=0)
# An increment in two steps, with driver calls between them.
LOST = HAZARD.format(body=f"before = state.counted; {ALLOCATE}; state.counted = before + 1", counted=6)


def environment():
    """Without what makes the checkout importable."""
    outside = [path for path in sys.path[1:] if path and Path(path).resolve() != ROOT]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(outside), "PATH": path, "COLUMNS": "120"}


def run(folder, *command, expect=0):
    """Runs a command in a folder; returns what it said."""
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=240, cwd=folder, env=environment()
    )
    said = result.stdout + result.stderr
    assert result.returncode == expect, f"exit {result.returncode}\n{said}"
    return said


def stress(folder, *arguments, expect=0):
    """Runs the harness in a folder."""
    return run(folder, sys.executable, "-m", "ftcuda.stress", *arguments, expect=expect)


def test_the_checkout_is_not_there(tmp_path):
    """What the other tests rely on."""
    assert "No module named stress" in run(tmp_path, sys.executable, "-m", "stress", "--help", expect=1)


def trace(said):
    """Where a scheduled round ended, and with which error."""
    (step,) = re.findall(r"^after \d+ steps, trace 0x[0-9a-f]{16}$", said, re.MULTILINE)
    (error,) = re.findall(r"^AssertionError: .*$", said, re.MULTILINE)
    return step, error


@pytest.mark.parametrize("name", ["lost.py", "the lost.py"])
@pytest.mark.parametrize("sched", ["random", "pct:3"])
def test_a_race_is_found_and_its_command_repeats_it(tmp_path, name, sched):
    (tmp_path / name).write_text(LOST)
    found = stress(tmp_path, name, "--threads", 2, "--sched", sched, "--seeds", 500, expect=1)
    (command,) = re.findall(r"^repeat with: (.*)$", found, re.MULTILINE)
    assert command.startswith(f"python -m ftcuda.stress --driver sim --threads 2 --sched {sched} --hazard ")
    again = run(tmp_path, *shlex.split(command), expect=1)
    assert trace(found) == trace(again)
    assert command in again


def test_a_race_with_no_schedule_names_the_command_too(tmp_path):
    (tmp_path / "wrong.py").write_text(CLEAN.replace("!= 0", "!= 1"))
    said = stress(tmp_path, "wrong.py", "--threads", 2, "--seeds", 1, expect=1)
    assert "AssertionError: 0 were counted" in said
    assert "again: python -m ftcuda.stress --driver sim --threads 2 --hazard wrong.py --seed 1 --seeds 1000\n" in said


def ran(tmp_path, *arguments):
    """The rounds and operations of each hazard of a clean run."""
    stress(tmp_path, *arguments, "--threads", 2, "--seeds", 3, "--json", "figures.json")
    hazards = json.loads((tmp_path / "figures.json").read_text())["hazards"]
    assert not any(hazard["failure"] for hazard in hazards)
    return {hazard["name"]: (hazard["rounds"], hazard["operations"]) for hazard in hazards}


@pytest.mark.parametrize("option", [[], ["--hazard"]])
def test_a_clean_hazard(tmp_path, option):
    (tmp_path / "clean.py").write_text(CLEAN)
    assert ran(tmp_path, *option, "clean.py") == {"clean.py": (3, 18)}


def test_a_folder(tmp_path):
    """Of two hazards, one of which uses a file beside it."""
    (tmp_path / "races").mkdir()
    (tmp_path / "races" / "queue.py").write_text(CLEAN)  # in nobody's way, though Python has a module of that name
    (tmp_path / "races" / "second.py").write_text(f"import queue, _beside\nqueue.Queue\n{CLEAN}")
    (tmp_path / "races" / "_beside.py").write_text("")
    assert ran(tmp_path, "races") == {str(Path("races", name)): (3, 18) for name in ("queue.py", "second.py")}
    assert set(ran(tmp_path, "races", "races/second.py")) == {"races/queue.py", "races/second.py"}  # each once


def test_modules_and_packages(tmp_path):
    (tmp_path / "mine" / "races").mkdir(parents=True)
    (tmp_path / "mine" / "races" / "first.py").write_text(f"from . import _beside\n{CLEAN}")
    (tmp_path / "mine" / "races" / "_beside.py").write_text("")
    (tmp_path / "mine" / "races" / "second.py").write_text(CLEAN)
    assert ran(tmp_path, "mine.races.second") == {"mine.races.second": (3, 18)}
    assert ran(tmp_path, "mine.races") == {"mine.races.first": (3, 18), "mine.races.second": (3, 18)}


def test_a_process_hazard_uses_what_stands_beside_it(tmp_path):
    (tmp_path / "races").mkdir()
    (tmp_path / "races" / "beside.py").write_text("answer = 42")
    (tmp_path / "races" / "process.py").write_text(
        "from ftcuda.testing.hazard import ProcessHazard\n"
        "class Process(ProcessHazard):\n"
        "    oracle = 'an exit status'\n"
        "    program = 'import beside; assert beside.answer == 42 and THREADS == 8'\n"
    )
    assert ran(tmp_path, "races/process.py") == {"races/process.py": (3, 6)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no file mine.py"),
        ("answer = 42", "mine.py must hold one subclass of ftcuda.testing.hazard.Hazard, and holds none"),
        ("from ftcuda.testing.hazard import Hazard", "and holds none"),
        (f"{CLEAN}\nclass Other(Count):\n    pass", "and holds 2: Count, Other"),
        ("import nonsense", "cannot import mine.py: ModuleNotFoundError\nTraceback (most recent call last):\n  File \"{path}\", line 1, in <module>"),
        ("def f(:", "cannot import mine.py: SyntaxError\n  File \"{path}\", line 1"),
        ("import sys\nsys.exit(0)", "cannot import mine.py: SystemExit"),
    ],
)
def test_a_file_that_is_no_hazard(tmp_path, text, words):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    said = stress(tmp_path, "mine.py", "--seeds", 1, expect=2)
    assert words.format(path=path) in said
    assert "ftcuda/stress" not in said and "importlib" not in said  # the stack is the user's


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is nothing to race; give a file with one, a folder of such files, or a module"),
        (("nonsense",), "there is no file, folder or module nonsense; give one that holds a hazard"),
        (("mine.nonsense",), "there is no file, folder or module mine.nonsense"),
        (("./nonsense",), "there is no file, folder or module ./nonsense"),
        (("empty",), "there is no file in empty; each file of it is to hold one hazard"),
        (("mine",), "cannot import mine/broken.py: ModuleNotFoundError"),
        (("mine.broken",), "cannot import mine.broken: ModuleNotFoundError"),
        (("json.decoder",), "json.decoder must hold one subclass"),
        (("mine.good", "--sched", "nonsense"), "a schedule is 'random' or 'pct:<depth>', not 'nonsense'"),
        (("mine.good", "--threads", "0"), "a round needs a thread"),
    ],
)
def test_nonsense(tmp_path, arguments, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "broken.py").write_text("import nonsense_of_others")
    (tmp_path / "mine" / "good.py").write_text(CLEAN)
    said = stress(tmp_path, *arguments, expect=2)
    assert words in said


def test_act_must_say_how_much_it_did(tmp_path):
    (tmp_path / "mine.py").write_text(CLEAN.replace("return 3", "return None"))
    said = stress(tmp_path, "mine.py", "--threads", 2, "--seeds", 1, expect=1)
    assert "TypeError: act must return the number of operations, an int from 0 up, not None" in said


WITHOUT = """
import runpy, sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None  # cannot be imported
{then}
"""
HARNESS = WITHOUT.format(then="runpy.run_module('ftcuda.stress', run_name='__main__', alter_sys=True)")
RACES = WITHOUT.format(then="import ftcuda.testing.hazard, ftcuda.stress.harness; print('imported')")


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        ("rich", (), "the harness needs rich, to print its report: pip install 'ftcuda[stress]'"),
        ("matplotlib", ("--html", "report.html"), "the harness needs matplotlib, to plot for --html: pip install 'ftcuda[stress]'"),
    ],
)
def test_a_missing_package_is_named(tmp_path, names, options, words):
    (tmp_path / "clean.py").write_text(CLEAN)
    said = run(tmp_path, sys.executable, "-c", HARNESS, names, "clean.py", "--seeds", 1, *options, expect=2)
    assert said.strip() == words


def test_what_needs_no_other_package(tmp_path):
    """Plots only for --html, and nothing for a file of hazards."""
    (tmp_path / "clean.py").write_text(CLEAN)
    assert "clean" in run(tmp_path, sys.executable, "-c", HARNESS, "matplotlib", "clean.py", "--seeds", 1)
    assert run(tmp_path, sys.executable, "-c", RACES, "rich,matplotlib") == "imported\n"


def test_a_report_with_plots(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    (tmp_path / "clean.py").write_text(CLEAN)
    stress(tmp_path, "clean.py", "--seeds", 1, "--html", "report.html")
    assert "<td>clean.py</td><td>1</td>" in (tmp_path / "report.html").read_text()


def test_a_replay(tmp_path):
    (tmp_path / "clean.py").write_text(CLEAN)
    said = run(tmp_path, sys.executable, "-m", "ftcuda.stress.replay", "clean.py", "--threads", 2, "--seeds", 5)
    assert said == "replay pct:10: 5 seeds, 0 with different traces\n"
