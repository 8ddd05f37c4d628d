"""The mutants of ``stress.mutation`` against the code that they change, and against the hazards and tests that they name."""

import tomllib
from pathlib import Path

import pytest

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
