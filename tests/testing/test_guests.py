"""Programs of cuda.core that know nothing of ftcuda, run with the two commands of docs/guide/testing-without-a-gpu.md.

Their interpreter is the one that FTCUDA_GUEST_PYTHON names, as ci/guests.sh does, or this one if it has cuda.core 1.x.
"""

import os
import shlex
import subprocess
import sys
from importlib import metadata
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

from tests.conftest import PROFILE, simulated_only

pytestmark = [
    simulated_only,
    pytest.mark.thread_unsafe(reason="starts processes"),
    pytest.mark.skipif(PROFILE != "13.5", reason="the guests' cuda-bindings and NVRTC are of CUDA 13.5"),
]
PROGRAMS = Path(__file__).parent / "programs"
ORDINARY = Path(__file__).parents[1] / "interop" / "programs"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "testing-without-a-gpu.md"


@pytest.fixture(scope="module")
def guest_python():
    if named := os.environ.get("FTCUDA_GUEST_PYTHON"):
        return named
    try:
        version = metadata.version("cuda-core")
    except metadata.PackageNotFoundError:
        version = "0"
    if version < "1":
        pytest.skip("cuda.core 1.x is not installed, and FTCUDA_GUEST_PYTHON names no interpreter that has it")
    return sys.executable


def commands():
    """The two commands as the guide has them: its first example."""
    lines = GUIDE.read_text().splitlines()
    example = list(takewhile(str.strip, dropwhile(lambda line: not line.startswith("    "), lines)))
    assert len(example) == 2, example
    return [line.strip() for line in example]


@pytest.fixture
def run_guest(guest_python, tmp_path):
    """Runs a program as the guide says; returns the lines that it printed."""

    def run(program, **variables):
        first, second = commands()
        first = first.replace("python", shlex.quote(sys.executable), 1)
        second = second.replace("python", shlex.quote(guest_python), 1).replace("your_program.py", shlex.quote(str(program)))
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **variables}
        for name in "LD_PRELOAD", "FTCUDA_NVRTC":  # a user's shell has none
            environment.pop(name, None)
        shell = ["bash", "-c", f"set -e\n{first}\n{second}"]
        result = subprocess.run(shell, capture_output=True, text=True, timeout=240, env=environment)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stderr == ""
        return result.stdout.splitlines()

    return run


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("vector_add.py", "vector_add: 10000 sums, the last is 10099"),
        ("saxpy.py", "saxpy<double>: 4097 elements"),
        ("multi_stream.py", "multi_stream: 5000 elements of two streams"),
    ],
)
def test_a_program_with_cubins(run_guest, program, expected):
    assert run_guest(PROGRAMS / program)[-1] == expected
    assert '.compile("cubin"' in (PROGRAMS / program).read_text()


NOT_YET = {"graph_node_updates.py": "cuda.core asks for attributes of kernel nodes, which the simulated driver has not"}


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=NOT_YET[name])) if name in NOT_YET else name
        for name in sorted(path.name for path in ORDINARY.glob("*.py") if path.stem != "common")
    ],
)
def test_the_programs_that_ftcuda_runs_too(run_guest, program):
    """Each checks its own values: tests/interop/test_programs.py runs them with ftcuda."""
    run_guest(ORDINARY / program, FTCUDA_PROGRAM_CORE="cuda.core")
