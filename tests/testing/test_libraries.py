"""Libraries of the simulated driver, kernels for whichever context asks; entry points that it must not give.

See test_libcuda.py, whose programs these are like.
"""

from tests.conftest import simulated_only
from tests.testing.test_libcuda import bindings, run_guest, variables  # noqa: F401  # fixtures

pytestmark = simulated_only

PTX = """
.version 7.2
.target sm_70
.address_size 64
.global .align 4 .u32 counter = 5;
.global .attribute(.managed) .align 4 .u32 shared = 9;
.visible .entry count(.param .u64 out, .param .u32 by)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [by];
    ld.global.u32 %r2, [counter];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [counter], %r2;
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry other() { ret; }
"""


def test_a_kernel_of_a_library(run_guest):  # noqa: F811
    run_guest(f"""
PTX = {PTX!r}.encode()
library_ = ok(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
kernel = ok(driver.cuLibraryGetKernel(library_, b"count"))
assert int(ok(driver.cuLibraryGetKernel(library_, b"count"))) == int(kernel)
assert driver.cuLibraryGetKernel(library_, b"absent")[0] == R.CUDA_ERROR_NOT_FOUND
memory = ok(driver.cuMemAlloc(4))

def launched(function, by):
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((memory, by), (None, ctypes.c_uint)), 0))
    value = np.zeros(1, "u4")
    ok(driver.cuMemcpyDtoH(value.ctypes.data, memory, 4))
    return int(value[0])

assert launched(driver.CUfunction(int(kernel)), 2) == 7
function = ok(driver.cuKernelGetFunction(kernel))
assert launched(function, 3) == 10  # the same variable
pointer, size = ok(driver.cuLibraryGetGlobal(library_, b"counter"))
module = ok(driver.cuLibraryGetModule(library_))
assert size == 4 and int(ok(driver.cuModuleGetGlobal(module, b"counter"))[0]) == int(pointer)
assert driver.cuLibraryGetManaged(library_, b"counter")[0] == R.CUDA_ERROR_NOT_FOUND
shared, size = ok(driver.cuLibraryGetManaged(library_, b"shared"))
assert size == 4 and ctypes.c_uint.from_address(int(shared)).value == 9
assert driver.cuModuleUnload(module)[0] == R.CUDA_ERROR_NOT_PERMITTED
assert int(ok(driver.cuFuncGetModule(function))) == int(module)
assert violation(0) == ""

ok(driver.cuLibraryUnload(library_))
assert driver.cuLaunchKernel(driver.CUfunction(int(kernel)), 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)[0] == R.CUDA_ERROR_INVALID_HANDLE
assert driver.cuLibraryUnload(library_)[0] == R.CUDA_ERROR_INVALID_HANDLE
assert driver.cuLibraryGetKernel(library_, b"count")[0] == R.CUDA_ERROR_INVALID_HANDLE
assert [violation(index) for index in range(4)] == [
    "stale or foreign function handle", "library unloaded that does not exist (twice, or foreign)", "stale or foreign library handle", ""]
assert driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)[0] == R.CUDA_ERROR_INVALID_VALUE  # freed with it
assert driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, shared)[0] == R.CUDA_ERROR_INVALID_VALUE
""")


def test_each_context_has_its_own_variables_but_those_that_are_managed(run_guest):  # noqa: F811
    run_guest(
        f"""
PTX = {PTX!r}.encode()
library_ = ok(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
one, _ = ok(driver.cuLibraryGetGlobal(library_, b"counter"))
mine, _ = ok(driver.cuLibraryGetGlobal(library_, b"shared"))
ok(driver.cuCtxPushCurrent(ok(driver.cuDevicePrimaryCtxRetain(1))))
two, _ = ok(driver.cuLibraryGetGlobal(library_, b"counter"))
theirs, _ = ok(driver.cuLibraryGetGlobal(library_, b"shared"))
assert int(one) != int(two) and int(mine) == int(theirs)
ordinal = ctypes.c_int(-7)  # by ctypes: cuda-bindings 12.9 answers 0 whatever the driver wrote
assert library.cuPointerGetAttribute(ctypes.byref(ordinal), A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ctypes.c_uint64(int(two))) == 0
assert ordinal.value == 1
ok(driver.cuLibraryUnload(library_))
assert violation(0) == ""
""",
        FTCUDA_SIM_DEVICES="2",
    )


