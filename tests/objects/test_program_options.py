"""The options of programs: the words that NVRTC gets, and that it understands them."""

import io
import os
import pickle
import re
from dataclasses import fields
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import ftcuda
from ftcuda import NVRTCError, Program, ProgramOptions
from ftcuda.testing import together
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType
from tests.conftest import simulated_only

NVRTC = ftcuda.nvrtc_version()
SOURCE = 'extern "C" __global__ void k(int* p) { *p = 1; }'


class Word(str, Enum):  # noqa: UP042 - not a StrEnum: what this is about
    """Whose members format as their names."""

    CXX20 = "c++20"
    SM = "sm_80"
    NAME = "a.cu"
    MACRO = "A"


# By field: a value, NVRTC's words for it (as cuda.core 1.2.2 gives them), and the NVRTC that knows the option first.
WORDS = [
    ("relocatable_device_code", True, ["--relocatable-device-code=true"], (11, 2)),
    ("relocatable_device_code", False, ["--relocatable-device-code=false"], (11, 2)),
    ("extensible_whole_program", True, ["--extensible-whole-program"], (11, 2)),
    ("extensible_whole_program", False, [], (11, 2)),
    ("debug", True, ["--device-debug"], (11, 2)),
    ("debug", False, [], (11, 2)),
    ("lineinfo", True, ["--generate-line-info"], (11, 2)),
    ("device_code_optimize", True, ["--dopt=on"], (11, 8)),
    ("device_code_optimize", False, [], (11, 8)),
    ("ptxas_options", "-v", ["--ptxas-options=-v"], (11, 2)),
    ("ptxas_options", ("-v", "-O2"), ["--ptxas-options=-v", "--ptxas-options=-O2"], (11, 2)),
    ("max_register_count", 32, ["--maxrregcount=32"], (11, 2)),
    ("max_register_count", np.int64(32), ["--maxrregcount=32"], (11, 2)),
    ("ftz", True, ["--ftz=true"], (11, 2)),
    ("prec_sqrt", False, ["--prec-sqrt=false"], (11, 2)),
    ("prec_div", False, ["--prec-div=false"], (11, 2)),
    ("fma", False, ["--fmad=false"], (11, 2)),
    ("use_fast_math", True, ["--use_fast_math"], (11, 2)),
    ("extra_device_vectorization", True, ["--extra-device-vectorization"], (11, 2)),
    ("gen_opt_lto", True, ["--gen-opt-lto"], (12, 0)),
    ("define_macro", "A", ["--define-macro=A"], (11, 2)),
    ("define_macro", ("A", "1"), ["--define-macro=A=1"], (11, 2)),
    ("define_macro", (("A", "1"), "B"), ["--define-macro=A=1", "--define-macro=B"], (11, 2)),
    ("define_macro", [("A", "1"), "B"], ["--define-macro=A=1", "--define-macro=B"], (11, 2)),
    ("define_macro", Word.MACRO, ["--define-macro=A"], (11, 2)),
    ("undefine_macro", ("A", "B"), ["--undefine-macro=A", "--undefine-macro=B"], (11, 2)),
    ("include_path", "/inc", ["--include-path=/inc"], (11, 2)),
    ("include_path", ("/inc",), ["--include-path=/inc"], (11, 2)),
    ("include_path", ["/inc", "/b"], ["--include-path=/inc", "--include-path=/b"], (11, 2)),
    ("include_path", {"/inc": 0}.keys(), ["--include-path=/inc"], (11, 2)),
    ("include_path", Path("/inc"), ["--include-path=/inc"], (11, 2)),
    ("include_path", (Path("/inc"), "/b"), ["--include-path=/inc", "--include-path=/b"], (11, 2)),
    ("no_source_include", True, ["--no-source-include"], (11, 8)),
    ("std", "c++14", ["--std=c++14"], (11, 2)),
    ("std", Word.CXX20, ["--std=c++20"], (12, 0)),
    ("builtin_move_forward", False, ["--builtin-move-forward=false"], (11, 2)),
    ("builtin_initializer_list", True, ["--builtin-initializer-list=true"], (11, 2)),
    ("disable_warnings", True, ["--disable-warnings"], (11, 2)),
    ("device_as_default_execution_space", True, ["--device-as-default-execution-space"], (11, 2)),
    ("device_int128", True, ["--device-int128"], (11, 5)),
    ("optimization_info", "inline", ["--optimization-info=inline"], (11, 8)),
    ("no_display_error_number", True, ["--no-display-error-number"], (11, 8)),
    ("diag_error", 177, ["--diag-error=177"], (11, 8)),
    ("diag_error", "177,550", ["--diag-error=177,550"], (11, 8)),
    ("diag_suppress", [177, 550], ["--diag-suppress=177", "--diag-suppress=550"], (11, 8)),
    ("diag_warn", (177, 550), ["--diag-warn=177", "--diag-warn=550"], (11, 8)),
    ("brief_diagnostics", True, ["--brief-diagnostics=true"], (12, 0)),
    ("brief_diagnostics", False, ["--brief-diagnostics=false"], (12, 0)),
    ("time", "-", ["--time=-"], (12, 0)),
    ("split_compile", 0, ["--split-compile=0"], (12, 0)),
    ("fdevice_syntax_only", True, ["--fdevice-syntax-only"], (12, 0)),
    ("minimal", True, ["--minimal"], (12, 0)),
    ("no_cache", True, ["--no-cache"], (12, 0)),
    ("no_cache", False, [], (11, 2)),
    ("frandom_seed", "seed", ["--frandom-seed=seed"], (12, 0)),
    ("frandom_seed", 5, ["--frandom-seed=5"], (12, 0)),
    ("ofast_compile", "max", ["--Ofast-compile=max"], (12, 0)),
    ("pch_verbose", True, ["--pch-verbose=true"], (12, 8)),
    ("pch_messages", False, ["--pch-messages=false"], (12, 8)),
    ("instantiate_templates_in_pch", True, ["--instantiate-templates-in-pch=true"], (12, 8)),
]
# Those that need a file, another architecture or another target to compile; tests of their own below do.
WORDS_ONLY = [
    ("link_time_optimization", True, ["--dlink-time-opt"]),
    ("restrict", True, ["--restrict"]),
    ("pre_include", ("a.h", Path("b.h")), ["--pre-include=a.h", "--pre-include=b.h"]),
    ("fdevice_time_trace", Path("/dev/null"), ["--fdevice-time-trace=/dev/null"]),
    ("device_float128", True, ["--device-float128"]),
    ("pch", True, ["--pch"]),
    ("pch", False, []),
    ("create_pch", "a.pch", ["--create-pch=a.pch"]),
    ("use_pch", Path("a.pch"), ["--use-pch=a.pch"]),
    ("pch_dir", Path("/d"), ["--pch-dir=/d"]),
    ("numba_debug", True, ["--numba-debug"]),
    ("use_bundled_headers", False, []),
    ("time", Path("/a/t.csv"), ["--time=/a/t.csv"]),
    ("extra_sources", None, []),
    ("use_libdevice", False, []),
]


