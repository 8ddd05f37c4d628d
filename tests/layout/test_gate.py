"""What `.ci/run` runs: how long, and that nothing in it draws a number or is bounded by the clock."""

import importlib.util
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("gate", ROOT / "ci" / "gate" / "gate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


gate = load()
LIMIT, STEPS = gate.read()


def test_it_is_short():
    assert gate.minutes_of(STEPS) <= LIMIT <= 25


def test_its_steps_are_there():
    for step in STEPS:
        scripts = re.findall(r"(?<!\S)ci/\S+\.sh", step.run)
        assert scripts and all((ROOT / script).exists() for script in scripts), step
        assert step.minutes > 0


def test_what_draws_or_takes_long_has_a_home():
    """Each step of the proof is a script that is there, and all mutants, hazards and profiles are among them."""
    told = dict(re.findall(r'^    \[(\S+)\]="(.+)"$', (ROOT / "ci" / "proof.sh").read_text(), re.MULTILINE))
    for command in told.values():
        (script,) = re.findall(r"ci/\S+\.sh", command)
        assert (ROOT / script).exists(), command
    assert {"stress", "soak", "seeds", "fuzz", "hypothesis", "mutants", "extension", "matrix", "wheels"} <= told.keys()


def test_files_are_known_whose_mutants_were_noticed():
    """Without them the gate tries the same mutants each time, whatever has changed."""
    assert tomllib.loads((ROOT / "stress" / "mutation" / "tried.toml").read_text())


def test_each_kept_seed_says_what_brings_its_failure_back():
    """Hazards are names of the program's; a mutant is one that `ci/mutation.sh` knows."""
    stress = ROOT / "stress"
    mutants = tomllib.loads((stress / "mutation" / "mutants.toml").read_text())
    for seed in tomllib.loads((stress / "seeds.toml").read_text())["seed"]:
        assert (stress / "hazards" / f"{seed['hazard']}.py").exists() and seed["schedules"] and seed["why"]
        assert "mutant" not in seed or seed["mutant"] in mutants


@pytest.mark.parametrize("word", ["--seconds", "FTCUDA_RANDOM", "stress.sh", "$(date", "git rev-list", "sleep"])
def test_nothing_draws_or_watches_the_clock(word):
    assert not [step.name for step in STEPS if word in step.run]


def step(name, minutes, *after):
    return gate.Step(name, "true", minutes, after)


@pytest.mark.parametrize(
    ("steps", "minutes"),
    [
        ([step("a", 3), step("b", 2), step("c", 2)], 4),  # two at a time
        ([step("a", 3), step("b", 2, "a")], 5),  # one after the other
        ([step("a", 1), step("b", 5), step("c", 1, "b"), step("d", 3)], 6),  # who waits is overtaken
    ],
)
def test_how_long_steps_take(steps, minutes):
    assert gate.minutes_of(steps) == minutes


def test_named_steps_run_with_what_they_use():
    steps = [step("a", 1), step("b", 1, "a"), step("c", 1), step("d", 1, "b")]
    assert [each.name for each in gate.with_required(["d"], steps)] == ["a", "b", "d"]
    assert gate.with_required([], steps) == steps


def test_a_step_comes_after_what_it_needs(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text('limit = 1\n[steps.a]\nrun = "true"\nminutes = 1\nafter = ["b"]\n[steps.b]\nrun = "true"\nminutes = 1\n')
    with pytest.raises(ValueError, match="a comes after b, which stands below it"):
        gate.read(path)


@pytest.fixture
def outcomes(tmp_path, monkeypatch):
    """Runs commands as steps; returns these, and what became of each."""
    monkeypatch.setattr(gate, "LOGS", tmp_path)

    def run(*commands, environment=None):
        steps = [gate.Step(name, command, 0.1, tuple(after)) for name, command, *after in commands]
        return steps, gate.run_all(steps, environment or {})

    return run


def test_all_steps_report(outcomes, capsys):
    """One that fails stops nobody but those that need it."""
    steps, found = outcomes(("one", "sh -c 'echo seen; exit 3'"), ("two", "true"), ("three", "true", "one"), ("four", "true", "two"))
    assert {name: run.failure for name, run in found.items()} == {
        "one": "exit status 3",
        "two": "",
        "three": "not run, since one failed",
        "four": "",
    }
    capsys.readouterr()
    gate.report(steps, found, 1.0)
    said = capsys.readouterr().out
    assert "#### alone: .ci/run one\nseen\n" in said
    assert said.endswith("gate: FAILED: one, three\n")


def test_the_report_has_the_order_of_the_file(outcomes, capsys):
    """Mutant: the order in which steps ended, whose schedule is another one."""
    ended = outcomes(("slow", "sleep 1"), ("quick", "true"), ("last", "true", "slow"))
    capsys.readouterr()
    gate.report(*ended, 1.0)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["slow", "quick", "last", "all"]


def test_only_the_last_lines(outcomes, capsys):
    gate.report(*outcomes(("one", "sh -c 'seq 1 100; exit 1'")), 1.0)
    said = capsys.readouterr().out
    assert "\n61\n62\n" in said and "\n60\n" not in said


def test_the_summary_comes_last(outcomes, capsys):
    gate.report(*outcomes(("tests", "echo 5 passed in 3 s")), 1.0)
    assert capsys.readouterr().out.endswith("gate: passed\n5 passed in 3 s\n")


def test_a_step_that_hangs_is_ended(outcomes, monkeypatch):
    monkeypatch.setattr(gate.Step, "limit", 1.0)
    _, found = outcomes(("one", "sh -c 'echo begun; cat </dev/zero >/dev/null & wait'"))
    assert found["one"].failure.startswith("it hung: ended after") and found["one"].last_lines(1) == "begun"


STARTS_ANOTHER = """
import pathlib, signal, subprocess, sys
other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: (other.kill(), other.wait(), sys.exit()))
pathlib.Path(sys.argv[1]).write_text(f"{other.pid}\\n")
signal.pause()
"""


def test_a_step_that_is_ended_ends_what_it_started(tmp_path, monkeypatch):
    """Also in a session of its own, which no signal to the step's group reaches. Mutant: it is killed at once."""
    monkeypatch.setattr(gate, "LOGS", tmp_path)
    monkeypatch.setattr(gate, "TIME_TO_END", 100.0)
    (tmp_path / "step.py").write_text(STARTS_ANOTHER)
    run = gate.Run(gate.Step("one", f"{sys.executable} {tmp_path}/step.py {tmp_path}/pid", 0.1))
    run.start({})
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        assert run.process.poll() is None
    run.end()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_is_told_of_a_tree_that_changes(tmp_path, monkeypatch, capsys):
    """It was another one when the steps began: nothing is said of this one."""
    states = iter([("a", True), ("b", True), ("b", True), ("b", True)])
    steps = [gate.Step("one", "true", 0.1)]
    for name, value in (("ROOT", tmp_path), ("LOGS", tmp_path / "build"), ("state", lambda: next(states)), ("read", lambda: (1, steps))):
        monkeypatch.setattr(gate, name, value)
    monkeypatch.setattr(gate.signal, "signal", lambda *_: None)
    assert gate.main([]) == 1 and not (tmp_path / "build" / "gate.tree").exists()
    assert "the tree has changed meanwhile" in capsys.readouterr().out
    assert gate.main([]) == 0 and (tmp_path / "build" / "gate.tree").read_text() == "b\n"


def test_the_seed_is_for_all_steps(outcomes):
    _, found = outcomes(("one", "sh -c 'test $FTCUDA_SEED = 7'"), environment={"FTCUDA_SEED": "7"})
    assert found["one"].failure == ""
