"""The plugin of pytest, as other projects use it: in processes of its own, in a folder outside of this repository."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.conftest import IS_SANITIZED, simulated_only

pytestmark = [
    simulated_only,
    pytest.mark.thread_unsafe(reason="starts processes"),
    pytest.mark.skipif(IS_SANITIZED, reason="under ThreadSanitizer a process takes 10 s and more to start"),
]
RACES = Path(__file__).parent / "races"
# An editable installation, which a user has not, brings a module that pytest warns of.
EDITABLE = "ignore:Module already imported so cannot be rewritten; _ftcuda_editable_loader"
SETTINGS = f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\nfilterwarnings =\n    error\n    {EDITABLE}\n"
FAILED = re.compile(r"^FAILED test_\w+\.py::([^ \n]+(?: update\])?)", re.MULTILINE)
NOTE = re.compile(r"^E +race: round (\d+) of (\d+), seed (\d+), .*? (\d+ steps, trace 0x[0-9a-f]{16})$", re.MULTILINE)
AGAIN = re.compile(r"^E +(pytest .*)$", re.MULTILINE)


class Project:
    """A folder with tests, where shell commands are run."""

    def __init__(self, folder):
        self.folder = folder
        self.write("pytest.ini", SETTINGS)
        command = folder / "bin" / "pytest"  # an environment that was moved has one of another interpreter
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pytest "$@"\n')
        command.chmod(0o755)

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def shell(self, command, **variables):
        """Runs a command as a user does, with this interpreter's `pytest`; returns its status and what it printed."""
        environment = {**os.environ, "FTCUDA_DRIVER": "sim", "PYTHONDONTWRITEBYTECODE": "1", **variables}
        for name in ("FTCUDA_SIM_SCHED", "FTCUDA_SIM_SEED", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
            environment.pop(name, None)
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def project_of(factory, *names):
    project = Project(factory.mktemp("project"))
    for name in names:
        shutil.copy(RACES / f"{name}.py", project.folder / f"test_{name}.py")
    return project


def failures(said):
    """What pytest said of each failed test, by its name."""
    parts = re.split(r"^_{3,} (.*?) _{3,}$", said.partition("= short test summary")[0], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_it_is_installed():
    (plugin,) = metadata.entry_points(group="pytest11", name="ftcuda")
    assert plugin.value == "ftcuda_pytest"


def test_a_run_without_races_loads_nothing(project):
    """Mutant: `import ftcuda` at the head of the plugin."""
    project.write(
        "test_plain.py",
        "import sys\n\ndef test_plain(request):\n"
        "    assert request.config.pluginmanager.hasplugin('ftcuda')\n"
        "    assert not {'ftcuda', 'numpy', 'ftcuda.testing'} & set(sys.modules)\n",
    )
    status, said = project.shell("pytest -q -p no:run-parallel")  # which loads numpy itself
    assert status == 0, said


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A project with four races, what was said of them, and by test."""
    project = project_of(tmp_path_factory, "planted")
    status, said = project.shell("pytest -q --tb=short")
    assert status == 1, said
    return project, said, failures(said)


RACY = {
    "test_counter[lost update]": "assert 1 == 2",
    "test_cache[get]": "assert 2 == 1",
    "test_locks[opposite]": "DeadlockError",
    "test_wake_up[wait]": "DeadlockError",
}


def test_races_are_found(planted):
    """And the same code without them passes, and the names of `threading` are what they were.

    Mutants: no points but at driver calls: nothing is found. `BINARY_OP` and `STORE_ATTR` among OF_THE_FRAME: no
    lost update is found.
    Real locks, or a `wait` that keeps its turn: 20 s of silence, and other errors.
    """
    _, said, found = planted
    assert set(found) == set(RACY), said
    assert "4 failed, 5 passed" in said
    for name, error in RACY.items():
        assert error in found[name]
    for name in ("test_locks[opposite]", "test_wake_up[wait]"):
        assert "nobody can go on" in found[name] and "together-0:\n" in found[name]
    assert found["test_locks[opposite]"].count("with first, second:") == 2  # the stacks of both


@pytest.mark.parametrize("name", RACY)
def test_the_printed_command_replays(planted, name):
    """Mutants: points from the second start of a function on; a seed that counts from the first round of a run."""
    project, _, found = planted
    (command,) = AGAIN.findall(found[name])
    status, said = project.shell(f"{command} -q --tb=short" if name == "test_cache[get]" else command)
    assert status == 1, said
    (again,) = failures(said).values()
    ((_, rounds, seed, trace),) = NOTE.findall(found[name])
    assert NOTE.findall(again) == [("1", "1", seed, trace)] and rounds == "100"
    assert RACY[name] in again


@pytest.fixture(scope="module")
def behaviour(tmp_path_factory):
    status, said = project_of(tmp_path_factory, "behaviour").shell("pytest -rA")
    assert status == 1, said
    return said, failures(said.partition("= PASSES")[0])


def test_rounds_seeds_queues_limits(behaviour):
    said, _ = behaviour
    passed = set(re.findall(r"^PASSED test_behaviour.py::(\w+)", said, re.MULTILINE))
    assert passed == {
        "test_rounds", "test_without_the_fixture", "test_all_threads_ran_the_body", "test_queues", "test_limits",
        "test_others",
    }, said  # fmt: skip
    assert re.search(r"^SKIPPED \[1\] .*: not here$", said, re.MULTILINE)
    assert re.search(r"^XFAIL test_behaviour.py::test_xfails - .*not yet$", said, re.MULTILINE)
    assert re.search(r"^XFAIL test_behaviour.py::test_marked_xfail", said, re.MULTILINE)


def test_failures_are_shown_as_pytest_does(behaviour):
    """Mutant: raising the group as it is."""
    _, found = behaviour
    for name in ("test_one_fails", "test_one_fails_and_one_skips"):
        one = found[name]
        assert ">       race(" in one and ">       return 1 / index" in one and "E       ZeroDivisionError" in one
        assert "ExceptionGroup" not in one and "together.py" not in one and "rounds.py" not in one
        assert "E       in thread together-0" in one
        assert "pytest test_behaviour.py::" + name + " --race-seed 1\n" in one
    assert found["test_all_fail"].count("ZeroDivisionError: division by zero") >= 2
    assert "ExceptionGroup: 2 failures in 2 threads" in found["test_all_fail"]
    assert "said in one line\n" in found["test_says_no_more"] and "--race-seed 1\n" in found["test_says_no_more"]


def test_a_hang_is_reported_and_the_run_goes_on(behaviour):
    _, found = behaviour
    hang = found["test_hangs"]
    assert "TimeoutError: together-0, together-1 did not end within 0.5 s" in hang and hang.count("with second:") >= 2
    assert "2 threads, free\n" in hang and "and not when:\n" in hang and "--race-seed 1\n" in hang
    assert "race: round 4 of 100, seed 4, 2 threads, pct:3, " in found["test_knows_its_schedule"]  # which comes after
    assert "is for tests with @pytest.mark.race" in found["ERROR at setup of test_not_marked"]


def test_options(planted):
    project, _, found = planted
    status, said = project.shell(
        "pytest --race-rounds 9 --race-threads 5 --race-schedule random 'test_planted.py::test_cache[get]' --tb=short"
    )
    assert status == 1 and " of 9, " in said and ", 5 threads, random, " in said, said
    (command,) = AGAIN.findall(said)
    again = NOTE.findall(project.shell(command)[1])
    assert [each[2:] for each in again] == [each[2:] for each in NOTE.findall(said)] != []
    for wrong in ("--race-rounds 0", "--race-schedule fair"):
        status, said = project.shell(f"pytest {wrong}")
        assert status == 4 and "must be" in said


def test_beside_xdist(planted):
    pytest.importorskip("xdist", reason="no pytest-xdist")
    project, _, alone = planted
    status, said = project.shell("pytest -n 2 --tb=short -k 'counter or opposite or names'")
    found = failures(said)
    assert status == 1 and "2 failed, 2 passed" in said and len(found) == 2, said
    assert all(NOTE.findall(text) == NOTE.findall(alone[name]) for name, text in found.items())


def test_beside_run_parallel(planted):
    """Mutant: without the marker `thread_unsafe`, sessions nest."""
    project, _, alone = planted
    status, said = project.shell("pytest --parallel-threads=2 --tb=short")
    found = {name.removesuffix(" "): text for name, text in failures(said).items()}
    assert status == 1 and "4 failed, 5 passed" in said, said
    assert {name: NOTE.findall(text) for name, text in found.items()} == {
        name: NOTE.findall(text) for name, text in alone.items()
    }


WRONG = {
    "threads=0": "threads must be an int from 1 to 1,000,000, not 0",
    "rounds='9'": "rounds must be an int from 1 to 1,000,000, not '9'",
    "schedule='fair'": "schedule must be 'random', 'pct:<depth>' or 'free', not 'fair'",
    "timeout=-1": "timeout must be seconds above 0, up to 1,000,000, not -1",
    "seed=3": "has no argument 'seed'",
    "4": "takes keywords only",
}


def test_wrong_markers_are_errors_of_collection(project):
    for number, arguments in enumerate(WRONG):
        project.write(
            f"test_{number}.py", f"import pytest\n\n@pytest.mark.race({arguments})\ndef test_it(race):\n    pass\n"
        )
    project.write("test_async.py", "import pytest\n\n@pytest.mark.race\nasync def test_it(race):\n    pass\n")
    status, said = project.shell("pytest")
    assert status == 2 and "7 errors" in said and "During handling" not in said, said
    for number, words in enumerate(WRONG.values()):
        assert re.search(rf"test_{number}\.py::test_it: @pytest.mark.race:? {re.escape(words)}", said), words
    assert "is for plain functions" in said
    project.write(
        "test_case.py",
        "import pytest, unittest\n\nclass TestIt(unittest.TestCase):\n    @pytest.mark.race\n    def test_it(self):\n        pass\n",
    )
    status, said = project.shell("pytest test_case.py")
    assert status == 1 and "not for methods of unittest.TestCase" in said


KERNELS = """
import numpy as np
import pytest

import ftcuda
from ftcuda import Device, LaunchConfig, Program, launch

@pytest.mark.parametrize("bound", ["i < n", "i <= n"])
def test_kernel(simulated_driver, bound):
    source = 'extern "C" __global__ void one(int n, int* x) { int i = threadIdx.x; if (BOUND) x[i] = 1; }'
    kernel = Program(source.replace("BOUND", bound), "c++").compile("ptx").get_kernel("one")
    stream = Device(0).create_stream()
    x = Device(0).allocate(32, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, np.int32(8), x)
    stream.sync()
    assert (x.copy_to(np.empty(8, np.int32), stream=stream) == 1).all()
    stream.close()
"""


def test_kernels(project, ptx_fits):
    """Without the fixture `simulated_driver`, or `FTCUDA_DRIVER`, and with the driver named in the settings."""
    project.write("test_kernels.py", KERNELS)
    project.write("pytest.ini", SETTINGS + "ftcuda_driver = sim\n")
    status, said = project.shell("unset FTCUDA_DRIVER; pytest -rA")
    assert (
        "PASSED test_kernels.py::test_kernel[i < n]" in said and "FAILED test_kernels.py::test_kernel[i <= n]" in said
    )
    assert status == 1, said


VIOLATION = """
import pytest
import ftcuda

def race_two_streams(simulation):
    device = ftcuda.Device(0)
    one, other = device.create_stream(), device.create_stream()
    buffer = device.allocate(64, stream=one)
    one.sync()
    with simulation.watched_races():
        buffer.fill(1, stream=one)
        buffer.fill(2, stream=other)
        device.sync()

def test_of_a_violation(simulated_driver):
    race_two_streams(simulated_driver)

def test_after_it(simulated_driver):
    assert simulated_driver.violations() == []
"""


def test_the_fixture_of_the_driver(project):
    project.write("test_driver.py", VIOLATION)
    status, said = project.shell("pytest --ftcuda-driver sim", FTCUDA_DRIVER="cuda")
    assert status == 1 and "2 passed, 1 error" in said, said
    assert "violations on the simulated driver:\n" in said and "no order between streams" in said.lower()
    status, said = project.shell("pytest -k after", FTCUDA_DRIVER="cuda")
    assert status == 1 and "this test needs the simulated driver (--ftcuda-driver sim" in said


def test_the_guide(project, ptx_fits):
    """Its examples end as it says; the settings are the ones that it shows."""
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "racing-your-own-code.md").read_text()
    for text in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        project.write(re.match(r"# (\w+\.py)\n", text)[1], text)
    project.write("pytest.ini", "\n".join(re.findall(r"^    (\[pytest\]|ftcuda_driver = .*)$", guide, re.MULTILINE)))
    status, said = project.shell("unset FTCUDA_DRIVER; pytest -p no:cacheprovider")
    found = failures(said)
    assert status == 1 and set(found) == {"test_add[Counter]", "test_transfers"} and "2 passed" in said, said
    shown = re.findall(r"^    (E .*)$", guide, re.MULTILINE)
    if sys.version_info[:2] != (3, 13):  # other bytecodes, other steps
        shown = [re.sub(r", \d+ steps, trace .*", "", line) for line in shown]
    assert len(shown) == 4 and all(line in found["test_add[Counter]"] for line in shown), found["test_add[Counter]"]
    assert (
        "DeadlockError" in found["test_transfers"]
        and found["test_transfers"].count("with giver.lock, taker.lock:") == 2
    )


LOST_UPDATE = """
import pytest

class Counter:
    def __init__(self):
        self.n = 0

@pytest.mark.race
def test_lost(race):
    counter = Counter()
    def add(index):
        counter.n += 1
    race(add)
    assert counter.n == 2
"""


def test_from_another_folder(project):
    """The command that replays a failure is one for the folder where pytest was started."""
    project.write("inner/pytest.ini", "[pytest]\nftcuda_driver = sim\n")
    project.write("inner/test_lost.py", LOST_UPDATE)
    for where, file in ((".", "inner/test_lost.py"), ("inner", "test_lost.py"), ("inner/..", "inner")):
        status, said = project.shell(f"cd {where} && pytest -p no:cacheprovider {file}")
        assert status == 1 and "1 failed" in said, said
        (again,) = re.findall(r"^E +(pytest .*--race-seed \d+)$", said, re.MULTILINE)
        status, repeated = project.shell(f"cd {where} && {again} -p no:cacheprovider")
        assert status == 1 and re.findall("trace 0x[0-9a-f]+", repeated) == re.findall("trace 0x[0-9a-f]+", said), repeated


SPIN = """
import os, pytest, signal, sys, threading, traceback

def starts_threads():  # an interrupt in there is CPython's to survive: it may say "release unlocked lock"
    frame = sys._current_frames()[threading.main_thread().ident]
    return any(each.f_code.co_name == "start" for each, _ in traceback.walk_stack(frame))

@pytest.mark.race(threads=1)
def test_spin(race):
    def spin(index):
        while starts_threads():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
    race(spin)
"""


def test_an_interrupt_ends_a_race(project):
    project.write("test_spin.py", SPIN)
    status, said = project.shell("timeout -s KILL 60 pytest -p no:cacheprovider --ftcuda-driver sim")
    assert status == 2 and "KeyboardInterrupt" in said, said


FORK = """
import os, pytest, time

@pytest.mark.race(rounds=3)
def test_fork(race):
    def fork(index):
        child = os.fork()
        if child == 0:
            total = 0
            for number in range(100):
                total += number
            os._exit(total % 100)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert race(fork) == [50, 50]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_a_race(project):
    project.write("test_fork.py", FORK)
    status, said = project.shell("timeout -s KILL 60 pytest -p no:cacheprovider --ftcuda-driver sim -W ignore")
    assert status == 0 and "1 passed" in said, said


SEAMS = """
import asyncio, queue, threading, time
from dataclasses import dataclass
from unittest import TestCase

import pytest

SLEEP, LOCK = time.sleep, threading.Lock


@dataclass(frozen=True)
class Refused(Exception):
    why: str


class Stubborn(Exception):
    def add_note(self, note):
        raise RuntimeError("no notes")


@pytest.mark.race(rounds=2)
def test_patched_in_the_body(race, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(threading, "Lock", LOCK)
    race(lambda index: None)

def test_patched_is_over():
    assert time.sleep is SLEEP and threading.Lock is LOCK

@pytest.fixture
def no_sleep(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept

@pytest.mark.race(rounds=2)
def test_a_fixtures_patch_stays(no_sleep, race):
    race(lambda index: getattr(time, "sleep")(index))
    assert sorted(no_sleep)[-2:] == [1, 1] or sorted(no_sleep) == [0, 1]

@pytest.mark.race(rounds=2)
def test_asyncio(race):
    async def nap():
        await asyncio.sleep(0.01)
        return 7
    assert race(lambda index: asyncio.run(nap())) == [7, 7]

@pytest.mark.race(rounds=2)
def test_a_pool_that_is_imported_in_a_round(race):
    def work(index):
        from concurrent.futures import ThreadPoolExecutor
        return ThreadPoolExecutor
    race(work)

@pytest.mark.race(rounds=2)
def test_frozen_exceptions_pass(race):
    def refuse(index):
        if index == 0:
            raise Refused("no")
    with pytest.raises(Refused):
        race(refuse)

@pytest.mark.race(rounds=2)
def test_fails_frozen(race):
    race(lambda index: None)
    raise Refused("frozen")

@pytest.mark.race(rounds=2)
def test_fails_stubborn(race):
    def raise_it(index):
        raise Stubborn("stubborn")
    race(raise_it)

@pytest.mark.race(rounds=2)
def test_fails_never_called(race):
    pass

@pytest.mark.race(rounds=2)
@pytest.mark.usefixtures("race")
def test_fails_never_called_either():
    pass

class TestOfUnittest(TestCase):
    @pytest.mark.race
    def test_fails_here(self):
        pass
"""


def test_the_seams(project):
    """Where a race meets what else a test may do."""
    project.write("test_seams.py", SEAMS)
    status, said = project.shell("pytest -p no:cacheprovider --ftcuda-driver sim")
    assert status == 1 and "4 failed, 6 passed, 1 error" in said, said
    found = failures(said)
    assert set(found) == {
        "test_fails_frozen", "test_fails_stubborn", "test_fails_never_called", "test_fails_never_called_either",
        "ERROR at setup of TestOfUnittest.test_fails_here",
    }  # fmt: skip
    assert "Refused: frozen" in found["test_fails_frozen"] and "--race-seed 1" in found["test_fails_frozen"]
    assert "stubborn" in found["test_fails_stubborn"]
    assert "never calls it" in found["test_fails_never_called"]
    assert "is not for methods of unittest.TestCase" in found["ERROR at setup of TestOfUnittest.test_fails_here"]