def test_there_is_a_word_for_each_field():
    tested = {name for name, *_ in WORDS} | {name for name, *_ in WORDS_ONLY}
    assert {field.name for field in fields(ProgramOptions)} == tested | {"name", "arch", "use_bundled_headers"}


@pytest.mark.parametrize(("name", "value", "words"), [row[:3] for row in WORDS] + WORDS_ONLY)
def test_words(name, value, words):
    options = ProgramOptions(arch="sm_80", **{name: value})
    assert options.as_bytes("nvrtc") == [b"-arch=sm_80", *(os.fsencode(word) for word in words)]


@pytest.mark.parametrize(("name", "value", "words", "since"), WORDS)
def test_nvrtc_understands_them(name, value, words, since):
    """Or says which one it does not, where it is older than the option."""
    log = io.StringIO()
    program = Program(SOURCE, "c++", ProgramOptions(**{"arch": "compute_80", name: value}))
    if since <= NVRTC:
        assert ".entry k(" in program.compile("ptx", logs=log).code.decode() or name == "fdevice_syntax_only"
        return
    with pytest.raises(NVRTCError, match=re.escape(words[0].split("=")[0])):
        program.compile("ptx")


def test_options_of_all_fields_are_in_one_order():
    """cuda.core's, since a later option may undo an earlier one."""
    options = ProgramOptions(arch="sm_80", include_path="/i", undefine_macro="A", define_macro="A", debug=True, fma=True)
    assert b" ".join(options.as_bytes("NVRTC")) == (
        b"-arch=sm_80 --device-debug --fmad=true --define-macro=A --undefine-macro=A --include-path=/i"
    )


