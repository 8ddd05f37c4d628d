"""Ordinary programs, the same for ftcuda and for cuda.core: each checks its own values, and runs in a process of its own."""

import os
from pathlib import Path

import pytest

import ftcuda
from tests.conftest import PROFILE
from tests.kernels import IS_SIMULATED, PTX_VERSIONS

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")


def variables(core):
    found = {"FTCUDA_PROGRAM_CORE": core, "PYTHONPATH": os.pathsep.join((str(FOLDER), os.environ.get("PYTHONPATH", "")))}
    if IS_SIMULATED:
        found["FTCUDA_PROGRAM_PTX"] = min(PTX_VERSIONS.get(PROFILE, "8.0"), "8.0")
    return found


def ending(name):
    return f"import runpy; runpy.run_path({str(FOLDER / name)!r} + '.py', run_name='__main__'); print('ran to its end')"


def test_there_are_as_many_as_the_documents_say():
    assert len(PROGRAMS) == 21 and sum(name.startswith("graph_") for name in PROGRAMS) == 10


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_ftcuda(run_python, name):
    if name.startswith("graph") and not ftcuda.Device(0).features.conditional_graphs:
        pytest.skip("conditional nodes need a driver of CUDA 12.3")
    assert run_python(ending(name), **variables("ftcuda")).endswith("ran to its end\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_cuda_core(run_python, name, tmp_path):
    pytest.importorskip("cuda.core.utils", reason="cuda.core is not installed")
    if ftcuda.driver_info().version < "12.8":
        pytest.skip("cuda-bindings finds its entry points as drivers of CUDA 12.8 and later give them")
    found = variables("cuda.core")
    if IS_SIMULATED:
        (tmp_path / "libcuda.so.1").symlink_to(ftcuda.driver_info().path)
        found["LD_LIBRARY_PATH"] = os.pathsep.join((str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")))
    assert run_python(ending(name), **found).endswith("ran to its end\n")
