import io

import numpy as np
import pytest

import ftcuda
from ftcuda import CUDAError, LaunchConfig, NVRTCError, ObjectCode, Program, ProgramOptions, launch
from ftcuda.testing import together
from tests.conftest import IS_SIMULATED, compile_code, simulated_only

TEMPLATE = "template <class T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }"


def test_name_expressions(stream, pinned):
    code = compile_code(TEMPLATE, "scale<float>", "scale<int>")
    assert len(code.kernel_names) == 2 and set(code.symbol_mapping) == {"scale<float>", "scale<int>"}
    host, view = pinned(np.arange(4, dtype=np.float32))
    launch(stream, LaunchConfig(grid=1, block=4), code.get_kernel("scale<float>"), host, 0.5)
    stream.sync()
    assert list(view) == [0, 0.5, 1, 1.5]


def test_cxx17_is_the_default():
    compile_code(
        'template <auto value> __device__ int f() { if constexpr (value > 0) return 1; else return 0; } extern "C" __global__ void k(int* p) { *p = f<3>(); }'
    )


def test_the_log_is_in_the_exception():
    with pytest.raises(NVRTCError, match="undefined_thing") as caught:
        Program("__global__ void k() { undefined_thing(); }", "c++", ProgramOptions(name="broken.cu")).compile("ptx")
    assert "broken.cu" in caught.value.log


def test_logs_are_written_after_success():
    log = io.StringIO()
    Program("__global__ void k() { int unused; }", "c++").compile("ptx", logs=log)
    assert "unused" in log.getvalue()


def test_options():
    options = ProgramOptions(
        define_macro=["A", ("B", "2")], lineinfo=True, fma=False, use_fast_math=True, max_register_count=32
    )
    text = options.as_nvrtc()
    assert (
        "--define-macro=A" in text and "--define-macro=B=2" in text and "--fmad=false" in text and "--std=c++17" in text
    )
    source = '#if B != 2 || !defined(A)\n#error\n#endif\nextern "C" __global__ void k() {}'
    assert compile_code(source, define_macro=["A", ("B", "2")], lineinfo=True).kernel_names == ["k"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((5, "c++"), TypeError),
        (("", "rust"), ValueError),
        (("a\0b", "c++"), ValueError),
        (("", "c++", {"arch": "90"}), ValueError),
        (("", "c++", {"debug": 3}), TypeError),
    ],
)
def test_bad_programs(arguments, error):
    with pytest.raises(error):
        Program(*arguments)


def test_bad_targets():
    program = Program("", "c++")
    with pytest.raises(ValueError, match="target_type"):
        program.compile("elf")
    with pytest.raises(TypeError, match="name_expressions"):
        program.compile("ptx", name_expressions="k")


def test_missing_kernel_names_those_there_are(code):
    with pytest.raises(KeyError, match=r"'nothing'.*saxpy"):
        code.get_kernel("nothing")


def test_cubin_layouts_agree_with_ptx():
    source = 'struct S { char c; double d; }; extern "C" __global__ void k(char a, short b, S s, float f, const int* p) { if (p) *(int*)p = a + b + s.c + (int)f; }'
    arch = f"sm_{ftcuda.Device(0).arch}"
    ptx = Program(source, "c++", {"arch": arch}).compile("ptx")
    cubin = Program(source, "c++", {"arch": arch}).compile("cubin")
    assert cubin.code.startswith(b"\x7fELF") and cubin.kernel_names == ptx.kernel_names == ["k"]
    if not IS_SIMULATED:
        assert cubin.get_kernel("k").arguments_info == [(0, 1), (2, 2), (8, 16), (24, 4), (32, 8)]


@pytest.mark.parametrize("image", [b"", b"garbage", b"\x7fELFgarbage", b"\x50\xed\x55\xba" + b"\0" * 40])
def test_malformed_images(image):
    loaders = (ObjectCode.from_ptx, ObjectCode.from_cubin, ObjectCode.from_fatbin)
    for load in loaders:
        with pytest.raises((ValueError, CUDAError, KeyError)):
            load(image).get_kernel("k")


def test_images_from_files(tmp_path, code):
    path = tmp_path / "code.ptx"
    path.write_bytes(code.code)
    loader = ObjectCode.from_ptx if IS_SIMULATED else ObjectCode.from_cubin
    assert loader(path).get_kernel("saxpy").num_arguments == 4
    with pytest.raises(TypeError):
        ObjectCode.from_ptx(5)


@simulated_only
def test_newer_ptx_is_refused_with_its_log(code):
    text = code.code.decode().replace(".version ", ".version 9", 1)
    with pytest.raises(CUDAError, match="CUDA_ERROR_UNSUPPORTED_PTX_VERSION") as caught:
        ObjectCode.from_ptx(text.encode()).get_kernel("saxpy")
    assert "newer than this driver" in str(caught.value)


@simulated_only
def test_unknown_instructions_are_named(code):
    text = code.code.decode().replace("ret;", "wmma.load.a.sync 1;", 1)
    with pytest.raises(CUDAError, match=r"unsupported instruction 'wmma\.load\.a\.sync'") as caught:
        ObjectCode.from_ptx(text.encode()).get_kernel("saxpy")
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"


def test_globals(stream, pinned):
    code = compile_code('__device__ int counter = 5; extern "C" __global__ void next() { ++counter; }', "&counter")
    variable = code.get_global("&counter")
    host, view = pinned(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("next"))
    variable.copy_to(host, stream=stream)
    stream.sync()
    assert view[0] == 6 and variable.owner is code
    with pytest.raises(KeyError):
        code.get_global("nothing")


def test_compiling_and_loading_from_many_threads():
    program = Program(TEMPLATE, "c++", {"arch": "compute_80"})
    codes = together(4, lambda index: program.compile("ptx", name_expressions=("scale<int>",)))
    assert len({code.code for code in codes}) == 1
    shared = compile_code(TEMPLATE, "scale<int>")
    kernels = together(8, lambda index: shared.get_kernel("scale<int>"))
    assert len({kernel.handle for kernel in kernels}) == 1