def test_backends_and_targets(device):
    options = ProgramOptions()
    wanted = [f"-arch=sm_{device.arch}".encode()]
    for backend in ("nvrtc", "NVRTC", CompilerBackendType.NVRTC):
        for target in (None, "ptx", "CUBIN", ObjectCodeFormatType.LTOIR):
            assert options.as_bytes(backend, target) == wanted
    for backend in ("nvvm", CompilerBackendType.NVVM, "driver"):
        with pytest.raises(ValueError, match="backend"):
            options.as_bytes(backend)
    with pytest.raises(ValueError, match="elf"):
        options.as_bytes("nvrtc", "elf")


def test_the_default_name():
    assert ProgramOptions(name=None).name == "default_program"
    with pytest.raises(NVRTCError, match=r"'a\.cu'"):
        Program("error", "c++", {"name": Word.NAME, "arch": Word.SM}).compile("ptx")


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("debug", 3, TypeError),
        ("debug", "yes", TypeError),
        ("time", True, TypeError),
        ("max_register_count", True, TypeError),
        ("max_register_count", 1.5, TypeError),
        ("include_path", b"/inc", TypeError),
        ("include_path", 5, TypeError),
        ("include_path", iter(["/inc"]), TypeError),
        ("include_path", {"/inc": "/b"}, TypeError),
        ("include_path", ["/inc", None], TypeError),
        ("include_path", "/a\0b", ValueError),
        ("define_macro", {"A": "1"}, RuntimeError),
        ("define_macro", [("A", 1)], RuntimeError),
        ("define_macro", ("A", "B", "C"), RuntimeError),
        ("define_macro", ("A",), RuntimeError),
        ("define_macro", "A\0B", ValueError),
        ("define_macro", ("A", "1\0002"), ValueError),
        ("define_macro", ["A=1\0"], ValueError),
        ("ptxas_options", "", ValueError),
        ("ptxas_options", [""], ValueError),
        ("fdevice_time_trace", "/no such folder/trace", ValueError),
        ("fdevice_time_trace", "/", ValueError),
        ("arch", "90", ValueError),
        ("arch", 90, TypeError),
        ("name", 5, TypeError),
        ("extra_sources", [("a", "b")], ValueError),
        ("use_libdevice", True, ValueError),
    ],
)
def test_what_means_nothing_is_named(field, value, error):
    if field == "define_macro":
        ProgramOptions(**{field: value})  # as in cuda.core, an error where they are used
    else:
        with pytest.raises(error, match=f"option {field} "):
            ProgramOptions(**{field: value})
    later = ProgramOptions()
    setattr(later, field, value)
    with pytest.raises(error, match=f"option {field} "):
        Program(SOURCE, "c++", later)


def test_unknown_options_are_named_by_nvrtc():
    for words in ("-bogus", "--bogus=1"):
        with pytest.raises(NVRTCError, match="bogus"):
            Program(SOURCE, "c++", {"ptxas_options": words}).compile("cubin")


