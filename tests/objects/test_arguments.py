"""Values that would not arrive as they are: refused by launch, bind and set alike, and nothing is launched or changed."""

import ctypes
import math
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, Device, LaunchConfig, LegacyPinnedMemoryResource, launch
from tests.kernels import compile_code

ONE = LaunchConfig(grid=1, block=1)

# Every kernel stores its argument's bytes at `out`.
SOURCE = r"""
template <class T> __device__ void put(char* out, const T& value) {
    const char* from = reinterpret_cast<const char*>(&value);
    for (unsigned i = 0; i < sizeof(T); ++i) out[i] = from[i];
}
struct Pair { int a; int b; };
struct Complex { float x, y; };
#define KIND(name, type) extern "C" __global__ void name(type value, char* out) { put(out, value); }
KIND(boolean, bool) KIND(int32, int) KIND(int64, long long) KIND(float32, float) KIND(float64, double)
KIND(pointer, char*) KIND(pair, Pair) KIND(complex64, Complex)
"""


class BigPair(ctypes.BigEndianStructure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


class BigUnion(ctypes.BigEndianUnion):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_short))


class Holder(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", BigUnion))


class Heir(BigPair):
    _fields_ = ()


class Rows(ctypes.Structure):
    _fields_ = (("rows", ctypes.c_int.__ctype_be__ * 2),)


class LittlePair(ctypes.LittleEndianStructure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


class Bytes(ctypes.BigEndianStructure):  # single bytes have no order
    _fields_ = (("a", ctypes.c_ubyte * 8),)


class Colour(IntEnum):
    RED = 7


class Ordinal:
    def __index__(self):
        return 3


def structure(*fields):
    return np.zeros((), np.dtype(list(fields)))[()]


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in code.kernel_names}


@pytest.fixture
def ways(kernels, stream):
    """The three ways to give a kernel a value: each returns the bytes that arrived."""

    def read(out, submit, size):
        np.frombuffer(out, np.uint8)[:] = 0xEE
        submit()
        stream.sync()
        return bytes(out)[:size]

    def launched(name, value, size=8):
        out = LegacyPinnedMemoryResource().allocate(16)
        return read(out, lambda: launch(stream, ONE, kernels[name], value, out), size)

    def bound(name, value, size=8):
        out = LegacyPinnedMemoryResource().allocate(16)
        return read(out, lambda: kernels[name].bind(ONE, value, out).launch(stream), size)

    def set_later(name, value, size=8):
        out = LegacyPinnedMemoryResource().allocate(16)
        slot = kernels[name].arguments_info[0].size
        first = kernels[name].bind(ONE, bytes(slot), out)

        def submit():
            try:
                first.set(0, value)
            except Exception:
                assert first.arguments[0] == bytes(slot), "changed by what was refused"
                raise
            first.launch(stream)

        return read(out, submit, size)

    return launched, bound, set_later


OTHER_ORDER = {
    "array": ("int32", lambda: np.array(5, ">i4")),
    "float": ("float32", lambda: np.array(5, ">f4")),
    "ctypes": ("int32", lambda: ctypes.c_int.__ctype_be__(5)),
    "double": ("float64", lambda: ctypes.c_double.__ctype_be__(5)),
    "field": ("pair", lambda: structure(("a", "<i4"), ("b", ">i4"))),
    "field called >": ("pair", lambda: structure((">", "<i4"), ("b", ">i4"))),
    "nested": ("pair", lambda: structure(("x", [("a", "<i4"), ("b", ">i4")]))),
    "array in a field": ("pair", lambda: structure(("a", ">i4", (2,)))),
    "record": ("pair", lambda: np.rec.array([(1, 2)], dtype=[("a", ">i4"), ("b", ">i4")])[0]),
    "structure": ("pair", BigPair),
    "union": ("int32", BigUnion),
    "union in a structure": ("pair", Holder),
    "inherited": ("pair", Heir),
    "array in a structure": ("pair", Rows),
}


@pytest.mark.parametrize("name", OTHER_ORDER)
def test_the_other_byte_order_is_refused(ways, name):
    kernel, make = OTHER_ORDER[name]
    for way in ways:
        with pytest.raises(TypeError, match="argument 0 of .* of the other byte order"):
            way(kernel, make())


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        ("int32", np.array(5, "<i4")), ("int32", np.array(5, "=i4")), ("int32", ctypes.c_int.__ctype_le__(5)),
        ("pair", structure((">", "<i4"), ("!", "<i4"))), ("pair", LittlePair(1, 2)), ("pair", Bytes((1, 2, 3))),
        ("pair", structure(("a", ">i1", (8,)))),
    ],
)  # fmt: skip
def test_our_byte_order_arrives(ways, kernel, value):
    for way in ways:
        size = memoryview(value).nbytes
        assert way(kernel, value, size) == memoryview(value).tobytes()


