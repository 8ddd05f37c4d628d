import io
import locale
import shutil
import struct
import subprocess

import numpy as np
import pytest

import ftcuda
from ftcuda import CUDAError, LaunchConfig, NVRTCError, ObjectCode, Program, ProgramOptions, launch
from ftcuda.testing import together
from tests.conftest import simulated_only
from tests.kernels import IS_SIMULATED, compile_code

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


def test_the_thread_keeps_its_locale():
    """NVRTC 11.8 takes it away, so that text files of the thread would be read as ASCII from then on."""

    def encodings(_):
        before = locale.getencoding()
        compile_code('extern "C" __global__ void k() {}')
        return before, locale.getencoding()

    for before, after in together(2, encodings):  # new threads: this one may have compiled before
        assert before == after


def test_options():
    options = ProgramOptions(
        define_macro=["A", ("B", "2")], lineinfo=True, fma=False, use_fast_math=True, max_register_count=32
    )
    text = options.as_nvrtc()
    assert "--define-macro=A" in text and "--define-macro=B=2" in text and "--fmad=false" in text
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


def fatbin(*images):
    """A fatbin of uncompressed images, each ``(kind, architecture, bytes)``; kind 1 is PTX, 2 is a cubin."""
    entries = b""
    for kind, arch, image in images:
        payload = image + bytes(-len(image) % 8)
        entries += (
            struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, 0, 1, arch, 0, 0, 0x11, 0, 0) + payload
        )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def test_fatbins(stream, pinned, device):
    """The driver chooses the image for its device; the parameters are told by any uncompressed one."""
    source = 'extern "C" __global__ void k(int* out, char a, double b) { *out = __CUDA_ARCH__ + a + (int)b; }'
    arch = int(device.arch)
    older = compile_code(source, target="ptx", arch="compute_75").code
    own = compile_code(source, arch=f"compute_{arch}" if IS_SIMULATED else f"sm_{arch}").code
    image = fatbin((1, 75, older), (1 if IS_SIMULATED else 2, arch, own))
    kernel = ObjectCode.from_fatbin(image).get_kernel("k")
    assert kernel.arguments_info == [(0, 8), (8, 1), (16, 8)]
    host, view = pinned(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=1, block=1), kernel, host, 3, 4.0)
    stream.sync()
    assert view[0] == 10 * arch + 7


@pytest.mark.parametrize("compress", [True, False])
def test_fatbins_of_nvcc(stream, pinned, device, tmp_path, compress):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or IS_SIMULATED:
        pytest.skip(reason="needs nvcc and a GPU")
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void k(int* out, char a, double b) { *out = a + (int)b; }')
    command = [nvcc, "-fatbin", "-gencode", f"arch=compute_{device.arch},code=[sm_{device.arch},compute_{device.arch}]"]
    command += ["-Xfatbin", "-compress-all"] if compress else ["-Xfatbin", "-compress=false"]
    subprocess.run([*command, "-o", str(tmp_path / "k.fatbin"), str(source)], check=True)
    kernel = ObjectCode.from_fatbin(tmp_path / "k.fatbin").get_kernel("k")
    assert [size for _, size in kernel.arguments_info] == [8, 1, 8]
    host, view = pinned(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=1, block=1), kernel, host, 3, 4.0)
    stream.sync()
    assert view[0] == 7


def test_images_that_are_cut_off():
    cubin = (
        Program('extern "C" __global__ void k() {}', "c++", {"arch": f"sm_{ftcuda.Device(0).arch}"})
        .compile("cubin")
        .code
    )
    for load, image in ((ObjectCode.from_cubin, cubin), (ObjectCode.from_fatbin, fatbin((2, 90, cubin)))):
        for length in (20, len(image) // 2, len(image) - 1):
            with pytest.raises(ValueError, match="cut off"):
                load(image[:length])


@simulated_only
def test_fatbins_that_the_simulated_driver_cannot_use(code):
    text = code.code
    compressed = bytearray(fatbin((1, 75, text)))
    compressed[16 + 16 : 16 + 20] = struct.pack("<I", 5)
    for image, words in (
        (bytes(compressed), "compressed"),
        (fatbin((2, 90, b"\x7fELF")), "no PTX"),
        (fatbin((1, 999, text)), "no PTX"),
    ):
        with pytest.raises(CUDAError, match=words):
            ObjectCode.from_fatbin(image).get_kernel("saxpy")


def test_images_from_files(tmp_path, code):
    """`code` is the path then, as in cuda.core."""
    path = tmp_path / "code.ptx"
    path.write_bytes(code.code)
    loader = ObjectCode.from_ptx if IS_SIMULATED else ObjectCode.from_cubin
    for given in (path, str(path)):
        of_file = loader(given)
        assert of_file.code == str(path) and type(of_file.code) is str and of_file.kernel_names == code.kernel_names
        assert of_file.get_kernel("saxpy").num_arguments == 4
    assert loader(bytearray(code.code)).code == code.code
    with pytest.raises(FileNotFoundError):
        loader(tmp_path / "nothing")
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