def test_a_program_does_not_change_with_its_options():
    options = ProgramOptions(define_macro=["A"], arch="compute_80")
    program = Program("#ifndef A\n#error\n#endif\n#ifdef B\n#error\n#endif\n" + SOURCE, "c++", options)
    options.define_macro.append("B")
    options.define_macro = None
    options.arch = "sm_1"
    assert program.compile("ptx").kernel_names == ["k"]


def test_headers_are_found_through_tuples_and_paths(tmp_path):
    """Mutant: a tuple as one value is a folder that does not exist."""
    (tmp_path / "one.h").write_text("#define ONE 1\n")
    (tmp_path / "two.h").write_text("#define TWO 2\n")
    source = '#include "one.h"\nextern "C" __global__ void k(int* p) { *p = ONE + TWO; }'
    for folders in ((str(tmp_path),), [tmp_path], tmp_path, ("/nowhere", tmp_path)):
        options = ProgramOptions(include_path=folders, pre_include=(tmp_path / "two.h",), arch="compute_80")
        assert Program(source, "c++", options).compile("ptx").kernel_names == ["k"]


def compiled(source=SOURCE, target="ptx", **options):
    """The code and the log."""
    log = io.StringIO()
    code = Program(source, "c++", ProgramOptions(**{"arch": "sm_80", **options})).compile(target, logs=log)
    return code.code, log.getvalue()


UNUSED = 'extern "C" __global__ void k() { int unused; }'
SLOW = 'extern "C" __global__ void k(float* x) { x[0] = sqrtf(x[1]) / x[2] + x[3] * x[4]; }'


def test_what_the_options_do():
    """Where there is something to see."""
    assert b".target sm_80, debug" in compiled(debug=True)[0]
    assert b".loc" in compiled(lineinfo=True)[0] and b".loc" not in compiled()[0]
    assert b".ftz" in compiled(SLOW, ftz=True)[0] and b".ftz" not in compiled(SLOW, ftz=False)[0]
    assert b"sqrt.approx" in compiled(SLOW, prec_sqrt=False)[0] and b"sqrt.rn" in compiled(SLOW, prec_sqrt=True)[0]
    assert b"div.full" in compiled(SLOW, prec_div=False)[0] and b"div.rn" in compiled(SLOW, prec_div=True)[0]
    assert b"fma.rn" in compiled(SLOW, fma=True)[0] and b"fma.rn" not in compiled(SLOW, fma=False)[0]
    assert b"div.approx.ftz" in compiled(SLOW, use_fast_math=True)[0]
    uncached = {"no_cache": True} if NVRTC >= (12, 0) else {}  # code out of NVRTC's cache comes without a log
    assert "Compiling entry function" in compiled(target="cubin", ptxas_options=["-v"], **uncached)[1]
    assert "unused" in compiled(UNUSED)[1] and not compiled(UNUSED, disable_warnings=True)[1]
    assert "#177" in compiled(UNUSED)[1] and "#177" not in compiled(UNUSED, no_display_error_number=True)[1]
    assert not compiled(UNUSED, diag_suppress=177)[1]
    with pytest.raises(NVRTCError, match='error: variable "unused"'):
        compiled(UNUSED, diag_error=(177,))
    with pytest.raises(NVRTCError, match="execution space|host"):
        compiled('int f() { return 1; } extern "C" __global__ void k(int* p) { *p = f(); }')
    space = 'int f() { return 1; } extern "C" __global__ void k(int* p) { *p = f(); }'
    assert compiled(space, device_as_default_execution_space=True)[0]
    wide = 'extern "C" __global__ void k(__int128* p) { *p = 1; }'
    assert compiled(wide, device_int128=True)[0]
    assert compiled(relocatable_device_code=True, target="cubin")[0] != compiled(target="cubin")[0]


