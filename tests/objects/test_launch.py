import copy
import ctypes
import gc
import inspect
import pickle
import sys
import weakref

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, CooperativeLaunchError, CUDAError, LaunchConfig, LegacyPinnedMemoryResource, launch
from ftcuda.testing import together
from tests.kernels import compile_code

ONE = LaunchConfig(grid=1, block=1)

# Every kernel stores its argument's bytes at `out`.
KINDS = r"""
template <class T> __device__ void put(char* out, const T& value) {
    const char* from = reinterpret_cast<const char*>(&value);
    for (unsigned i = 0; i < sizeof(T); ++i) out[i] = from[i];
}
struct Pair { char c; double d; };
struct alignas(64) Wide { unsigned long long v[16]; };
struct Half { unsigned short bits; };
#define KIND(name, type) extern "C" __global__ void name(type value, char* out) { put(out, value); }
KIND(int8, signed char) KIND(uint8, unsigned char) KIND(int16, short) KIND(int32, int) KIND(uint32, unsigned)
KIND(int64, long long) KIND(uint64, unsigned long long) KIND(float32, float) KIND(float64, double) KIND(boolean, bool)
KIND(pair, Pair) KIND(wide, Wide) KIND(half_like, Half) KIND(float4_like, float4)
extern "C" __global__ void between(char a, Wide wide, short b, char* out) { put(out, wide); out[128] = a; out[129] = b; }
"""


class Pair(ctypes.Structure):
    _fields_ = (("c", ctypes.c_char), ("d", ctypes.c_double))


PAIR = np.dtype([("c", "S1"), ("d", "f8")], align=True)


@pytest.fixture(scope="module")
def kinds():
    kinds = compile_code(KINDS)
    kinds.get_kernel("int8")  # loads it, so that no test finds a new module
    return kinds


@pytest.fixture
def stored(kinds, stream):
    """Launches a kernel with one argument and returns the bytes that arrived."""

    def store(kernel, *arguments, size):
        out = LegacyPinnedMemoryResource().allocate(256)
        launch(stream, ONE, kinds.get_kernel(kernel), *arguments, out)
        stream.sync()
        return bytes(out)[:size]

    return store


@pytest.mark.parametrize(
    ("kernel", "argument", "expected"),
    [
        ("int8", -3, np.int8(-3)), ("uint8", 255, np.uint8(255)), ("int16", -300, np.int16(-300)), ("int32", -(2**31), np.int32(-(2**31))),
        ("uint32", 2**32 - 1, np.uint32(2**32 - 1)), ("int64", -(2**63), np.int64(-(2**63))), ("uint64", 2**64 - 1, np.uint64(2**64 - 1)),
        ("float32", 1.5, np.float32(1.5)), ("float32", 3, np.float32(3)), ("float64", 0.1, np.float64(0.1)), ("float64", 7, np.float64(7)),
        ("boolean", True, np.bool_(True)), ("int32", True, np.int32(1)), ("int32", np.int32(7), np.int32(7)), ("uint64", np.uint64(9), np.uint64(9)),
        ("float32", np.float32(2.5), np.float32(2.5)), ("float64", np.float64(2.5), np.float64(2.5)), ("boolean", np.True_, np.bool_(True)),
        ("int32", ctypes.c_int(-9), np.int32(-9)), ("float32", ctypes.c_float(0.5), np.float32(0.5)), ("uint8", ctypes.c_ubyte(9), np.uint8(9)),
        ("half_like", np.float16(1.5), np.float16(1.5)), ("int32", b"\1\2\3\4", np.uint32(0x04030201)),
        ("float4_like", 1 + 2j, np.complex128(1 + 2j)),
    ],
)  # fmt: skip
def test_arguments_arrive(stored, kernel, argument, expected):
    assert stored(kernel, argument, size=expected.nbytes) == expected.tobytes()


def test_structures(stored):
    expected = np.array((b"x", 2.5), PAIR)
    assert stored("pair", expected[()], size=16)[8:] == expected.tobytes()[8:]
    assert stored("pair", Pair(b"x", 2.5), size=16)[:1] == b"x"
    wide = np.arange(16, dtype=np.uint64).tobytes()
    assert stored("wide", wide, size=128) == wide


def test_a_wide_argument_between_others(kinds, stream):
    """Its offset depends on the architecture: alignment beyond 16 applies to the place in the constant bank."""
    out = LegacyPinnedMemoryResource().allocate(256)
    wide = np.arange(100, 116, dtype=np.uint64).tobytes()
    launch(stream, ONE, kinds.get_kernel("between"), 5, wide, 6, out)
    stream.sync()
    assert bytes(out)[:130] == wide + bytes([5, 6])