def test_attributes_of_a_kernel_and_of_its_function(run_guest):  # noqa: F811
    """What is set on the kernel is its functions', until it is set on a function."""
    run_guest(f"""
PTX = {PTX!r}.encode()
F = driver.CUfunction_attribute
SHARED = F.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
library_ = ok(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
kernel = ok(driver.cuLibraryGetKernel(library_, b"other"))
function = ok(driver.cuKernelGetFunction(kernel))

def launches(bytes_of_shared_memory):
    return driver.cuLaunchKernel(driver.CUfunction(int(kernel)), 1, 1, 1, 1, 1, 1, bytes_of_shared_memory, 0, 0, 0)[0] == R.CUDA_SUCCESS

assert not launches(60_000)
ok(driver.cuKernelSetAttribute(SHARED, 64_000, kernel, device))
assert ok(driver.cuKernelGetAttribute(SHARED, kernel, device)) == ok(driver.cuFuncGetAttribute(SHARED, function)) == 64_000
assert launches(60_000) and not launches(70_000)
ok(driver.cuFuncSetAttribute(function, SHARED, 1000))
ok(driver.cuKernelSetAttribute(SHARED, 80_000, kernel, device))
assert ok(driver.cuKernelGetAttribute(SHARED, kernel, device)) == 80_000
assert ok(driver.cuFuncGetAttribute(SHARED, function)) == 1000 and not launches(2000)
assert driver.cuKernelSetAttribute(SHARED, 1 << 30, kernel, device)[0] == R.CUDA_ERROR_INVALID_VALUE
assert driver.cuKernelSetAttribute(F.CU_FUNC_ATTRIBUTE_NUM_REGS, 1, kernel, device)[0] == R.CUDA_ERROR_INVALID_VALUE
assert driver.cuKernelGetAttribute(SHARED, kernel, 5)[0] == R.CUDA_ERROR_INVALID_DEVICE
assert ok(driver.cuKernelGetAttribute(F.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device)) == 1024
assert ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(driver.CUfunction(int(kernel)), 128, 0)) > 0
ok(driver.cuCtxSynchronize())
assert violation(0) == ""
""")


def test_images_that_cannot_be_loaded(run_guest, tmp_path):  # noqa: F811
    (tmp_path / "good.ptx").write_text(PTX)
    run_guest(f"""
path = {str(tmp_path)!r}
load = lambda image: driver.cuLibraryLoadData(image, [], [], 0, [], [], 0)[0]
assert load(b".version 99.0\\n.target sm_70\\n") == R.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
assert load(b".version 7.2\\n.target sm_70\\n.nonsense") == R.CUDA_ERROR_INVALID_PTX
assert load(b"\\x7fELF" + bytes(64)) == R.CUDA_ERROR_INVALID_IMAGE
load_file = lambda name: driver.cuLibraryLoadFromFile(f"{{path}}/{{name}}".encode(), [], [], 0, [], [], 0)
assert load_file("absent.ptx")[0] == R.CUDA_ERROR_FILE_NOT_FOUND
library_ = ok(load_file("good.ptx"))
ok(driver.cuLibraryGetKernel(library_, b"other"))
module = ok(driver.cuModuleLoad(f"{{path}}/good.ptx".encode()))
ok(driver.cuModuleGetFunction(module, b"other"))
assert driver.cuModuleLoad(f"{{path}}/absent.ptx".encode())[0] == R.CUDA_ERROR_FILE_NOT_FOUND
PRESERVED = driver.CUlibraryOption.CU_LIBRARY_BINARY_IS_PRESERVED
text = open(f"{{path}}/good.ptx", "rb").read()
count = ctypes.c_uint()
assert library.cuLibraryGetKernelCount(ctypes.byref(count), ctypes.c_void_p(int(library_))) in (0, 500)
kernels = (ctypes.c_void_p * 4)()
if library.cuLibraryEnumerateKernels(kernels, 4, ctypes.c_void_p(int(library_))) == 0:
    name = ctypes.c_char_p()
    assert count.value == 2
    names = []
    for kernel in kernels[:2]:
        assert library.cuKernelGetName(ctypes.byref(name), ctypes.c_void_p(kernel)) == 0
        names.append(name.value)
    assert names == [b"count", b"other"]
    sizes = []
    for index in range(2):
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        where = ctypes.c_void_p(kernels[0]), ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size)
        assert library.cuKernelGetParamInfo(*where) == 0
        sizes.append((offset.value, size.value))
    assert sizes == [(0, 8), (8, 4)]
    assert library.cuKernelGetParamInfo(ctypes.c_void_p(kernels[0]), ctypes.c_size_t(2), None, None) == 1
assert violation(0) == ""
""")


def test_entry_points_of_another_meaning_are_not_given(run_guest):  # noqa: F811
    """Those in which no stream is the thread's own, and NVIDIA's private tables."""
    run_guest("""
def find(name, version, flags):
    function, found = ctypes.c_void_p(), ctypes.c_int(9)
    answer = library.cuGetProcAddress_v2(name, ctypes.byref(function), version, ctypes.c_uint64(flags), ctypes.byref(found))
    return answer, found.value, function.value is not None

LEGACY, PER_THREAD = 1, 2
for name in b"cuLaunchKernel", b"cuMemcpyHtoD", b"cuMemcpyAsync", b"cuStreamSynchronize", b"cuEventRecord":
    assert find(name, 11020, LEGACY)[1:] == (0, True) and find(name, 11020, PER_THREAD)[1:] == (1, False), name
for name in b"cuMemAlloc", b"cuStreamDestroy", b"cuGetExportTable", b"cuCtxPopCurrent":
    assert find(name, 11020, PER_THREAD) == (0, 0, True), name
assert find(b"cuMemHostRegister", 4000, 0)[1:] == (2, False)  # the version of 4.0 is not the one of 6.5
table, nobody = ctypes.c_void_p(1), (ctypes.c_char * 16)()
assert library.cuGetExportTable(ctypes.byref(table), nobody) == 500 and table.value is None
""")