@pytest.mark.skipif(NVRTC < (12, 0), reason="options of CUDA 12")
def test_what_the_options_of_cuda_12_do(tmp_path):
    assert "Frontend" in compiled(time="-")[1]
    compiled(time=tmp_path / "times.csv")
    assert "Frontend" in (tmp_path / "times.csv").read_text()
    assert b".entry" not in compiled(fdevice_syntax_only=True)[0]
    assert compiled(SLOW, ofast_compile="max", target="cubin")[0] != compiled(SLOW, target="cubin")[0]
    assert "^" in compiled(UNUSED)[1] and "^" not in compiled(UNUSED, brief_diagnostics=True)[1]
    code = Program(SOURCE, "c++", {"link_time_optimization": True, "gen_opt_lto": True, "arch": "sm_80"}).compile("ltoir")
    assert code.code_type == "ltoir" and len(code.code) > 1000 and code.kernel_names == []
    with pytest.raises(ftcuda.NotSupportedError, match="it is for a Linker"):
        code.get_kernel("k")
    with pytest.raises(ftcuda.NotSupportedError, match="it is for a Linker"):
        code.get_global("k")


@pytest.mark.skipif(NVRTC < (13, 5), reason="NVRTC 11.8, 12.9 and 13.0 make the same code with restrict and without")
def test_restrict(run_python):
    """In a process of its own: NVRTC 13.5 takes all later programs of the process for restrict too."""
    said = run_python("""
from ftcuda import Program
source = 'extern "C" __global__ void k(int* a, const int* b) { a[0] = b[0]; a[1] = b[0]; }'
for restrict in (False, True):
    code = Program(source, "c++", {"arch": "sm_80", "restrict": restrict}).compile("ptx").code
    print(code.count(b"ld.global"))
""")
    assert said.split() == ["2", "1"]


@pytest.mark.parametrize("target", ["ptx", "cubin"])
def test_no_image_is_an_error(target):
    """Mutant: NVRTC says success and gives no PTX at all where the options make LTO IR."""
    with pytest.raises(NVRTCError, match="nothing was made"):
        compiled(link_time_optimization=True, target=target)
    if NVRTC >= (12, 0):
        with pytest.raises(NVRTCError, match="nothing was made"):
            compiled(target="ltoir")


@pytest.mark.skipif(NVRTC < (13, 5), reason="options that NVRTC 13.5 knows, and 13.0 does not")
def test_what_the_options_of_cuda_13_do(tmp_path, monkeypatch):
    compiled(fdevice_time_trace=tmp_path / "trace", target="cubin")
    assert any("traceEvents" in path.read_text() for path in tmp_path.glob("trace*"))
    assert compiled("typedef __float128 f; " + SOURCE, device_float128=True, arch="sm_100")[0]
    if NVRTC >= (13, 5):
        assert compiled(debug=True, numba_debug=True)[0]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ProgramOptions(arch="sm_80", use_bundled_headers=True)
    folder = tmp_path / "ftcuda" / "nvrtc-bundled-headers"
    assert options.as_bytes("nvrtc") == [b"-arch=sm_80", f"--use-bundled-headers={folder}".encode()]
    Program("#include <cuda_fp16.h>\n" + SOURCE, "c++", options).compile("ptx")
    assert (folder / "cuda_fp16.h").exists()


@pytest.mark.skipif(NVRTC < (12, 8), reason="precompiled headers came with CUDA 12.8")
def test_precompiled_headers(tmp_path):
    (tmp_path / "big.h").write_text("template <class T> struct Pair { T a, b; };\n")
    source = '#include "big.h"\nextern "C" __global__ void k(int* p) { Pair<int> x{1, 2}; *p = x.a; }'

    def program(**options):
        return Program(source, "c++", {"arch": "sm_80", "include_path": tmp_path, **options})

    making = program(create_pch=tmp_path / "big.pch")
    assert making.pch_status is None
    making.compile("ptx")
    assert making.pch_status is PCHStatusType.CREATED and (tmp_path / "big.pch").exists()
    log = io.StringIO()
    using = program(use_pch=tmp_path / "big.pch", pch_messages=True)
    assert using.compile("ptx", logs=log).kernel_names == ["k"] and using.pch_status is None
    assert "using precompiled header" in log.getvalue()
    broken = program(pch=True, pch_dir=tmp_path / "nowhere")
    with pytest.raises(NVRTCError, match="nowhere"):
        broken.compile("ptx")
    assert broken.pch_status is not PCHStatusType.CREATED


