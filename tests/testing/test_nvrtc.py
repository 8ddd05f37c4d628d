"""The NVRTC that ``python -m ftcuda.testing env`` puts in front of the real one: its cubins run on the simulated driver."""

import os
import subprocess
import sys

import pytest

import ftcuda
from ftcuda import ObjectCode
from tests.conftest import simulated_only
from tests.testing.test_libcuda import env

pytestmark = simulated_only

# Programs that call NVRTC and the driver by their names, as any program does. REAL is the NVRTC that is not in front.
PROLOGUE = """
import ctypes, os
c_size, c_pointer = ctypes.c_size_t, ctypes.c_void_p
nvrtc = ctypes.CDLL("libnvrtc.so.%(major)s")
real = ctypes.CDLL(os.environ["FTCUDA_NVRTC"])
driver = ctypes.CDLL("libcuda.so.1")
nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
SOURCE = b'extern "C" __global__ void add(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 5; }'

def compiled(*options, library=nvrtc, source=SOURCE, names=()):
    program = c_pointer()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"add.cu", 0, None, None) == 0
    for name in names:
        assert library.nvrtcAddNameExpression(program, name) == 0
    return program, library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))

def get(what, program, library=nvrtc):
    size = c_size()
    assert getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value + 8)
    if size.value:
        assert getattr(library, f"nvrtcGet{what}")(program, text) == 0
    assert text.raw[size.value:] == bytes(8)  # nothing behind its size
    return text.raw[:size.value]

def load(image, module=None):
    module = c_pointer() if module is None else module  # one that points nowhere is false
    log = ctypes.create_string_buffer(500)
    names = (ctypes.c_int * 2)(5, 6)  # ERROR_LOG_BUFFER and its size
    values = (c_pointer * 2)(ctypes.addressof(log), 500)
    return driver.cuModuleLoadDataEx(ctypes.byref(module), image, 2, names, values), log.value.decode()

assert driver.cuInit(0) == 0
context = c_pointer()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
"""


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    return env("--folder", str(tmp_path_factory.mktemp("front")))


@pytest.fixture
def run_guest(run_python, variables, ptx_major_fits):
    major = variables["LD_PRELOAD"].rpartition("libnvrtc.so.")[2]

    def run(program, **environment):
        return run_python(PROLOGUE.replace("%(major)s", major) + program, **{**variables, **environment})

    return run


@pytest.fixture
def ptx_major_fits():
    if ftcuda.nvrtc_version()[0] > int(ftcuda.driver_info().version.partition(".")[0]):
        pytest.skip("a driver takes the cubins of its own major version")


def test_a_cubin_runs(run_guest):
    printed = run_guest("""
program, result = compiled(b"-arch=sm_90")
assert result == 0
cubin = get("CUBIN", program)
assert cubin.startswith(b"\\x7fELF") and cubin[18] == 190  # ELF, for CUDA's machine
genuine = get("CUBIN", program, real)
start, rest = genuine[:40], genuine[48:60]  # all but where and how many the sections are
assert cubin[:40] == start and cubin[48:60] == rest and cubin[64:len(genuine)] == genuine[64:]
module, function, memory, count = c_pointer(), c_pointer(), ctypes.c_uint64(), ctypes.c_int(40)
assert load(cubin, module) == (0, "")
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"add") == 0
assert driver.cuMemAlloc_v2(ctypes.byref(memory), c_size(256)) == 0
assert driver.cuMemsetD32_v2(memory, 3, c_size(64)) == 0
arguments = (c_pointer * 2)(ctypes.addressof(memory), ctypes.addressof(count))
assert driver.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, arguments, None) == 0
values = (ctypes.c_int * 64)()
assert driver.cuMemcpyDtoH_v2(values, memory, c_size(256)) == 0
assert list(values) == [8] * 40 + [3] * 24
print("the cubin has run")
""")
    assert "the cubin has run" in printed


def test_a_gpu_compiler_s_cubin_is_named(run_guest):
    run_guest("""
cubin = get("CUBIN", compiled(b"-arch=sm_90", library=real)[0], real)
result, log = load(cubin)
assert result == 209, result
assert "machine code for sm_90" in log and "ftcuda.testing env" in log
for architecture in (b"sm_80", b"sm_100")[:1 if "11" in nvrtc._name else 2]:  # sm_90 is the newest that 11.8 knows
    result, log = load(get("CUBIN", compiled(b"-arch=" + architecture)[0]))
    assert result == 209 and log == f"the cubin is for {architecture.decode()}, the device is sm_90", log
assert load(b"\\x7fELF\\2\\1" + bytes(100)) == (200, "the image is an ELF file, but no cubin")
""")


def test_files(run_guest, tmp_path):
    run_guest(
        """
cubin = get("CUBIN", compiled(b"-arch=sm_90")[0])
def load_file(image):
    with open(os.environ["CUBIN"], "wb") as file:
        file.write(image)
    return driver.cuModuleLoad(ctypes.byref(c_pointer()), os.environ["CUBIN"].encode())
assert load_file(cubin) == 0
for size in (4, 63, 64, len(cubin) // 2, len(cubin) - 1):
    assert load_file(cubin[:size]) == 200, size
""",
        CUBIN=str(tmp_path / "add.cubin"),
    )


