"""Texts with a NUL character: refused, where C would take what is before it for all."""

import os

import pytest

from ftcuda import ObjectCode, Program, ProgramOptions
from tests.kernels import compile_code

SOURCE = """
__device__ int counter;
extern "C" __global__ void k(int* x) { *x = counter; }
template <typename T> __global__ void scale(T* x) { *x *= 2; }
"""


@pytest.fixture(scope="module")
def code():
    made = compile_code(SOURCE, target="ptx")
    made.get_kernel("k")  # loads it, so that no test finds a new module
    return made


@pytest.mark.parametrize("name", ["k\0other", "k\0", b"k\0other", "\0k"])
def test_a_kernel_s_name(code, name):
    assert code.get_kernel("k").num_arguments == 1
    with pytest.raises(ValueError, match="the name of a kernel must not contain a NUL"):
        code.get_kernel(name)


@pytest.mark.parametrize("name", ["counter\0other", "counter\0", b"counter\0x"])
def test_a_variable_s_name(code, name):
    with pytest.raises(ValueError, match="the name of a variable must not contain a NUL"):
        code.get_global(name)


def test_a_variable_s_name_may_be_bytes():
    mapped = ObjectCode.from_ptx(
        b".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 counter;\n"
    )
    with mapped.get_global(b"counter") as variable:
        assert variable.size == 4
    with pytest.raises(TypeError, match="name must be str or bytes, not int"):
        mapped.get_global(5)


def test_what_a_name_is_mapped_to(code):
    mapped = ObjectCode.from_ptx(code.code, symbol_mapping={"mine": "k\0other", "good": "k"})
    assert mapped.get_kernel("good") is not None
    with pytest.raises(ValueError, match="NUL"):
        mapped.get_kernel("mine")
    with pytest.raises(ValueError, match="NUL"):
        mapped.get_global("mine")


def test_a_name_expression():
    program = Program(SOURCE, "c++")
    assert "scale<int>" in program.compile("ptx", name_expressions=["scale<int>"]).symbol_mapping
    with pytest.raises(ValueError, match="a name expression must not contain a NUL"):
        program.compile("ptx", name_expressions=["scale<int>\0<float>"])


@pytest.mark.parametrize("code", ["int a;\0int b;", b"int a;\0", bytearray(b"\0")])
def test_a_source(code):
    with pytest.raises(ValueError, match="code must not contain a NUL"):
        Program(code, "c++")


def test_ptx_ends_at_its_end(code):
    text = bytes(code.code).rstrip(b"\0")
    assert ObjectCode.from_ptx(text + b"\0").get_kernel("k").num_arguments == 1  # as NVRTC gives it
    with pytest.raises(ValueError, match="PTX must not contain a NUL"):
        ObjectCode.from_ptx(text + b"\0" + text)


@pytest.mark.parametrize("value", ["a\0b", ["good", "a\0b"]])
@pytest.mark.parametrize("name", ["name", "std", "include_path", "pre_include", "undefine_macro", "ptxas_options"])
def test_options(name, value):
    if isinstance(value, list) and name in ("name", "std"):
        value = value[1]
    with pytest.raises(ValueError, match=f"option {name} must not contain a NUL"):
        ProgramOptions(**{name: value})


@pytest.mark.parametrize("value", ["a\0b", ("a", "b\0c"), ("a\0b", "c"), ["good", ("a", "b\0c")]])
def test_macros(value):
    with pytest.raises(ValueError, match="option define_macro must not contain a NUL"):
        Program(SOURCE, "c++", ProgramOptions(define_macro=value))


def test_the_file_of_an_image(tmp_path):
    with pytest.raises(ValueError, match="null byte|null character"):
        ObjectCode.from_ptx(os.fspath(tmp_path) + "/a\0b")