@pytest.mark.parametrize(
    ("kernel", "argument", "error"),
    [
        ("int8", 256, OverflowError), ("int8", -129, OverflowError), ("int32", 2**32, OverflowError), ("uint64", 2**64, OverflowError),
        ("int64", -(2**63) - 1, OverflowError), ("int32", 1.5, TypeError), ("int32", np.float32(1), TypeError), ("float32", np.int32(1), TypeError),
        ("float32", np.float64(1), ValueError), ("int32", np.int64(1), ValueError), ("pair", 5, TypeError), ("pair", b"short", ValueError),
        ("half_like", 1.5, TypeError), ("int32", "5", TypeError), ("int32", None, TypeError), ("uint64", [1], TypeError),
        ("int32", np.zeros(1, np.int32), TypeError), ("float32", 1j, TypeError), ("int32", ctypes.c_float(1), TypeError),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(kinds, stream, kernel, argument, error):
    out = LegacyPinnedMemoryResource().allocate(256)
    view = np.frombuffer(out, np.uint8)
    view[:] = 0
    with pytest.raises(error, match=rf"argument 0 of <Kernel {kernel}>"):
        launch(stream, ONE, kinds.get_kernel(kernel), argument, out)
    stream.sync()
    assert not view.any()


def test_buffers_of_every_kind_are_pointers_only(saxpy, stream, device):
    buffer = device.allocate(4, stream=stream)
    with pytest.raises(TypeError, match="cannot be a Buffer"):
        launch(stream, ONE, saxpy, buffer, 1.0, buffer, buffer)
    launch(stream, ONE, saxpy, 0, 1.0, buffer.handle, Buffer.from_handle(buffer.handle, 4))
    stream.sync()


@pytest.mark.parametrize("count", [0, 3, 5])
def test_wrong_count(saxpy, stream, count):
    with pytest.raises(TypeError, match=f"takes 4 arguments, {count} were given"):
        launch(stream, ONE, saxpy, *[0] * count)


def test_wrong_objects(saxpy, stream):
    with pytest.raises(TypeError, match="config"):
        launch(stream, 1, saxpy)
    with pytest.raises(TypeError, match="kernel"):
        launch(stream, ONE, 1)
    with pytest.raises(TypeError, match="stream"):
        launch(1, ONE, saxpy, 0, 1.0, 0, 0)


@pytest.mark.parametrize(
    ("options", "error"),
    [({}, ValueError), ({"grid": 1}, ValueError), ({"grid": 0, "block": 1}, ValueError), ({"grid": (1, 1, 1, 1), "block": 1}, ValueError),
     ({"grid": 1.5, "block": 1}, ValueError), ({"grid": (1, "2"), "block": 1}, TypeError), ({"grid": 1, "block": 1, "shmem_size": -1}, ValueError),
     ({"grid": 2**31, "block": 1}, ValueError), ({"grid": 2**30, "cluster": 4, "block": 1}, ValueError)],
)  # fmt: skip
def test_bad_configurations(options, error):
    with pytest.raises(error):
        LaunchConfig(**options)


@pytest.mark.parametrize("shape", [[1, 2], [3], []])
def test_arrays_are_no_shapes(shape):
    with pytest.raises(ValueError, match="block must be an int or a tuple of one to three ints, not array"):
        LaunchConfig(grid=1, block=np.array(shape, np.int32))


def test_arguments_by_name(saxpy, stream):
    """The first three may be given by name, as long as no argument of the kernel follows them."""
    with pytest.raises(TypeError, match="takes 4 arguments, 0 were given"):
        launch(kernel=saxpy, stream=stream, config=ONE)
    with pytest.raises(TypeError, match="launch.. takes at least 3 positional arguments"):
        launch(stream, config=ONE)
    with pytest.raises(TypeError, match="launch.. got multiple values for keyword argument 'stream'"):
        launch(stream, ONE, saxpy, stream=stream)
    with pytest.raises(TypeError, match="unexpected keyword argument 'grids'"):
        launch(stream, ONE, saxpy, grids=1)


def test_launch_describes_itself():
    assert str(inspect.signature(launch)) == "(stream, config, kernel, *kernel_args)"
    assert launch.__module__ == "ftcuda._objects.launch.launch" and launch.__doc__.startswith("Submits a kernel")


def test_no_call_counts_references_to_launch():
    """Mutant: without its immortality all threads write one count."""
    if sys._is_gil_enabled():
        pytest.skip("with the GIL counting is cheap")
    before = sys.getrefcount(launch)
    references = [launch] * 100
    assert sys.getrefcount(launch) == before, references


def test_configurations_compare():
    config = LaunchConfig(grid=(2, 3), block=32, shmem_size=16)
    assert config == LaunchConfig(grid=(2, 3, 1), block=(32,), shmem_size=16)
    assert hash(config) == hash(LaunchConfig(grid=[2, 3], block=32, shmem_size=16))
    assert config != ONE and "grid=(2, 3, 1)" in repr(config)
    clusters = LaunchConfig(grid=2, cluster=(4, 2), block=32, is_cooperative=True)
    assert pickle.loads(pickle.dumps(clusters)) == clusters == copy.deepcopy(clusters)


def test_a_block_too_large_is_refused_at_the_call(stream, code):
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        launch(stream, LaunchConfig(grid=1, block=2048), code.get_kernel("empty"))
    launch(stream, ONE, code.get_kernel("empty"))
    stream.sync()


def test_dynamic_shared_memory_beyond_48_kib(device, stream, pinned):
    source = 'extern "C" __global__ void k(int* out, int n) { extern __shared__ int s[]; for (int i = 0; i < n; ++i) s[i] = i; *out = s[n - 1]; }'
    kernel = compile_code(source).get_kernel("k")
    size = 64 * 1024
    host, view = pinned(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=1, block=1, shmem_size=size), kernel, host, size // 4)
    stream.sync()
    assert view[0] == size // 4 - 1
    assert kernel.attributes.max_dynamic_shared_size_bytes >= size


def test_cooperative_launch(device, stream, pinned):
    """Blocks count each other in: without all of them resident this would never end."""
    source = """extern "C" __global__ void meet(volatile unsigned* arrived, int* out) {
        if (threadIdx.x == 0) { atomicAdd((unsigned*)arrived, 1u); while (*arrived < gridDim.x) {} }
        __syncthreads();
        if (threadIdx.x == 0 && blockIdx.x == 0) *out = *arrived;
    }"""
    kernel = compile_code(source).get_kernel("meet")
    arrived = device.allocate(4, stream=stream)
    arrived.fill(0, stream=stream)
    host, view = pinned(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=6, block=64, is_cooperative=True), kernel, arrived, host)
    stream.sync()
    assert view[0] == 6


def test_grid_groups(stream, pinned):
    """Grid synchronisation as cooperative_groups.h does it: every block reads what the others wrote before."""
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void rotate(unsigned* cells, unsigned rounds) {
        auto grid = cooperative_groups::this_grid();
        for (unsigned round = 0; round < rounds; ++round) {
            unsigned next = cells[(blockIdx.x + 1) % gridDim.x];
            grid.sync();
            if (threadIdx.x == 0) cells[blockIdx.x] = next + 100;
            grid.sync();
        }
    }"""
    kernel = compile_code(source).get_kernel("rotate")
    cells, view = pinned(np.arange(5, dtype=np.uint32))
    launch(stream, LaunchConfig(grid=5, block=64, is_cooperative=True), kernel, cells, 3)
    stream.sync()
    assert list(view) == [303, 304, 300, 301, 302]


def test_many_arguments(stream, pinned):
    """More than what fits on the stack."""
    count = 200
    parameters = ", ".join(f"double a{i}" for i in range(count))
    total = " + ".join(f"a{i}" for i in range(count))
    kernel = compile_code(f'extern "C" __global__ void k(double* out, {parameters}) {{ *out = {total}; }}').get_kernel(
        "k"
    )
    host, view = pinned(np.zeros(1))
    launch(stream, ONE, kernel, host, *range(count))
    stream.sync()
    assert view[0] == sum(range(count))


@pytest.mark.parametrize("size", [4096 - 8, 20_000, 32_764 - 12])
def test_large_structures(stream, pinned, size):
    """Up to 32,764 bytes of parameters, where compiler and driver allow (CUDA 12.1 and up)."""
    if size > 4096 and ftcuda.nvrtc_version() < (12, 1):
        pytest.skip(reason="this NVRTC allows 4096 bytes of parameters")
    source = """struct Big { char v[SIZE]; };
    extern "C" __global__ void k(char* out, Big big) { out[0] = big.v[0]; out[1] = big.v[SIZE / 2]; out[2] = big.v[SIZE - 1]; }"""
    kernel = compile_code(source, define_macro=("SIZE", str(size))).get_kernel("k")
    value = bytearray(size)
    value[0], value[size // 2], value[-1] = 1, 2, 3
    host, view = pinned(np.zeros(3, np.uint8))
    launch(stream, ONE, kernel, host, bytes(value))
    stream.sync()
    assert list(view) == [1, 2, 3]


def test_clusters_where_there_are_none(device, stream, code):
    if device.features.cluster_launch:
        launch(stream, LaunchConfig(grid=2, cluster=2, block=32), code.get_kernel("empty"))
        stream.sync()
        return
    with pytest.raises(CUDAError):
        launch(stream, LaunchConfig(grid=2, cluster=2, block=32), code.get_kernel("empty"))


def test_launches_from_many_threads_on_one_stream(device, stream, code, pinned):
    increment = code.get_kernel("increment")
    counter = device.allocate(4, stream=stream)
    counter.fill(0, stream=stream)

    def work(index):
        for _ in range(200):
            launch(stream, ONE, increment, counter)

    together(8, work)
    host, view = pinned(np.zeros(1, np.int32))
    counter.copy_to(host, stream=stream)
    stream.sync()
    assert view[0] == 1600


def test_shared_weights_from_many_streams(device, saxpy, pinned):
    n = 256
    home = device.create_stream()
    shared, _ = pinned(np.arange(n, dtype=np.float32))
    weights = device.allocate(4 * n, stream=home)
    weights.copy_from(shared, stream=home)
    home.sync()
    config = LaunchConfig(grid=1, block=n)

    def work(index):
        stream = device.create_stream()
        out = device.allocate(4 * n, stream=stream)
        out.fill(0, stream=stream)
        for _ in range(20):
            launch(stream, config, saxpy, n, 1.0, weights, out)
        host = LegacyPinnedMemoryResource().allocate(4 * n)
        out.copy_to(host, stream=stream)
        stream.sync()
        stream.close()
        return np.frombuffer(host, np.float32).copy()

    for result in together(8, work):
        assert np.array_equal(result, 20 * np.arange(n))
    weights.close()
    home.close()


def test_a_cooperative_grid_that_does_not_fit(device, stream, code):
    """A ValueError, as in cuda.core. Mutant: with the driver's error alone `except ValueError` misses it."""
    kernel = code.get_kernel("empty")
    most = kernel.occupancy.max_active_blocks_per_multiprocessor(1024, 0) * device.properties.multiprocessor_count
    launch(stream, LaunchConfig(grid=most, block=1024, is_cooperative=True), kernel)
    config = LaunchConfig(grid=most + 1, block=1024, is_cooperative=True)
    for submit in (lambda: launch(stream, config, kernel), lambda: kernel.bind(config).launch(stream)):
        with pytest.raises(ValueError, match="fit on the device") as caught:
            submit()
        assert isinstance(caught.value, CooperativeLaunchError) and caught.value.code == 720
    stream.sync()


class Index:
    """An integer by its protocol alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize("number", [np.int64(2), np.uint8(2), np.array(2), Index(2)])
def test_any_integer_is_a_dimension(number):
    config = LaunchConfig(grid=number, block=(number, 4), cluster=None, shmem_size=number)
    assert config == LaunchConfig(grid=2, block=(2, 4), shmem_size=2)
    assert {type(each) for each in (*config.grid, *config.block, config.shmem_size)} == {int}
    assert LaunchConfig(grid=[number], block=1, cluster=number).cluster == (2, 1, 1)


@pytest.mark.parametrize("wrong", [True, np.True_, 4.0, np.float64(4), np.array([2, 3]), "4", (), (1, 2, 3, 4), 0, np.int64(-1)])
def test_what_is_no_dimension(wrong):
    with pytest.raises((TypeError, ValueError)):
        LaunchConfig(grid=wrong, block=1)


def test_configurations_are_compared_and_watched():
    config = LaunchConfig(grid=1, block=2, shmem_size=None)
    assert config == LaunchConfig(grid=(1, 1, 1), block=2) and hash(config) == hash(LaunchConfig(grid=1, block=2))
    assert config != LaunchConfig(grid=1, block=3) and config != 5 and config.shmem_size == 0
    seen = weakref.ref(config)
    assert seen() is config and weakref.WeakValueDictionary(one=config)["one"] is config
    del config
    gc.collect()
    assert seen() is None