NOT_NUMBERS = {
    "device": Device,
    "index": Ordinal,
    "stream": lambda: ftcuda.LEGACY_DEFAULT_STREAM,
    "event": lambda: Device().create_event(),
    "resource": LegacyPinnedMemoryResource,
    "configuration": lambda: ONE,
    "text": lambda: "5",
    "numpy text": lambda: np.str_("ab"),
    "date": lambda: np.datetime64(5, "s"),
    "object": lambda: np.array(None, object),
    "masked": lambda: np.ma.masked,
    "masked number": lambda: np.ma.array(5.0, mask=True),
    "python object": lambda: ctypes.py_object(5),
}


@pytest.mark.parametrize("name", NOT_NUMBERS)
@pytest.mark.parametrize("kernel", ["int64", "pointer", "float64", "pair", "int32"])
def test_what_is_no_number_is_not_made_one(ways, name, kernel):
    for way in ways:
        with pytest.raises((TypeError, ValueError), match="argument 0 of"):
            way(kernel, NOT_NUMBERS[name]())


def test_a_device_is_no_address():
    with pytest.raises(TypeError, match="must be an int or a handle"):
        Buffer.from_handle(Device(), 16)


def test_what_is_a_number_stays_one(ways):
    for way in ways:
        assert way("int32", Colour.RED, 4) == np.int32(7).tobytes()
        assert way("int32", True, 4) == np.int32(1).tobytes()
        assert way("boolean", True, 1) == way("boolean", np.True_, 1) == b"\1"
        assert way("float32", True, 4) == np.float32(1).tobytes()
        assert way("int64", np.int64(-5)) == np.int64(-5).tobytes()


def test_a_bool_is_no_address(ways):
    for way in ways:
        for kernel in ("pointer", "int64"):
            with pytest.raises(TypeError, match="argument 0 of .* cannot be a bool"):
                way(kernel, True)


LARGEST = float(np.finfo("f4").max)


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        ("float32", 1e300), ("float32", -1e300), ("float32", math.nextafter(LARGEST + 2.0**103, math.inf)), ("float32", 2**128),
        ("float32", 10**400), ("float64", 10**400), ("complex64", 1e300 + 0j), ("complex64", complex(0, -1e39)), ("int32", 2**32),
        ("int32", -(2**31) - 1), ("int64", 2**64), ("boolean", 256),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(ways, kernel, value):
    for way in ways:
        with pytest.raises(OverflowError, match=r"argument 0 of .* cannot hold"):
            way(kernel, value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, LARGEST, -LARGEST, 1e-300, 0.1, 2**24 + 1])
def test_floats_are_rounded_and_infinity_is_itself(ways, value):
    for way in ways:
        assert way("float32", value, 4) == np.float32(value).tobytes()
    inf = complex(math.inf, -math.inf)
    assert ways[0]("complex64", inf) == np.complex64(inf).tobytes()


def nearest(value):
    """Of the float32 below and the one above, by exact arithmetic; of two that are as near, the even one."""
    near = np.float32(min(float(value), LARGEST))
    with np.errstate(over="ignore"):
        candidates = {float(each) for each in (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))}
    even = lambda each: int(np.float32(each).view("u4")) % 2  # noqa: E731
    return min((abs(Fraction(each) - value), even(each), each) for each in candidates if math.isfinite(each))[2]


@pytest.mark.parametrize(
    "value",
    [
        2**60 + 2**36 + 1, 2**60 + 2**36, 2**60 + 3 * 2**36, -(2**60 + 2**36 + 1), 2**100 + 2**76 + 1, 2**100 + 2**76,
        2**128 - 2**103 - 1, 2**63 - 1, -(2**63), 2**64 + 1, 0, -1, 2**24 + 1,
    ],
)  # fmt: skip
def test_integers_are_rounded_once(ways, value):
    """Mutant: an integer that becomes a double before it becomes a float."""
    for way in ways:
        assert way("float32", value, 4) == np.float32(nearest(value)).tobytes()


def test_a_bool_parameter_is_a_byte(ways):
    """The driver does not tell it from an unsigned char: docs/guide/arrays.md says so."""
    for way in ways:
        assert way("boolean", 2, 1) == b"\2"


def test_an_array_without_dimensions_may_mean_two_things(ways):
    """Its number, or its memory: a parameter of eight bytes takes either."""
    for write in ways:
        for value in (np.array(5, "i8"), memoryview(np.array(5, "u8"))):
            with pytest.raises(TypeError, match=r"value\[\(\)\] for the number"):
                write("int64", value)
        assert write("int64", np.array(5, "i8")[()]) == (5).to_bytes(8, "little")
