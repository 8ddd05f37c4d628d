"""The simulated driver in the place of libcuda: programs that know nothing of ftcuda, with the variables of
``python -m ftcuda.testing env``.

Each program runs in a process of its own, so that it loads the driver by libcuda's name.
"""

import os
import shlex
import subprocess
import sys

import pytest

import ftcuda
from tests.conftest import PROFILE, simulated_only
from tests.kernels import PTX_VERSIONS

pytestmark = simulated_only


def env(*arguments, **environment):
    """What the command prints, read as a shell reads it."""
    command = [sys.executable, "-m", "ftcuda.testing", "env", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    found = {}
    for line in result.stdout.splitlines():
        export, assignment = shlex.split(line)
        assert export == "export"
        name, _, value = assignment.partition("=")
        found[name] = value
    return found


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    return env("--folder", str(tmp_path_factory.mktemp("libcuda")))


@pytest.fixture
def bindings():
    if ftcuda.driver_info().version < "12.8":
        pytest.skip(
            "cuda-bindings finds its entry points as drivers of CUDA 12 and later give them, event times from 12.8 on"
        )
    return pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings has no release for this interpreter")


@pytest.fixture
def run_guest(run_python, variables, bindings):
    """Runs a program that uses cuda-bindings; `ok` and an initialised context are there."""
    prologue = """
import ctypes, threading, numpy as np
from cuda.bindings import driver
R, A = driver.CUresult, driver.CUpointer_attribute

def ok(answer):
    assert answer[0] == R.CUDA_SUCCESS, answer
    return None if len(answer) == 1 else answer[1] if len(answer) == 2 else answer[1:]

ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
library = ctypes.CDLL("libcuda.so.1")
library.ftcuda_sim_control.restype = ctypes.POINTER(ctypes.c_void_p)
violation_text = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t)(library.ftcuda_sim_control()[2])

def violation(index):
    text = ctypes.create_string_buffer(200)
    violation_text(index, text, 200)
    return text.value.decode()
"""

    def run(program, **environment):
        return run_python(prologue + program, **variables, **environment)

    return run


PTX = f"""
.version {min(PTX_VERSIONS[PROFILE], "8.0") if PROFILE in PTX_VERSIONS else "8.0"}
.target sm_70
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry twice(.param .u64 data, .param .u32 count)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
    add.s32 %r5, %r5, %r5;
    st.global.u32 [%rd3], %r5;
done:
    ret;
}}
"""


def test_the_folder_and_the_variables(tmp_path):
    folder = tmp_path / "a folder"
    nvrtc = tmp_path / "libnvrtc.so.12.9.86"
    nvrtc.touch()
    arguments = "--folder", str(folder), "--nvrtc", str(nvrtc)
    printed = env(*arguments, LD_LIBRARY_PATH=f"/one:{folder}:/two", LD_PRELOAD="")
    nvrtc_front = {"LD_PRELOAD": "libnvrtc.so.12", "FTCUDA_NVRTC": str(nvrtc)}
    assert printed == {"LD_LIBRARY_PATH": f"{folder}:/one:/two", "FTCUDA_DRIVER": "sim", **nvrtc_front}
    again = env(*arguments, LD_LIBRARY_PATH="", LD_PRELOAD="libc.so.6:libnvrtc.so.12 libm.so.6")
    assert again["LD_LIBRARY_PATH"] == str(folder) and again["LD_PRELOAD"] == "libc.so.6:libm.so.6:libnvrtc.so.12"
    targets = {path.name: path.resolve().name for path in folder.iterdir()}
    driver, front = "libftcuda_simdriver.so", "libftcuda_simnvrtc.so"
    assert targets == dict.fromkeys(("libcuda.so", "libcuda.so.1"), driver) | dict.fromkeys(("libnvrtc.so", "libnvrtc.so.12"), front)


def test_an_nvrtc_is_known_by_its_name(tmp_path):
    folder = str(tmp_path / "links")
    for name, expected in ("libnvrtc.so.11.8.89", "libnvrtc.so.11.2"), ("libnvrtc.so.13", "libnvrtc.so.13"):
        (tmp_path / name).touch()
        assert env("--folder", folder, "--nvrtc", str(tmp_path / name), LD_PRELOAD="")["LD_PRELOAD"] == expected
    (tmp_path / "other.so").touch()
    for name, where, words in (
        ("other.so", folder, "is not named like an NVRTC"),
        ("libnvrtc.so.99", folder, "No such file"),
        ("libnvrtc.so.13", str(tmp_path), "would replace it"),
    ):
        command = [sys.executable, "-m", "ftcuda.testing", "env", "--folder", where, "--nvrtc", str(tmp_path / name)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert result.returncode == 1 and result.stdout == ""
        assert words in result.stderr and "name another --nvrtc" in result.stderr
    assert not (tmp_path / "libnvrtc.so.13").is_symlink()


def test_without_a_folder_it_is_the_user_s_cache(tmp_path):
    folder = env(XDG_CACHE_HOME=str(tmp_path), LD_LIBRARY_PATH="")["LD_LIBRARY_PATH"]
    assert folder.startswith(f"{tmp_path}/ftcuda/") and os.path.exists(f"{folder}/libcuda.so.1")
    assert env(XDG_CACHE_HOME=str(tmp_path), LD_LIBRARY_PATH="")["LD_LIBRARY_PATH"] == folder


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "ftcuda.testing", "env", "--folder", str(tmp_path / "file")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert result.returncode == 1 and result.stdout == ""
    assert "cannot make the links" in result.stderr and "name another --folder" in result.stderr


def test_a_program_of_cuda_bindings(run_guest):
    printed = run_guest(f"""
PTX = {PTX!r}.encode()
module = ok(driver.cuModuleLoadData(PTX))
function = ok(driver.cuModuleGetFunction(module, b"twice"))
stream = ok(driver.cuStreamCreate(0))
start, end, untimed = (ok(driver.cuEventCreate(flags)) for flags in (0, 0, 2))
data = np.arange(1000, dtype="u4")
memory = ok(driver.cuMemAlloc(data.nbytes))
ok(driver.cuMemcpyHtoD(memory, data.ctypes.data, data.nbytes))
assert driver.cuEventElapsedTime(start, end)[0] == R.CUDA_ERROR_INVALID_HANDLE  # not recorded
ok(driver.cuEventRecord(start, stream))
ok(driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, ((memory, 1000), (None, ctypes.c_uint)), 0))
ok(driver.cuEventRecord(end, stream))
ok(driver.cuEventRecord(untimed, stream))
ok(driver.cuStreamSynchronize(stream))
milliseconds = ok(driver.cuEventElapsedTime(start, end))
assert 0 < milliseconds < 60_000, milliseconds
assert abs(ok(driver.cuEventElapsedTime(end, start)) + milliseconds) < 1e-6
assert driver.cuEventElapsedTime(start, untimed)[0] == R.CUDA_ERROR_INVALID_HANDLE
back = np.zeros_like(data)
ok(driver.cuMemcpyDtoH(back.ctypes.data, memory, data.nbytes))
assert (back == 2 * data).all()
ok(driver.cuMemFree(memory))
assert driver.cuMemFree(memory)[0] == R.CUDA_ERROR_INVALID_VALUE
pointer, size = ok(driver.cuModuleGetGlobal(module, b"counter"))
assert size == 4
ok(driver.cuModuleUnload(module))
print("values", int(back.sum()))
""")
    assert f"values {2 * sum(range(1000))}" in printed


def test_nvrtc_of_cuda_bindings(run_guest):
    """NVRTC asks the driver for a private table when it makes code for a real architecture, and crashed without an answer."""
    printed = run_guest("""
import re
from cuda.bindings import nvrtc

def made(answer):
    assert answer[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS, answer
    return None if len(answer) == 1 else answer[1]

SOURCE = b'extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }'
for target in b"sm_80", b"compute_80":
    program = made(nvrtc.nvrtcCreateProgram(SOURCE, b"scale.cu", 0, [], []))
    made(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=" + target]))
ptx = b" " * made(nvrtc.nvrtcGetPTXSize(program))
made(nvrtc.nvrtcGetPTX(program, ptx))
image = re.sub(rb"\\.version .*", b".version 7.2", ptx)  # for old drivers too: there is nothing newer in it
function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(image)), b"scale"))
data = np.arange(32, dtype="f4")
memory = ok(driver.cuMemAlloc(128))
ok(driver.cuMemcpyHtoD(memory, data.ctypes.data, 128))
ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ((memory, 3.0), (None, ctypes.c_float)), 0))
ok(driver.cuMemcpyDtoH(data.ctypes.data, memory, 128))
assert (data == 3 * np.arange(32)).all()
print("compiled and run")
""")
    assert "compiled and run" in printed


def test_pointers_are_told_what_they_are(run_guest):
    """Device, pinned, registered and managed memory, and memory that the driver knows nothing of."""
    run_guest("""
asked = [A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, A.CU_POINTER_ATTRIBUTE_IS_MANAGED, A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
         A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, A.CU_POINTER_ATTRIBUTE_RANGE_SIZE]

def answers(pointer):
    kind, managed, ordinal, begin, size = (ok(driver.cuPointerGetAttribute(attribute, pointer)) for attribute in asked)
    return int(kind), bool(managed), ordinal, int(begin), size

HOST, DEVICE = 1, 2
memory = ok(driver.cuMemAlloc(1024))
assert answers(int(memory) + 8) == (DEVICE, False, 0, int(memory), 1024)
assert driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_HOST_POINTER, memory)[0] == R.CUDA_ERROR_INVALID_VALUE
begin, size = ok(driver.cuMemGetAddressRange(int(memory) + 8))
assert (int(begin), size) == (int(memory), 1024)
assert driver.cuMemGetAddressRange(8)[0] == R.CUDA_ERROR_NOT_FOUND

pinned = ok(driver.cuMemAllocHost(1024))
assert answers(pinned + 8) == (HOST, False, 0, pinned, 1024)
assert int(ok(driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pinned + 8))) == pinned + 8
assert int(ok(driver.cuMemHostGetDevicePointer(pinned + 8, 0))) == pinned + 8
assert ok(driver.cuMemHostGetFlags(pinned)) == 0

managed = ok(driver.cuMemAllocManaged(1024, 1))
assert answers(int(managed) + 8) == (DEVICE, True, 0, int(managed), 1024)
assert driver.cuMemAllocManaged(1024, 3)[0] == R.CUDA_ERROR_INVALID_VALUE
assert driver.cuMemHostGetDevicePointer(int(managed), 0)[0] == R.CUDA_ERROR_INVALID_VALUE

array = np.arange(256, dtype="u4")
address = array.ctypes.data
for attribute in asked:
    assert driver.cuPointerGetAttribute(attribute, address)[0] == R.CUDA_ERROR_INVALID_VALUE
ok(driver.cuMemHostRegister(address, 1024, 1))
assert answers(address + 8) == (HOST, False, 0, address, 1024)
assert ok(driver.cuMemHostGetFlags(address)) == 1
ok(driver.cuMemHostUnregister(address))
assert driver.cuPointerGetAttribute(asked[0], address)[0] == R.CUDA_ERROR_INVALID_VALUE

# All at once: no error for memory that the driver knows nothing of.
kind, ordinal, is_managed = ctypes.c_uint(9), ctypes.c_int(9), ctypes.c_ubyte(9)
def all_at_once(pointer):
    attributes = (ctypes.c_int * 3)(2, 9, 8)
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(place) for place in (kind, ordinal, is_managed)))
    assert library.cuPointerGetAttributes(3, attributes, places, ctypes.c_uint64(int(pointer))) == 0
    return kind.value, ordinal.value, is_managed.value
assert all_at_once(address) == (0, -2, 0)
assert all_at_once(managed) == (DEVICE, 0, 1)
assert all_at_once(pinned) == (HOST, 0, 0)
assert all_at_once(memory) == (DEVICE, 0, 0)
assert violation(0) == ""
""")


def test_registered_memory(run_guest):
    """Copies of it are asynchronous, kernels reach it, and it is given back before it can be freed."""
    run_guest(f"""
PTX = {PTX!r}.encode()
array = np.arange(64, dtype="u4")
address = array.ctypes.data
REGISTERED, NOT_REGISTERED = R.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, R.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(PTX)), b"twice"))

def launch(pointer, count):
    arguments = (driver.CUdeviceptr(pointer), count), (None, ctypes.c_uint)
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, arguments, 0))

ok(driver.cuMemHostRegister(address, array.nbytes, 0))
launch(address, 64)
ok(driver.cuCtxSynchronize())
assert (array == 2 * np.arange(64)).all()
assert driver.cuMemHostRegister(address, array.nbytes, 0)[0] == REGISTERED
assert driver.cuMemHostRegister(address + 4, 4, 0)[0] == REGISTERED
assert driver.cuMemHostRegister(address - 4, 8, 0)[0] == REGISTERED
assert driver.cuMemcpyAsync(ok(driver.cuMemAlloc(512)), address, 512, 0)[0] == R.CUDA_ERROR_INVALID_VALUE  # past its end
assert violation(0) == ""
assert driver.cuMemHostUnregister(address + 4)[0] == NOT_REGISTERED
assert violation(0) == "memory unregistered that is not registered (twice, or foreign)"
assert driver.cuMemFreeHost(address)[0] == driver.cuMemFree(address)[0] == R.CUDA_ERROR_INVALID_VALUE
ok(driver.cuMemHostUnregister(address))
assert driver.cuMemHostUnregister(address)[0] == NOT_REGISTERED

# What cannot be registered.
memory = ok(driver.cuMemAlloc(64))
assert driver.cuMemHostRegister(int(memory), 64, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
assert driver.cuMemHostRegister(ok(driver.cuMemAllocHost(64)), 64, 0)[0] == REGISTERED
for wrong in (0, 64, 0), (address, 0, 0), (address, 64, 16), (8, 64, 0):
    assert driver.cuMemHostRegister(*wrong)[0] == R.CUDA_ERROR_INVALID_VALUE, wrong
assert driver.cuMemHostRegister(address, 64, 8)[0] == R.CUDA_ERROR_NOT_SUPPORTED  # READ_ONLY, which no attribute offers

# A copy into it that has not been done when the call returns, and the violation that unregistering it then is.
ok(driver.cuMemHostRegister(address, array.nbytes, 0))
control = library.ftcuda_sim_control()
hold, release = (ctypes.CFUNCTYPE(None)(control[index]) for index in (8, 9))
device_memory = ok(driver.cuMemAlloc(array.nbytes))
ok(driver.cuMemsetD32(device_memory, 7, 64))
ok(driver.cuCtxSynchronize())
hold()
ok(driver.cuMemcpyDtoHAsync(address, device_memory, array.nbytes, 0))
assert (array == 2 * np.arange(64)).all()
release()
ok(driver.cuCtxSynchronize())
assert (array == 7).all()
hold()
ok(driver.cuMemcpyDtoHAsync(address, device_memory, array.nbytes, 0))
ok(driver.cuMemHostUnregister(address))
assert "memory unregistered before the last work that uses it was done" in [violation(index) for index in range(16)]
release()
""")


def test_event_times_are_refused_until_they_are_known(run_guest):
    run_guest("""
control = library.ftcuda_sim_control()
hold, release = (ctypes.CFUNCTYPE(None)(control[index]) for index in (8, 9))
start, end = ok(driver.cuEventCreate(0)), ok(driver.cuEventCreate(0))
ok(driver.cuEventRecord(start, 0))
ok(driver.cuEventSynchronize(start))
assert driver.cuEventElapsedTime(start, end)[0] == R.CUDA_ERROR_INVALID_HANDLE
hold()
ok(driver.cuEventRecord(end, 0))
assert driver.cuEventElapsedTime(start, end)[0] == R.CUDA_ERROR_NOT_READY
for name in "cuEventElapsedTime", "cuEventElapsedTime_v2":  # by the exported names, both
    assert getattr(library, name)(ctypes.byref(ctypes.c_float()), *map(ctypes.c_void_p, map(int, (start, end)))) in (500, 600)
release()
ok(driver.cuEventSynchronize(end))
first = ok(driver.cuEventElapsedTime(start, end))
assert 0 <= first
ok(driver.cuEventRecord(end, 0))
ok(driver.cuEventSynchronize(end))
assert ok(driver.cuEventElapsedTime(start, end)) > first
""")


def test_events_are_recorded_with_flags(run_guest):
    run_guest("""
start, end = ok(driver.cuEventCreate(0)), ok(driver.cuEventCreate(0))
stream = ok(driver.cuStreamCreate(1))
for event in start, end:
    ok(driver.cuEventRecordWithFlags(event, stream, 0))
ok(driver.cuEventSynchronize(end))
assert 0 <= ok(driver.cuEventElapsedTime(start, end)) < 60_000
assert driver.cuEventRecordWithFlags(end, stream, 1)[0] == R.CUDA_ERROR_ILLEGAL_STATE  # EXTERNAL, outside of a capture
assert driver.cuEventRecordWithFlags(end, stream, 2)[0] == R.CUDA_ERROR_INVALID_VALUE
""")


def test_the_stack_of_contexts_belongs_to_the_thread(run_guest):
    run_guest(
        """
def current():
    return int(ok(driver.cuCtxGetCurrent()))

second = ok(driver.cuDevicePrimaryCtxRetain(1))
assert current() == int(context)
ok(driver.cuCtxPushCurrent(second))
assert current() == int(second) and int(ok(driver.cuCtxGetDevice())) == 1
ok(driver.cuCtxPushCurrent(context))
ok(driver.cuCtxSetCurrent(second))  # in place of the top
assert int(ok(driver.cuCtxPopCurrent())) == int(second)
assert current() == int(second)
ok(driver.cuCtxSetCurrent(0))  # as a pop
assert current() == int(context)
elsewhere = []
def other():
    elsewhere.append(driver.cuCtxPopCurrent()[0])
    ok(driver.cuCtxPushCurrent(second))
    elsewhere.append(current())
thread = threading.Thread(target=other)
thread.start()
thread.join()
assert elsewhere == [R.CUDA_ERROR_INVALID_CONTEXT, int(second)] and current() == int(context)
assert int(ok(driver.cuCtxPopCurrent())) == int(context)
assert current() == 0 and driver.cuCtxPopCurrent()[0] == R.CUDA_ERROR_INVALID_CONTEXT
assert driver.cuCtxPushCurrent(0)[0] == R.CUDA_ERROR_INVALID_CONTEXT
assert driver.cuMemAlloc(4)[0] == R.CUDA_ERROR_INVALID_CONTEXT
""",
        FTCUDA_SIM_DEVICES="2",
    )


def test_a_program_of_cuda_core(run_guest):
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    printed = run_guest("""
import re
from cuda.core.experimental import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, ProgramOptions, launch

SOURCE = 'extern "C" __global__ void scale(float* x, float a, int n) { int i = threadIdx.x; if (i < n) x[i] *= a; }'
device = Device()
device.set_current()
stream = device.create_stream()
image = Program(SOURCE, "c++", ProgramOptions(arch="sm_80")).compile("ptx").code
kernel = ObjectCode.from_ptx(re.sub(rb"\\\\.version .*", b".version 7.2", image)).get_kernel("scale")
assert kernel.num_arguments == 3 and kernel.attributes.max_threads_per_block() == 1024
buffer = device.allocate(400, stream=stream)
pinned = LegacyPinnedMemoryResource().allocate(400)
array = np.from_dlpack(pinned).view("f4")
array[:] = np.arange(100)
pinned.copy_to(buffer, stream=stream)
start = stream.record(options=EventOptions(enable_timing=True))
launch(stream, LaunchConfig(grid=1, block=128), kernel, buffer, ctypes.c_float(3), np.int32(100))
end = stream.record(options=EventOptions(enable_timing=True))
pinned.copy_from(buffer, stream=stream)
stream.sync()
assert (array == 3 * np.arange(100)).all() and end - start > 0
assert violation(0) == ""
print("cuda.core has run")
""")
    assert "cuda.core has run" in printed


def test_the_cuda_runtime_is_told_what_it_lacks(run_guest):
    """It needs private tables: its calls fail, do not crash, and the driver says why, once."""
    printed = run_guest("""
from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
try:
    path = load_nvidia_dynamic_lib("cudart").abs_path
except DynamicLibNotFoundError:
    path = None
if path:
    runtime = ctypes.CDLL(path)
    for _ in range(2):
        assert runtime.cudaGetDevice(ctypes.byref(ctypes.c_int())) == 500
        assert runtime.cudaDeviceSynchronize() == 500
print("there is", path)
""")
    if "there is None" in printed:
        pytest.skip("the CUDA runtime's library is not installed")
    assert printed.count("the CUDA runtime (libcudart) needs a private table") == 1
