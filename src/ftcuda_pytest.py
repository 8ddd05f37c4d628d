"""Races and the simulated driver in the tests of any project: a plugin of pytest (docs/guide/racing-your-own-code.md).

Every run of pytest in an environment with ftcuda loads this module. So it stands outside of the package, whose import
loads numpy and the core, and imports that only when a test asks.
"""

import inspect
import os
import re
import shlex
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

if TYPE_CHECKING:
    from ftcuda.testing.rounds import Plan, Race

SCHEDULES = re.compile(r"random|pct(:[1-9]\d{0,5})?|free")
DEFAULTS = {"threads": 2, "rounds": 100, "schedule": None, "timeout": 60}
HOW = "this test needs the simulated driver (--ftcuda-driver sim, or ftcuda_driver = sim in the settings)"
RACE = pytest.StashKey["Race"]()
FILES = pytest.StashKey[Any]()


def checked_count(count: object) -> int:
    """Returns a number of threads or rounds."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1_000_000:
        raise ValueError(f"must be an int from 1 to 1,000,000, not {count!r}")
    return count


def checked_schedule(text: object) -> str | None:
    """Returns the text of a schedule."""
    if text is not None and not (isinstance(text, str) and SCHEDULES.fullmatch(text)):
        raise ValueError(f"must be 'random', 'pct:<depth>' or 'free', not {text!r}")
    return text


def checked_timeout(timeout: object) -> float:
    """Returns seconds."""
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 < timeout <= 1_000_000:
        raise ValueError(f"must be seconds above 0, up to 1,000,000, not {timeout!r}")
    return float(timeout)


CHECKS = {"threads": checked_count, "rounds": checked_count, "schedule": checked_schedule, "timeout": checked_timeout}


def read(marker: pytest.Mark) -> dict[str, Any]:
    """Returns the arguments of ``@pytest.mark.race``, the defaults among them."""
    if marker.args:
        raise ValueError(f"@pytest.mark.race takes keywords only: {', '.join(DEFAULTS)}")
    for name, value in marker.kwargs.items():
        if name not in DEFAULTS:
            raise ValueError(f"@pytest.mark.race has no argument {name!r}: it has {', '.join(DEFAULTS)}")
        try:
            CHECKS[name](value)
        except ValueError as wrong:
            raise ValueError(f"@pytest.mark.race: {name} {wrong}") from None
    return {**DEFAULTS, **marker.kwargs}


def count_option(text: str) -> int:
    """Reads a number of the command line."""
    try:
        return checked_count(int(text))
    except ValueError:
        raise ArgumentTypeError(f"must be an int from 1 to 1,000,000, not {text!r}") from None


def schedule_option(text: str) -> str | None:
    """Reads a schedule of the command line."""
    try:
        return checked_schedule(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ftcuda", "ftcuda: races, and the driver")
    group.addoption("--race-seed", type=int, metavar="N", help="run only the round of this seed, of each race")
    group.addoption("--race-rounds", type=count_option, metavar="N", help="rounds of each race")
    group.addoption("--race-threads", type=count_option, metavar="N", help="threads of each race")
    group.addoption(
        "--race-schedule",
        type=schedule_option,
        metavar="NAME",
        help="who runs when, on the simulated driver: random, pct:<depth>, or free, which leaves it to the system",
    )
    group.addoption("--ftcuda-driver", choices=("sim", "cuda"), help="the driver that ftcuda loads")
    parser.addini("ftcuda_driver", "the driver that ftcuda loads, unless FTCUDA_DRIVER says: sim or cuda", default="")
    parser.addini("race_files", "packages, or patterns of files, in which races switch as well", type="args")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "race(threads=2, rounds=100, schedule=None, timeout=60): run the test as so many rounds of a race (ftcuda)",
    )
    driver = config.getini("ftcuda_driver")
    if driver not in ("", "sim", "cuda"):
        raise pytest.UsageError(f"ftcuda_driver must be sim or cuda, not {driver!r}")
    if chosen := config.getoption("ftcuda_driver"):
        os.environ["FTCUDA_DRIVER"] = chosen
    elif driver and not os.environ.get("FTCUDA_DRIVER"):
        os.environ["FTCUDA_DRIVER"] = driver


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where pytest itself says that marks are wrong."""
    marker = metafunc.definition.get_closest_marker("race")
    if marker is None:
        return
    name = metafunc.definition.nodeid
    said = ""
    try:
        read(marker)
    except ValueError as wrong:
        said = str(wrong)
    if said:
        pytest.fail(f"{name}: {said}", pytrace=False)
    if inspect.iscoroutinefunction(metafunc.function) or inspect.isgeneratorfunction(metafunc.function):
        pytest.fail(f"{name}: @pytest.mark.race is for plain functions: it runs threads", pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A race has threads of its own: pytest-run-parallel is not to run it in several."""
    for item in items:
        if item.get_closest_marker("race") is None:
            continue
        if config.getoption("parallel_threads", None) is not None:
            item.add_marker(pytest.mark.thread_unsafe(reason="a race has threads of its own"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """For a TestCase, of which pytest generates no tests."""
    if item.get_closest_marker("race") and issubclass(getattr(item, "cls", None) or object, TestCase):
        pytest.fail(f"{item.nodeid}: @pytest.mark.race is not for methods of unittest.TestCase", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """After the fixtures: `monkeypatch` has put back what it found, which a race may have put there."""
    try:
        return (yield)
    finally:
        if item.get_closest_marker("race") and "ftcuda.testing.locks" in sys.modules:
            sys.modules["ftcuda.testing.locks"].restore()


def plan_of(item: pytest.Item) -> "Plan":
    """Returns what the marker and the options say."""
    from ftcuda.testing.rounds import Plan

    marker, options = item.get_closest_marker("race"), item.config.option
    if marker is None:
        pytest.fail("the fixture 'race' is for tests with @pytest.mark.race", pytrace=False)
    said = read(marker)
    rounds = options.race_rounds or said["rounds"]
    seeds = range(1, rounds + 1) if options.race_seed is None else range(options.race_seed, options.race_seed + 1)
    threads = options.race_threads or said["threads"]
    schedule = options.race_schedule or said["schedule"]
    return Plan(threads, seeds, schedule, float(said["timeout"]), command_of(item))


def command_of(item: pytest.Item) -> str:
    """Returns what replays a round, without its seed: the options that decide what it does, and the test."""
    options = item.config.option
    given = {
        "--ftcuda-driver": options.ftcuda_driver,
        "--race-threads": options.race_threads,
        "--race-schedule": options.race_schedule,
    }
    words = ["pytest", node_from_here(item)]
    for name, value in given.items():
        words += [name, str(value)] if value is not None else []
    return shlex.join(words)


def node_from_here(item: pytest.Item) -> str:
    """Returns the test's name for a command in the current folder."""
    _, *rest = item.nodeid.split("::")
    try:
        file = os.path.relpath(item.path)
    except ValueError:  # on another drive
        file = str(item.path)
    return "::".join([file, *rest])


@pytest.fixture
def race(request: pytest.FixtureRequest) -> "Race":
    """Runs a function in several threads at once: see ``@pytest.mark.race``."""
    return race_of(request.node)


def race_of(item: pytest.Item) -> "Race":
    """Returns the race of a test, which it has once."""
    from ftcuda.testing.rounds import Race

    if RACE not in item.stash:
        item.stash[RACE] = Race(plan_of(item))
    return item.stash[RACE]


def files_of(config: pytest.Config) -> Any:
    """Returns the files whose code is raced."""
    from ftcuda.testing.switching import UserFiles

    if FILES not in config.stash:
        try:
            config.stash[FILES] = UserFiles(config.rootpath, config.getini("race_files"))
        except ValueError as wrong:
            pytest.fail(str(wrong), pytrace=False)
    return config.stash[FILES]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs the rounds of a test that is marked so."""
    __tracebackhide__ = True
    if pyfuncitem.get_closest_marker("race") is None:
        return None
    from ftcuda.testing.rounds import Race, run

    function = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    own = race_of(pyfuncitem)
    asks = any(isinstance(each, Race) for each in pyfuncitem.funcargs.values())

    def test() -> None:
        __tracebackhide__ = True
        if asks:
            function(**arguments)
        else:
            own(lambda index: function(**arguments))

    run(own, test, files_of(pyfuncitem.config))
    return True


@pytest.fixture
def simulated_driver(request: pytest.FixtureRequest) -> Any:
    """`ftcuda.testing.simulation`; the test fails if it does what correct programs never do."""
    from ftcuda import driver_info
    from ftcuda.errors import DriverNotFoundError

    try:
        info = driver_info()
    except DriverNotFoundError as missing:
        pytest.fail(f"{HOW}: {missing}", pytrace=False)
    if not info.simulated:
        pytest.fail(f"{HOW}: this run is on {info.path}", pytrace=False)
    from ftcuda.testing import settle, simulation

    simulation.clear_violations()
    yield simulation
    settle()  # raises if a kernel has failed and the test did not notice
    if violations := simulation.violations():
        simulation.clear_violations()
        pytest.fail("violations on the simulated driver:\n" + "\n".join(violations), pytrace=False)
