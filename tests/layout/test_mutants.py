"""The mutants of ``stress.mutation`` against the code that they change, and against the hazards and tests that they name."""

import tomllib
from pathlib import Path

import pytest

from stress.mutation import __main__ as mutation

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = tomllib.loads((ROOT / "stress" / "mutation" / "mutants.toml").read_text())


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(name):
    mutant = MUTANTS[name]
    assert (ROOT / "src" / "ftcuda" / mutant["file"]).read_text().count(mutant["before"]) == 1
    assert mutant["after"] != mutant["before"]
    for killer in mutant["killers"]:
        kind, *rest = killer.split()
        if kind == "test":
            assert all((ROOT / path.partition("::")[0]).exists() for path in rest if not path.startswith("-"))
        elif kind != "tsan":
            assert (ROOT / "stress" / "hazards" / f"{rest[0]}.py").exists()


def test_the_gate_tries_mutants_of_files_that_changed():
    """Since all were noticed: others may survive, of which the change knows nothing. Mutant: it tries those too."""
    files = ["_core/sync/ref.hpp", "_core/sync/mutex.cpp", "_core/sync/word.cpp"]
    mutants = {f"of-{file}": {"file": file, "killers": ["pct a 1", "test b"]} for file in files}
    mutants["only-a-seed-finds-it"] = {"file": files[0], "killers": ["pct a 1"]}
    tried = {files[0]: "of another text", files[1]: mutation.digest(files[1], mutants)}
    assert list(mutation.changed(mutants, tried)) == [f"of-{files[0]}"]
    assert list(mutation.changed(mutants, tried, also_untried=True)) == [f"of-{files[0]}", f"of-{files[2]}"]
