"""Linking by nvJitLink: PTX, cubins and LTO IR become one image, from any number of threads."""

import io
import pickle
import threading
import warnings

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    ClosedError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerError,
    LinkerOptions,
    NotSupportedError,
    ObjectCode,
    Program,
    ProgramOptions,
    launch,
)
from ftcuda.testing import together
from ftcuda.typing import CompilerBackendType
from ftcuda.utils import InMemoryProgramCache

ONE = LaunchConfig(grid=1, block=1)
CALLER = "extern __device__ int twice(int); template <class T> __global__ void k(T* place, T value) { *place = twice(value); }"
CALLED = "__device__ int twice(int value) { return value * 2; }"
PLAIN = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry plain(.param .u64 place, .param .f32 value) { ret; }"


@pytest.fixture(autouse=True)
def needs_nvjitlink():
    if ftcuda.nvrtc_version() < (12, 3):
        with pytest.raises(LinkerError, match="cannot link: nvJitLink of CUDA 12.3 or newer was not found"):
            Linker.which_backend()
        pytest.skip("there is no nvJitLink of CUDA 11")
    assert Linker.which_backend() is CompilerBackendType.NVJITLINK


def part(source, target, **options):
    arch = "compute_80" if target == "ptx" else "sm_80"
    lto = {"link_time_optimization": True} if target == "ltoir" else {}
    names = ["k<int>"] if "template" in source else []
    return Program(source, "c++", {"arch": arch, "relocatable_device_code": True, **lto, **options}).compile(target, names)


def ltoir():
    return part(CALLER, "ltoir"), part(CALLED, "ltoir")


def stored(code, stream, name, *more):
    place = LegacyPinnedMemoryResource().allocate(4)
    launch(stream, ONE, code.get_kernel(name), place, *more)
    stream.sync()
    return int(np.frombuffer(place, np.int32)[0])


def test_parts_that_call_each_other_run(device, stream, ptx_fits):
    """LTO IR becomes PTX, which every driver loads; the names by expression stay."""
    linker = Linker(*ltoir(), options=LinkerOptions(link_time_optimization=True, arch="sm_80", name="both"))
    code = linker.link("ptx")
    assert code.name == "both" and code.code_type == "ptx" and list(code.symbol_mapping) == ["k<int>"]
    assert stored(code, stream, "k<int>", 21) == 42
    assert linker.link("PTX").code == code.code and linker.get_error_log() == ""


def test_cubins(device):
    """Of PTX and of LTO IR; which of their functions are kernels is known, and what these take."""
    for parts, options in (
        ((part(CALLER, "ptx"), part(CALLED, "ptx")), {}),
        (ltoir(), {"link_time_optimization": True}),
        ((part(CALLER, "cubin"), part(CALLED, "cubin")), {}),
        ((part(CALLER, "ptx"), part(CALLED, "ltoir")), {"link_time_optimization": True}),
    ):
        code = Linker(*parts, options={"arch": "sm_80", **options}).link("cubin")
        assert code.code_type == "cubin" and code.code.startswith(b"\x7fELF") and code.kernel_names == ["_Z1kIiEvPT_S0_"]


def test_what_kernels_of_a_cubin_take_is_told_by_its_parts(device):
    """A float is one, and no 4 bytes."""
    linked = Linker(ObjectCode.from_ptx(PLAIN), options={"arch": "sm_80"}).link("cubin")
    signatures = linked.__reduce__()[1][1]
    assert b".param .f32 value" in signatures
    there = pickle.loads(pickle.dumps(linked))
    assert there.code == linked.code and there.__reduce__()[1][1] == signatures


def test_what_does_not_link(device):
    linker = Linker(part(CALLER, "ptx"), options={"arch": "sm_80", "name": "half"})
    with pytest.raises(LinkerError, match="cannot link 'half' to cubin for sm_80: nvJitLinkComplete.*\n.*'_Z5twicei'") as caught:
        linker.link("cubin")
    assert caught.value.log == linker.get_error_log() and "_Z5twicei" in caught.value.log
    for image, kind in ((b"nonsense", "from_ptx"), (b"\x7fELF" + bytes(60), "from_cubin"), (b"\xedCN\x7fnonsense", "from_ltoir"),
                        (b"!<arch>\nnonsense", "from_library")):  # fmt: skip
        options = {"arch": "sm_80", "link_time_optimization": True}
        with pytest.raises(LinkerError, match="cannot link"):
            Linker(getattr(ObjectCode, kind)(image, name="wrong"), options=options).link("cubin")
    with pytest.raises(LinkerError, match=r"nvJitLinkAddData of 'default_program': NVJITLINK_ERROR_(.|\n)*LTO"):
        Linker(*ltoir(), options={"arch": "sm_80"}).link("cubin")
    with pytest.raises(LinkerError, match="to cubin for sm_19: nvJitLink"):
        Linker(ObjectCode.from_ptx(PLAIN), options={"arch": "sm_19"}).link("cubin")


