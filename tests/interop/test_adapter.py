"""The adapter for native extensions: examples/adapter, built here and run against the driver under test."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import ftcuda
from ftcuda import StridedMemoryView
from ftcuda.testing import together
from tests.kernels import IS_SIMULATED, compile_code

EXAMPLES = Path(__file__).parents[2] / "examples" / "adapter"
COMPILER = shutil.which("c++") or shutil.which("g++")
KERNEL = """
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void copy(const __grid_constant__ Map map, unsigned long long* out) {
    for (int i = 0; i < 16; ++i) out[i] = map.words[i];
}
"""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def build(folder, name, source):
    """Compiles an extension and imports it."""
    path = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    folders = sysconfig.get_path("include"), Path(sysconfig.get_config_h_filename()).parent, ftcuda.get_include()
    includes = [f"-I{folder}" for folder in folders]
    subprocess.run(
        [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", *includes, source, "-o", path], check=True, timeout=240
    )
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return build(tmp_path_factory.mktemp("tiles"), "tiles", EXAMPLES / "tiles.cpp")


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    pytest.importorskip("Cython", reason="no Cython")
    folder = tmp_path_factory.mktemp("entries")
    command = [sys.executable, "-m", "cython", "--cplus", EXAMPLES / "entries.pyx", "-o", folder / "entries.cpp"]
    # Under ThreadSanitizer Cython takes half a minute of processor time, which .ci/run gives to other steps first.
    subprocess.run(command, check=True, timeout=280, cwd=Path(ftcuda.__file__).parents[1])
    return build(folder, "entries", folder / "entries.cpp")


@pytest.fixture(scope="module")
def copy():
    return compile_code(KERNEL).get_kernel("copy")


def test_cplusplus_encodes_and_launches(tiles, copy, device, stream):
    if not device.features.tensor_maps:
        with pytest.raises(RuntimeError, match="CUDA_ERROR_NOT_SUPPORTED"):
            tiles.launch_copy(stream.handle, copy.handle, 0, 16, 64, 0)
        return
    with device.allocate(4096, stream=stream) as tensor, device.allocate(128, stream=stream) as out:
        map = StridedMemoryView.from_buffer(tensor, (16, 64), dtype="f4").as_tensor_map((8, 32))
        assert tiles.launch_copy(stream.handle, copy.handle, tensor.handle, 16, 64, out.handle) == bytes(map)
        host = np.empty(16, "u8")
        out.copy_to(host, stream=stream)
        assert host.tobytes() == bytes(map)
        with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
            tiles.launch_copy(stream.handle, copy.handle, tensor.handle + 4, 16, 64, out.handle)


def test_cython_finds_entries(entries):
    assert entries.device_count() == len(ftcuda.Device.get_all_devices())
    major, minor = map(int, ftcuda.driver_info().version.split("."))
    assert entries.versions() == (1, 1000 * major + 10 * minor)
    assert entries.status_of("cuInit", 2000) == (0, True)
    assert entries.status_of("cuNothing", 2000) == (801, False)
    assert entries.status_of("cuTensorMapEncodeTiled", 12000) == ((0, True) if major >= 12 else (801, False))
    if not IS_SIMULATED:  # what ftcuda itself does not call is found too
        assert entries.status_of("cuCtxGetApiVersion", 3020) == (0, True)


def test_entries_from_many_threads(entries):
    def ask(index):
        for _ in range(200):
            assert entries.status_of("cuLaunchKernel", 4000) == (0, True)
            assert entries.status_of("cuNothing", 2000) == (801, False)

    together(8, ask)


def test_first_use_from_many_threads(run_python, tiles):
    """The extension's threads may be the ones that load the driver."""
    program = (
        "import sys, threading\n"
        "import importlib.machinery, importlib.util\n"
        "import ftcuda\n"
        f"path = {tiles.__spec__.origin!r}\n"
        "barrier = threading.Barrier(8)\n"
        "def use():\n"
        "    barrier.wait()\n"
        "    loader = importlib.machinery.ExtensionFileLoader('tiles', path)\n"
        "    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('tiles', loader))\n"
        "    loader.exec_module(module)\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(ftcuda.driver_info().version, getattr(sys, '_is_gil_enabled', lambda: True)())\n"
    )
    assert ftcuda.driver_info().version in run_python(program)


def test_without_a_driver(run_python, tiles):
    program = (
        "import importlib.machinery, importlib.util\n"
        f"loader = importlib.machinery.ExtensionFileLoader('tiles', {tiles.__spec__.origin!r})\n"
        "module = importlib.util.module_from_spec(importlib.util.spec_from_loader('tiles', loader))\n"
        "try: loader.exec_module(module)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    said = run_python(program, FTCUDA_DRIVER="/nowhere/libcuda.so.1")
    assert said.startswith("DriverNotFoundError") and "/nowhere/libcuda.so.1" in said
