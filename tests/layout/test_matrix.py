"""ci/matrix.toml against everything that says the same."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MATRIX = tomllib.loads((ROOT / "ci" / "matrix.toml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_wheels_are_those_of_cibuildwheel():
    tool = PROJECT["tool"]["cibuildwheel"]
    assert tool["build"] == [f"{tag}-*" for tag in MATRIX["wheels"]["interpreters"]]
    assert tool["manylinux-x86_64-image"] == tool["manylinux-aarch64-image"] == MATRIX["wheels"]["manylinux"]
    built = [tag for each in MATRIX["wheels"]["cibuildwheel"] for tag in each["interpreters"]]
    assert built == MATRIX["wheels"]["interpreters"]  # each by one version
    for each in MATRIX["wheels"]["cibuildwheel"]:  # without the group cp313t is left out
        assert ("cp313t" in each["interpreters"]) == (each["enable"] == "cpython-freethreading")
    assert "enable" not in tool  # there it would be for all versions


def test_each_cuda_version_has_an_extra():
    assert {f"cu{major}" for major in MATRIX["tests"]["cuda"]} <= set(PROJECT["project"]["optional-dependencies"])


def test_the_profiles_are_those_of_the_simulated_driver_and_of_ci():
    pairs = {(profile, major) for major, profiles in MATRIX["tests"]["cuda"].items() for profile in profiles}
    known = set(re.findall(r'"([0-9.]+|tcc|wddm)"', (ROOT / "src" / "simdriver" / "state" / "profile.cpp").read_text()))
    assert {profile for profile, _ in pairs} <= known
    named = set(re.findall(r"ci/profile.sh ([0-9.]+|tcc|wddm)\b", (ROOT / "ci" / "gate" / "gate.toml").read_text()))
    script = (ROOT / "ci" / "profile.sh").read_text()
    (others,) = re.findall(r"others=\((.*)\)", script)
    assert sorted([*named, *others.split(), "13.5"]) == sorted(profile for profile, _ in pairs)  # each once
    assert all(cuda_of(profile).stdout.split() == [major] for profile, major in pairs)
    assert "no driver profile '12.1'" in cuda_of("12.1").stderr


def cuda_of(profile):
    return subprocess.run([sys.executable, ROOT / "ci" / "matrix.py", "cuda", profile], capture_output=True, text=True)


def test_workflows_read_the_matrix():
    for name, question in (("tests", "cells"), ("wheels", "wheels")):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
        assert f"python3 ci/matrix.py {question}" in text
        assert not re.search(r"cibuildwheel==\d", text)


def test_cells_and_identifiers():
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "ci" / "matrix.py")
    matrix = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(matrix)
    cells = {(cell["kind"], cell["interpreter"], cell["cuda"]) for cell in matrix.cells()}
    wheels = {"gil": "cp313", "t": "cp313t", "3.14": "cp314", "3.14t": "cp314t", "3.15": "cp315", "3.15t": "cp315t"}
    assert cells == {(kind, tag, major) for kind, tag in wheels.items() for major in ("11", "12", "13")}
    assert {*wheels.values()} == {*MATRIX["wheels"]["interpreters"]}  # what is built is tested
    assert len(matrix.wheels()) == len(MATRIX["wheels"]["platforms"]) * len(MATRIX["wheels"]["cibuildwheel"])
    assert "cp313t-manylinux_x86_64" in matrix.identifiers("linux", "3.4.1")
    assert "cp313t-win_amd64" in matrix.identifiers("windows")