def test_arguments(device):
    code = ObjectCode.from_ptx(PLAIN)
    lto = LinkerOptions(link_time_optimization=True)
    wrong = {
        "there is nothing to link": (ValueError, lambda: Linker()),
        "a linker links ObjectCode, not bytes": (TypeError, lambda: Linker(code, b"")),
        "options must be .*LinkerOptions": (TypeError, lambda: Linker(code, options=3)),
        "option arch must be compute_<CC> or sm_<CC>, not '80'": (ValueError, lambda: Linker(code, options={"arch": "80"})),
        "option arch must be compute_<CC> or sm_<CC>, not 'sm_1'": (ValueError, lambda: Linker(code, options={"arch": "sm_1"})),
        "option optimization_level must be 0 or 3, not 2": (ValueError, lambda: Linker(code, options={"optimization_level": 2})),
        "option debug must be a bool": (TypeError, lambda: Linker(code, options={"debug": 1})),
        "target_type must be 'cubin' or 'ptx', not 'ltoir'": (ValueError, lambda: Linker(code).link("ltoir")),
        "target_type must be 'cubin' or 'ptx', not None": (ValueError, lambda: Linker(code).link(None)),
        "PTX is made by link-time optimization": (ValueError, lambda: Linker(code).link("ptx")),
        "the option ptx is for what becomes PTX": (ValueError, lambda: Linker(code, options={"ptx": True}).link("cubin")),
        "a linker is constant": (TypeError, lambda: Linker.__init__(Linker(code), code)),
        "backend must be 'nvjitlink'": (ValueError, lambda: lto.as_bytes("driver")),
    }
    for message, (kind, call) in wrong.items():
        with pytest.raises(kind, match=message):
            call()


def test_options_are_those_of_nvjitlink(device):
    """Source: what cuda-core 1.2.2 makes of the same."""
    options = LinkerOptions(
        arch="sm_80", max_register_count=3, time=True, verbose=True, link_time_optimization=True, ptx=True, optimization_level=3,
        debug=True, lineinfo=True, ftz=True, prec_div=False, prec_sqrt=True, fma=False, kernels_used=["a", "b"], variables_used="c",
        optimize_unused_variables=True, ptxas_options=["-v", "-O1"], split_compile=0, split_compile_extended=2, no_cache=True,
    )  # fmt: skip
    assert options.as_bytes() == [
        b"-arch=sm_80", b"-maxrregcount=3", b"-time", b"-verbose", b"-lto", b"-ptx", b"-O3", b"-g", b"-lineinfo", b"-ftz=true",
        b"-prec-div=false", b"-prec-sqrt=true", b"-fma=false", b"-kernels-used=a", b"-kernels-used=b", b"-variables-used=c",
        b"-optimize-unused-variables", b"-Xptxas=-v", b"-Xptxas=-O1", b"-split-compile=0", b"-split-compile-extended=2", b"-no-cache",
    ]  # fmt: skip
    assert LinkerOptions(verbose=False).as_bytes("nvJitLink") == [f"-arch=sm_{device.arch}".encode()]
    with warnings.catch_warnings(), pytest.raises(DeprecationWarning, match="numba_debug means nothing to a linker"):
        warnings.simplefilter("error")
        LinkerOptions(numba_debug=True)


def test_options_mean_something(device):
    verbose = Linker(ObjectCode.from_ptx(PLAIN), options={"arch": "sm_80", "verbose": True})
    verbose.link("cubin")
    assert "Compiling entry function 'plain' for 'sm_80'" in verbose.get_info_log()
    sizes = [len(Linker(ObjectCode.from_ptx(PLAIN), options={"arch": "sm_80", "debug": each}).link("cubin").code) for each in (True, False)]
    assert sizes[0] > sizes[1]