@pytest.mark.skipif(NVRTC < (12, 8), reason="precompiled headers came with CUDA 12.8")
def test_the_heap_for_headers_grows(run_python, tmp_path):
    """Mutant: without a second try the status is "failed". In a process of its own, whose heap is made small."""
    said = run_python(f"""
import ctypes
import pathlib
import ftcuda
from ftcuda._objects.code.program import find_nvrtc
ftcuda.nvrtc_version()
nvrtc = ctypes.CDLL(find_nvrtc()[0])
size = ctypes.c_size_t(1 << 16)
assert nvrtc.nvrtcSetPCHHeapSize(size) == 0
text = "\\n".join(f"struct S{{i}} {{{{ int a[{{i}} + 1]; __device__ void f() {{{{ a[0] = {{i}}; }}}} }}}};" for i in range(3000))
pathlib.Path({str(tmp_path / "large.h")!r}).write_text(text)
program = ftcuda.Program('#include "large.h"\\nextern "C" __global__ void k() {{}}', "c++", {{
    "arch": "sm_80", "include_path": {str(tmp_path)!r}, "create_pch": {str(tmp_path / "large.pch")!r}}})
program.compile("ptx")
now = ctypes.c_size_t()
nvrtc.nvrtcGetPCHHeapSize(ctypes.byref(now))
print(program.pch_status, now.value > 1 << 16)
""")
    assert said.strip() == "created True"


def test_options_and_programs_are_pickled():
    options = ProgramOptions(define_macro=[("A", "1")], include_path=(Path("/inc"),), arch="compute_80")
    assert pickle.loads(pickle.dumps(options)) == options
    program = pickle.loads(pickle.dumps(Program(SOURCE, "c++", options)))
    assert program.compile("ptx").kernel_names == ["k"]


def test_what_the_driver_takes(ptx_fits, stream, pinned, device):
    """Without a target: code that the loaded driver runs, whichever that is."""
    host, view = pinned(np.zeros(1, np.int32))
    program = Program(SOURCE, "c++")
    codes = together(4, lambda index: program.compile())
    assert len({code.code_type for code in codes}) == 1
    assert codes[0].code_type == ("ptx" if ftcuda.driver_info().simulated else "cubin")
    ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), codes[0].get_kernel("k"), host)
    stream.sync()
    assert view[0] == 1
    assert Program(SOURCE, "c++", {"arch": "compute_80"}).compile().code_type is ObjectCodeFormatType.PTX
    exact = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile()
    assert exact.code_type == codes[0].code_type and exact.get_kernel("k")


@simulated_only
def test_the_question_for_cubins_may_fail(run_python):
    """Mutant: memory that was short is no answer. In a process of its own, which has not asked yet."""
    said = run_python("""
import ftcuda
from ftcuda.testing import faults, simulation
program = ftcuda.Program('extern "C" __global__ void k() {}', "c++")
ftcuda.Device(0).sync()
with faults.failing("cuModuleLoadDataEx", 2) as fault:
    try: print(program.compile())
    except ftcuda.OutOfMemoryError as error: print(error.entry_point, fault.hits)
with faults.failing("cuModuleLoadDataEx", 200): print(program.compile().code_type)
with faults.failing("cuModuleLoadDataEx", 2) as fault: print(program.compile().code_type, fault.hits)
print(simulation.live()["module"], simulation.violations())
""")
    assert said.split("\n")[:4] == ["cuModuleLoadDataEx 1", "ptx", "ptx 0", "0 []"]
