"""The five cases that the project began with. Each must go on working."""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, StridedMemoryView, launch
from tests.kernels import IS_SIMULATED

ROOT = Path(__file__).parents[2]


def test_tcc_falls_back_to_plain_allocation(run_python):
    """cuda-python: a device without stream-ordered allocation (Windows TCC) allocates with cuMemAlloc, by the same calls."""
    if not IS_SIMULATED:
        pytest.skip("needs a device in TCC mode")
    program = (
        "import numpy as np, ftcuda\n"
        "from ftcuda.testing import simulation\n"
        "device = ftcuda.Device()\n"
        "stream = device.create_stream()\n"
        "with device.allocate(64, stream=stream) as buffer:\n"
        "    buffer.copy_from(np.arange(64, dtype='u1'), stream=stream)\n"
        "    host = np.zeros(64, 'u1')\n"
        "    buffer.copy_to(host, stream=stream)\n"
        "    assert (host == np.arange(64)).all()\n"
        "device.memory_resource.trim()\n"
        "counts = [simulation.calls(name) for name in ('cuMemAlloc_v2', 'cuMemFree_v2')]\n"
        "print(device.features.driver_model, type(device.memory_resource.upstream).__name__, *counts)\n"
    )
    assert run_python(program, FTCUDA_SIM_PROFILE="tcc").split() == ["tcc", "SynchronousMemoryResource", "1", "1"]


def test_a_pinned_buffer_is_an_argument(saxpy, stream):
    """cuda.core #715: a buffer of pinned host memory goes to a kernel as any other."""
    with LegacyPinnedMemoryResource().allocate(64) as x, LegacyPinnedMemoryResource().allocate(64) as y:
        np.frombuffer(x, "f4")[:] = 2
        np.frombuffer(y, "f4")[:] = 1
        launch(stream, LaunchConfig(grid=1, block=16), saxpy, 16, 3.0, x, y)
        stream.sync()
        assert (np.frombuffer(y, "f4") == 7).all()


def test_an_interface_without_strides(saxpy, device, stream):
    """warp #523: `strides` may be missing from __cuda_array_interface__, which means C-contiguous."""
    with device.allocate(64, stream=stream) as x, device.allocate(64, stream=stream) as y:
        for buffer in (x, y):
            buffer.copy_from(np.ones(16, "f4"), stream=stream)
        array = SimpleNamespace(
            __cuda_array_interface__={"shape": (4, 4), "typestr": "<f4", "data": (x.handle, False), "version": 3}
        )
        assert StridedMemoryView(array, stream).strides is None
        launch(stream, LaunchConfig(grid=1, block=16), saxpy, 16, 3.0, array, y)
        host = np.empty(16, "f4")
        y.copy_to(host, stream=stream)
        assert (host == 4).all()


def test_a_tensor_map_through_the_table(device, stream):
    """CUTLASS's host adapter: cuTensorMapEncodeTiled comes from a table of entry points; the driver is linked by nothing."""
    for library in Path(ftcuda.__file__).parent.rglob("*.so"):
        linked = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
        assert "libcuda" not in linked and "libcudart" not in linked, linked
    if not device.features.tensor_maps:
        pytest.skip("the device or driver has no tensor maps")
    with device.allocate(4096, stream=stream) as buffer:
        map = StridedMemoryView.from_buffer(buffer, (32, 32), dtype="f4").as_tensor_map((8, 32))
        assert len(bytes(map)) == 128 and any(bytes(map))


def test_one_source_builds_the_pair():
    """cuda-python's port: wheels for cp313 and cp313t from one source, and what runs here is of this interpreter's kind."""
    matrix = tomllib.loads((ROOT / "ci" / "matrix.toml").read_text())
    assert {"cp313", "cp313t"} <= set(matrix["wheels"]["interpreters"])
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert ("t-" in suffix) == free_threaded
    assert sys.modules[ftcuda.launch.__module__].__file__.endswith(f"launch{suffix}")
    if free_threaded:
        assert not sys._is_gil_enabled()  # no extension of ours asked for it