def test_everything_else_is_the_real_one_s(run_guest):
    run_guest("""
KINDS = [kind for kind in ("PTX", "CUBIN", "LTOIR", "OptiXIR", "ProgramLog") if hasattr(real, f"nvrtcGet{kind}")]
def same(*options, what=KINDS, source=SOURCE):
    program, result = compiled(*options, source=source)
    other, expected = compiled(*options, source=source, library=real)
    assert result == expected, (options, result, expected)
    found = {kind: get(kind, program) for kind in what}
    assert found == {kind: get(kind, other, real) for kind in what}, options
    return result, found

assert same(b"-arch=compute_90") [1]["CUBIN"] == b""
if "LTOIR" in KINDS:
    result, found = same(b"-arch=sm_90", b"-dlto")
    assert result == 0 and found["CUBIN"] == b"" and found["LTOIR"]
else:
    assert nvrtc.nvrtcGetLTOIRSize(None, ctypes.byref(c_size())) == 11
    assert nvrtc.nvrtcGetErrorString(11) == b"the real NVRTC is of a version without nvrtcGetLTOIRSize"
result, found = same(b"-arch=sm_90", b"--ptxas-options=-v", what=["PTX"])
assert result == 0 and b"add" in found["PTX"]
assert b"ptxas info" in get("ProgramLog", compiled(b"-arch=sm_90", b"--ptxas-options=-v")[0])  # of the real assembler
result, found = same(b"-arch=sm_90", b"--ptxas-options=-nonsense")
assert result == 6 and b"nonsense" in found["ProgramLog"]
result, found = same(b"-arch=sm_90", source=b"nonsense")
assert result == 6 and b"error" in found["ProgramLog"]
assert same(b"-arch=sm_1")[0] == 5

program, result = compiled(b"-arch=sm_90", source=b"template <typename T> __global__ void f(T* x) { *x = 1; }", names=[b"f<int>"])
lowered = ctypes.c_char_p()
assert nvrtc.nvrtcGetLoweredName(program, b"f<int>", ctypes.byref(lowered)) == 0
assert lowered.value == b"_Z1fIiEvPT_" and lowered.value in get("PTX", program)
assert nvrtc.nvrtcGetCUBINSize(None, ctypes.byref(c_size())) == real.nvrtcGetCUBINSize(None, ctypes.byref(c_size())) != 0
assert nvrtc.nvrtcGetErrorString(6) == b"NVRTC_ERROR_COMPILATION"
assert nvrtc.nvrtcDestroyProgram(ctypes.byref(program)) == 0 and program.value is None
""")


@pytest.mark.parametrize(
    ("path", "words"), [("", "FTCUDA_NVRTC is not set"), ("/nowhere/libnvrtc.so.13", "/nowhere/libnvrtc.so.13")]
)
def test_what_is_missing_is_named(variables, path, words):
    name = variables["LD_PRELOAD"].rpartition(":")[2]
    program = f"""
import ctypes
nvrtc = ctypes.CDLL("{name}")
nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
major = ctypes.c_int()
assert nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(major)) == 11
print(nvrtc.nvrtcGetErrorString(11).decode())
"""
    environment = {**os.environ, **variables, "FTCUDA_NVRTC": path}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, env=environment)
    assert result.returncode == 0 and words in result.stdout, result.stderr


def test_ftcuda_uses_the_real_one(run_python, variables, ptx_fits):
    """Behind the front ftcuda's own loader finds NVRTC, its headers and its kernels as without it."""
    printed = run_python(
        """
import numpy as np
import ftcuda
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch
stream = Device(0).create_stream()
kernel = Program('extern "C" __global__ void add(int* x) { x[threadIdx.x] += 5; }', "c++").compile().get_kernel("add")
pinned = LegacyPinnedMemoryResource().allocate(128)
x = np.frombuffer(pinned, np.int32)
x[:] = range(32)
launch(stream, LaunchConfig(grid=1, block=32), kernel, pinned)
stream.sync()
assert (x == np.arange(5, 37)).all()
print(ftcuda.nvrtc_version())
""",
        **variables,
    )
    assert str(ftcuda.nvrtc_version()) in printed


def test_its_cubins_are_ftcuda_s_too(run_python, variables, tmp_path, ptx_major_fits):
    """What the front makes is a whole cubin, whose parameters ftcuda reads from its own sections."""
    name = variables["LD_PRELOAD"].rpartition("libnvrtc.so.")[2]
    save = PROLOGUE.replace("%(major)s", name) + 'open(os.environ["CUBIN"], "wb").write(get("CUBIN", compiled(b"-arch=sm_90")[0]))'
    run_python(save, **variables, CUBIN=str(tmp_path / "add.cubin"))
    kernel = ObjectCode.from_cubin((tmp_path / "add.cubin").read_bytes()).get_kernel("add")
    assert [parameter.size for parameter in kernel.arguments_info] == [8, 4]