def test_linkers_go_to_other_processes(device):
    linker = Linker(ObjectCode.from_ptx(PLAIN), options={"arch": "sm_80"})
    assert pickle.loads(pickle.dumps(linker)).link("cubin").code == linker.link("cubin").code


def test_threads_link_at_once(device):
    """Each has an image of its own; a `close` lets those under way end."""
    linker = Linker(part(CALLER, "ptx"), part(CALLED, "ptx"), options={"arch": "sm_80"})
    wanted = linker.link("cubin").code
    closing = threading.Barrier(5)

    def work(index):
        for _ in range(5):
            assert linker.link("cubin").code == wanted
        closing.wait(20)
        if index == 0:
            linker.close()
        for _ in range(5):
            try:
                assert linker.link("cubin").code == wanted
            except ClosedError:
                return "closed"
        return "linked"

    outcomes = together(5, work)
    assert outcomes[0] == "closed" and set(outcomes) <= {"closed", "linked"}
    assert linker.is_closed and repr(linker) == "<Linker '<default linker>', closed>"
    with pytest.raises(ClosedError, match="the linker was closed"):
        linker.link("cubin")
    linker.close()


def test_code_for_linkers_is_not_loaded(device):
    for code in (ltoir()[0], ObjectCode.from_library(b"!<arch>\n"), ObjectCode.from_object(b"\x7fELF" + bytes(60))):
        with pytest.raises(NotSupportedError, match="it is for a Linker, whose link\\(\\) makes what can be loaded"):
            code.get_kernel("k")
    again = ObjectCode.from_ltoir(ltoir()[0].code, name="again", symbol_mapping={"a": "b"})
    assert again.code_type == "ltoir" and again.name == "again" and again.symbol_mapping == {"a": "b"}
    for kind in ("ltoir", "library", "object"):
        with pytest.raises(ValueError, match=f"the image is not a {kind}"):
            getattr(ObjectCode, f"from_{kind}")(b"nonsense")


def test_programs_of_ptx(device, stream):
    """A cubin by nvJitLink; or, where the driver takes PTX, what they are."""
    log = io.StringIO()
    program = Program(PLAIN, "ptx", ProgramOptions(arch="sm_80", lineinfo=True, name="mine"))
    assert program.backend is CompilerBackendType.NVJITLINK
    code = program.compile("cubin", logs=log)
    assert code.code.startswith(b"\x7fELF") and code.kernel_names == ["plain"] and code.name == "mine"
    default = Program(PLAIN.decode(), "PTX").compile()
    assert default.kernel_names == ["plain"] and default.get_kernel("plain").arguments_info[1].size == 4
    cache = InMemoryProgramCache()
    first, again = (program.compile("cubin", cache=cache) for _ in range(2))
    assert first.code == again.code == code.code and len(cache) == 2
    assert Program(PLAIN, "ptx", {"arch": "sm_90"}).compile("cubin", cache=cache).code != code.code
    for message, call in {
        "PTX becomes a cubin, not": lambda: program.compile("ptx"),
        "name_expressions are names of C\\+\\+": lambda: program.compile("cubin", ["plain"]),
        "option std is for CUDA C\\+\\+, and the program is PTX": lambda: Program(PLAIN, "ptx", {"std": "c++17"}),
        "code_type must be 'c\\+\\+' or 'ptx'": lambda: Program(PLAIN, "nvvm"),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(LinkerError, match="cannot link 'default_program' to cubin"):
        Program(PLAIN.replace(b"ret", b"nonsense"), "ptx", {"arch": "sm_80"}).compile("cubin")


def test_nvjitlink_that_is_not_there(run_python, tmp_path):
    """Named by FTCUDA_NVJITLINK: a file that is missing, and a library without its functions."""
    said = run_python(
        f"""
import ctypes.util, os
import ftcuda

for path in ({str(tmp_path / "nowhere.so")!r}, {ftcuda.driver_info().path!r}):
    os.environ["FTCUDA_NVJITLINK"] = path
    try:
        ftcuda.Linker.which_backend()
    except ftcuda.LinkerError as error:
        print(path in str(error), "no function nvJitLinkVersion" in str(error), "or set FTCUDA_NVJITLINK" in str(error))
"""
    )
    assert said.split("\n")[:2] == ["True False True", "True True True"]
