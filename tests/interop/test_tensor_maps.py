"""Tensor maps: the driver's rules, by value to kernels, and tiles loaded by the hardware."""

import gc
import weakref
from contextlib import suppress

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    NotSupportedError,
    StridedMemoryView,
    TensorMapDataType,
    TensorMapDescriptor,
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
    launch,
)
from ftcuda.testing import together
from tests.kernels import IS_SIMULATED, compile_code

# Its threads would be given the same buffers and write them; the tests that race make threads of their own.
pytestmark = pytest.mark.thread_unsafe(reason="writes the buffers of its fixtures")

ROWS, COLUMNS = 64, 96
ONE = LaunchConfig(grid=1, block=1)

# The map's sixteen words, from any place in the parameter list and in both of the headers' alignments.
BY_VALUE = """
template <int alignment> struct alignas(alignment) Map { unsigned long long words[16]; };
template <int alignment> __device__ void copy(const Map<alignment>& map, unsigned long long* out) {
    for (int i = 0; i < 16; ++i) out[i] = map.words[i];
}
extern "C" __global__ void first(const __grid_constant__ Map<64> map, unsigned long long* out) { copy(map, out); }
extern "C" __global__ void middle(char a, const __grid_constant__ Map<64> map, unsigned long long* out) {
    copy(map, out); out[0] += a;
}
extern "C" __global__ void last(unsigned long long* out, short a, const __grid_constant__ Map<128> map) {
    copy(map, out); out[0] += a;
}
extern "C" __global__ void two(const __grid_constant__ Map<128> map, int a, const __grid_constant__ Map<64> other,
                               unsigned long long* out) {
    copy(map, out); copy(other, out + 16); out[0] += a;
}
"""

TILES = """
struct alignas(128) Map { unsigned long long words[16]; };
extern "C" __global__ void load(const __grid_constant__ Map map, float* out, int columns) {
    __shared__ alignas(128) float tile[8][32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned target = (unsigned)__cvta_generic_to_shared(tile), gate = (unsigned)__cvta_generic_to_shared(&barrier);
    int x = 32 * blockIdx.x, y = 8 * blockIdx.y;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(gate) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(gate), "r"(8 * 32 * 4) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" :: "r"(target), "l"(&map), "r"(x), "r"(y), "r"(gate) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 :: "r"(gate) : "memory");
    for (int row = 0; row < 8; ++row) out[(y + row) * columns + x + threadIdx.x] = tile[row][threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def supported(device, request):
    if not device.features.tensor_maps and "without" not in request.node.name:
        pytest.skip("the device or driver has no tensor maps")


@pytest.fixture
def tensor(device, stream):
    """A view of ROWS x COLUMNS floats."""
    buffer = device.allocate(4 * ROWS * COLUMNS, stream=stream)
    buffer.copy_from(np.arange(ROWS * COLUMNS, dtype="f4"), stream=stream)
    yield StridedMemoryView.from_buffer(buffer, (ROWS, COLUMNS), dtype="f4")
    buffer.close(stream)


@pytest.fixture(scope="module")
def by_value():
    code = compile_code(BY_VALUE)
    code.get_kernel("first")
    return code


@pytest.fixture
def words(device, stream):
    buffer = device.allocate(256, stream=stream)
    yield buffer
    buffer.close(stream)


def read(buffer, stream):
    host = np.empty(32, "u8")
    buffer.copy_to(host, stream=stream)
    return host


def test_maps_go_by_value(by_value, stream, tensor, words):
    one, other = tensor.as_tensor_map((8, 32)), tensor.as_tensor_map((16, 4))
    expected, second = np.frombuffer(bytes(one), "u8"), np.frombuffer(bytes(other), "u8")
    assert not (expected == second).all()
    for name, arguments in (
        ("first", (one, words)),
        ("middle", (0, one, words)),
        ("last", (words, 0, one)),
        ("two", (one, 0, other, words)),
    ):
        words.fill(0, stream=stream)
        launch(stream, ONE, by_value.get_kernel(name), *arguments)
        found = read(words, stream)
        assert (found[:16] == expected).all(), name
    assert (found[16:] == second).all()


def test_a_map_keeps_its_tensor_while_it_is_used(by_value, device, stream, words):
    """Many threads launch with one map while its buffer is closed: done, or refused."""
    kernel = by_value.get_kernel("first")
    for _ in range(20):
        buffer = device.allocate(4 * ROWS * COLUMNS, stream=stream)
        map = StridedMemoryView.from_buffer(buffer, (ROWS, COLUMNS), dtype="f4").as_tensor_map((8, 32))

        def use(index, map, buffer):
            if index == 0:
                buffer.close()
                return
            with suppress(ftcuda.ClosedError):
                launch(stream, ONE, kernel, map, words)

        together(4, use, map, buffer)


@pytest.fixture
def two(device, stream):
    """Two views of ROWS x COLUMNS floats, each full of its number."""
    buffers = [device.allocate(4 * ROWS * COLUMNS, stream=stream) for _ in range(2)]
    for number, buffer in enumerate(buffers):
        buffer.copy_from(np.full(ROWS * COLUMNS, number, "f4"), stream=stream)
    yield [StridedMemoryView.from_buffer(buffer, (ROWS, COLUMNS), dtype="f4") for buffer in buffers]
    for buffer in buffers:
        buffer.close(stream)


def test_replace_address_changes_the_map(by_value, stream, words, two):
    """In place, as a program written for cuda.core expects: what launches with the map has the other address."""
    first, second = two
    map, other = first.as_tensor_map((8, 32)), second.as_tensor_map((8, 32))
    before, hashed, names = bytes(map), hash(map), {map: "kept"}
    assert map.replace_address(second) is None
    assert bytes(map) == bytes(other) != before and map == other and hash(map) == hashed == hash(other)
    assert map.view is second and names[map] == "kept" and map.device == other.device
    launch(stream, ONE, by_value.get_kernel("first"), map, words)
    assert read(words, stream)[:16].tobytes() == bytes(other)
    map.replace_address(first)
    assert bytes(map) == before and map.view is first and map != other


def test_what_differs_in_more_than_the_address_is_refused(device, stream, two):
    first, second = two
    of = StridedMemoryView.from_buffer
    map = first.as_tensor_map((8, 32))
    before = bytes(map)
    longer = device.allocate(4 * ROWS * COLUMNS + 64, stream=stream)
    at = {
        offset: ftcuda.Buffer.from_handle(longer.handle + offset, 4 * ROWS * COLUMNS, owner=longer)
        for offset in (8, 16)
    }
    for wrong, error, message in (
        (of(second.exporting_obj, (COLUMNS, ROWS), dtype="f4"), ValueError, "only the address"),
        (of(second.exporting_obj, (ROWS, COLUMNS // 2), dtype="f8"), ValueError, "only the address"),
        (of(at[8], (ROWS, COLUMNS), dtype="f4"), ValueError, "multiple of 16"),
        (np.zeros((ROWS, COLUMNS), "f4"), ValueError, "memory that the device reaches"),
        (5, TypeError, "StridedMemoryView"),
    ):
        with pytest.raises(error, match=message):
            map.replace_address(wrong)
        assert bytes(map) == before and map.view is first
    map.replace_address(of(at[16], (ROWS, COLUMNS), dtype="f4"))
    assert bytes(map) != before
    map.replace_address(first)
    del at
    longer.close(stream)


def test_a_bound_launch_reads_the_map_of_the_moment(by_value, stream, words, two):
    """Bound as the object it is read by each launch; bound as bytes it stays what it was."""
    first, second = two
    map, other = first.as_tensor_map((8, 32)), second.as_tensor_map((8, 32))
    before = bytes(map)
    twice = by_value.get_kernel("two")
    live = twice.bind(ONE, map, 0, map, words)
    still = twice.bind(ONE, bytes(map), 0, map, words)
    map.replace_address(second)
    assert live.arguments[0] is map and live.arguments[2] is map and still.arguments[0] == before
    live.launch(stream)
    assert read(words, stream).tobytes() == 2 * bytes(other)
    still.launch(stream)
    assert read(words, stream).tobytes() == before + bytes(other)
    live.set(0, before)
    live.launch(stream)
    assert read(words, stream).tobytes() == before + bytes(other)
    second.exporting_obj.close()
    with pytest.raises(ftcuda.ClosedError):
        live.launch(stream)
    map.replace_address(first)
    live.launch(stream)


@pytest.mark.parametrize("bound", [False, True], ids=["launch", "bound"])
def test_a_replaced_tensor_lives_until_its_launches_are_done(by_value, device, stream, words, held_clock, bound):
    """Memory of another library. Mutant: let go of with the replacement, it is gone under the running kernel."""

    class Producer:
        def __init__(self, buffer):
            self.__cuda_array_interface__ = {
                "shape": (ROWS, COLUMNS),
                "typestr": "<f4",
                "data": (buffer.handle, False),
                "version": 3,
            }

    memories = [device.allocate(4 * ROWS * COLUMNS, stream=stream) for _ in range(2)]
    producers = [Producer(memory) for memory in memories]
    views = [StridedMemoryView.from_cuda_array_interface(producer, -1) for producer in producers]
    map, alive = views[0].as_tensor_map((8, 32)), [weakref.ref(producer) for producer in producers]
    submit = by_value.get_kernel("first").bind(ONE, map, words).launch if bound else None
    replacement = views[1]
    del producers, views
    stream.sync()
    with held_clock():
        if bound:
            submit(stream)
        else:
            launch(stream, ONE, by_value.get_kernel("first"), map, words)
        map.replace_address(replacement)
        gc.collect()
        assert alive[0]() is not None
    stream.sync()
    map.replace_address(replacement)  # lets go of what is done
    gc.collect()
    assert alive[0]() is None and alive[1]() is not None
    del map, submit, replacement
    gc.collect()
    assert alive[1]() is None
    for memory in memories:
        memory.close(stream)


def test_our_own_memory_is_freed_after_its_launches(by_value, device, stream, words, held_clock):
    """Mutant: the use of the buffer is not marked, and the simulated driver finds memory freed before its last use."""
    from ftcuda.testing import simulation

    maker = device.create_stream()
    buffers = [device.allocate(4 * ROWS * COLUMNS, stream=maker) for _ in range(2)]
    views = [StridedMemoryView.from_buffer(buffer, (ROWS, COLUMNS), dtype="f4") for buffer in buffers]
    map = views[0].as_tensor_map((8, 32))
    bound = by_value.get_kernel("first").bind(ONE, map, words)
    device.sync()
    for turn in range(2):
        with held_clock():
            if turn == 0:
                bound.launch(stream)
            else:
                launch(stream, ONE, bound.kernel, map, words)
            map.replace_address(views[1])
            buffers[0].close()
            assert not maker.is_done  # the free waits for the launch in the other stream
        device.sync()
        buffers.insert(0, device.allocate(4 * ROWS * COLUMNS, stream=maker))
        map.replace_address(StridedMemoryView.from_buffer(buffers[0], (ROWS, COLUMNS), dtype="f4"))
    assert simulation.violations() == []
    del map, bound, views
    for buffer in buffers:
        buffer.close()
    maker.close()


def test_launches_see_the_old_map_or_the_new_one(by_value, device, stream, two):
    """Half of both never; after the replacement the old one never, whether bound or not. Values are what kernels got."""
    first, second = two
    whole = [bytes(view.as_tensor_map((8, 32))) for view in two]
    map, kernel = first.as_tensor_map((8, 32)), by_value.get_kernel("two")
    turns, ended = 40, [0]

    def work(index):
        if index == 0:
            for turn in range(1, turns):
                map.replace_address(two[turn % 2])
                ended[0] = turn
            return
        mine = device.create_stream()
        with device.allocate(256, stream=mine) as out:
            bound = kernel.bind(ONE, map, 0, map, out) if index % 2 else None
            for _ in range(turns):
                if bound:
                    bound.launch(mine)
                else:
                    launch(mine, ONE, kernel, map, 0, map, out)
                found = read(out, mine).tobytes()
                assert found[:128] in whole and found[:128] == found[128:], "half of one map, half of another"
        mine.close()

    together(5, work)
    assert ended == [turns - 1]
    launch(stream, ONE, kernel, map, 0, map, out := device.allocate(256, stream=stream))
    assert read(out, stream).tobytes() == 2 * whole[(turns - 1) % 2]
    out.close(stream)


@pytest.mark.parametrize(
    ("data_type", "itemsize", "kind"),
    [
        ("u1", 1, TensorMapDataType.UINT8),
        ("i1", 1, TensorMapDataType.UINT8),
        ("i2", 2, TensorMapDataType.UINT16),
        ("i4", 4, TensorMapDataType.INT32),
        ("u8", 8, TensorMapDataType.UINT64),
        ("f2", 2, TensorMapDataType.FLOAT16),
        ("f8", 8, TensorMapDataType.FLOAT64),
        ("bfloat16", 2, TensorMapDataType.BFLOAT16),
        ("tfloat32", 4, TensorMapDataType.TFLOAT32),
        ("float8_e4m3fn", 1, TensorMapDataType.UINT8),
        (TensorMapDataType.FLOAT32_FTZ, 4, TensorMapDataType.FLOAT32_FTZ),
        (TensorMapDataType.TFLOAT32_FTZ, 4, TensorMapDataType.TFLOAT32_FTZ),
    ],
)
def test_element_types(tensor, data_type, itemsize, kind):
    view = StridedMemoryView.from_buffer(tensor.exporting_obj, (64, 64), itemsize=itemsize) if itemsize < 8 else (
        StridedMemoryView.from_buffer(tensor.exporting_obj, (32, 64), itemsize=itemsize)
    )  # fmt: skip
    map = view.as_tensor_map((8, 16), data_type=data_type)
    assert map == view.as_tensor_map(options={"box_dim": (8, 16), "data_type": kind})


def test_bytes_are_taken_as_elements(tensor):
    """As cuda.core takes a raw buffer's. Mutant: the map has as many elements as the buffer has bytes."""
    raw = StridedMemoryView.from_buffer(tensor.exporting_obj, (ROWS, 4 * COLUMNS), dtype="u1")
    assert raw.as_tensor_map((8, 16), data_type="f4") == tensor.as_tensor_map((8, 16))
    flat = StridedMemoryView.from_any_interface(tensor.exporting_obj, stream_ptr=-1)
    assert flat.shape == (4 * ROWS * COLUMNS,)
    as_floats = StridedMemoryView.from_buffer(tensor.exporting_obj, (ROWS * COLUMNS,), dtype="f4")
    for kind in ("f4", TensorMapDataType.FLOAT32):
        assert flat.as_tensor_map((16,), data_type=kind) == as_floats.as_tensor_map((16,))
    with pytest.raises(ValueError, match="only bytes are taken as elements of another size"):
        tensor.as_tensor_map((8, 16), data_type="f8")
    uneven = StridedMemoryView.from_buffer(tensor.exporting_obj, (ROWS, 30), strides=(32, 1), dtype="u1")
    with pytest.raises(ValueError, match="their number must be a multiple of 4"):
        uneven.as_tensor_map((8, 4), data_type="f4")


def test_types_of_ml_dtypes(tensor):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="no ml_dtypes for this interpreter")
    view = StridedMemoryView.from_buffer(tensor.exporting_obj, (64, 64), dtype=ml_dtypes.bfloat16)
    assert view.as_tensor_map((8, 8)) == view.as_tensor_map((8, 8), data_type="bfloat16")


def test_options(tensor):
    plain = tensor.as_tensor_map((8, 8))
    seen = {bytes(plain)}
    for option in (
        {"swizzle": TensorMapSwizzle.SWIZZLE_32B},
        {"swizzle": TensorMapSwizzle.SWIZZLE_128B},
        {"l2_promotion": TensorMapL2Promotion.L2_128B},
        {"oob_fill": TensorMapOOBFill.NAN_REQUEST_ZERO_FMA},
        {"element_strides": (2, 1)},
    ):
        map = tensor.as_tensor_map((8, 8), **option)
        assert map == tensor.as_tensor_map(options=TensorMapDescriptorOptions((8, 8), **option))
        seen.add(bytes(map))
    assert len(seen) == 6
    assert plain.device == tensor.exporting_obj.device and plain.view is tensor


def test_im2col(device, stream, tensor):
    view = StridedMemoryView.from_buffer(tensor.exporting_obj, (4, 6, 8, 32), dtype="f4")
    map = TensorMapDescriptor.from_im2col(view, (-1, -1), (-1, -1), 32, 16)
    assert map != TensorMapDescriptor.from_im2col(view, (-1, -1), (0, -1), 32, 16)
    line = StridedMemoryView.from_buffer(tensor.exporting_obj, (4, 48, 32), dtype="f4")
    assert TensorMapDescriptor.from_im2col(line, (-100,), (100,), 16, 1024).view is line
    for arguments, message in (
        (((-129, 0), (0, 0), 32, 16), "from -128 to 127"),
        (((0, 0), (0, 128), 32, 16), "from -128 to 127"),
        (((0,), (0, 0), 32, 16), "must have 2 numbers"),
        (((0, 0), (0, 0), 257, 16), "channels_per_pixel must be from 1 to 256"),
        (((0, 0), (0, 0), 32, 1025), "pixels_per_column must be from 1 to 1024"),
    ):
        with pytest.raises(ValueError, match=message):
            TensorMapDescriptor.from_im2col(view, *arguments)
    with pytest.raises(ValueError, match="3 to 5 dimensions, not 2"):
        TensorMapDescriptor.from_im2col(tensor, (), (), 32, 16)


BAD = {
    "no box": ({}, TypeError, "give box_dim"),
    "both": ({"box_dim": (8, 8), "options": {"box_dim": (8, 8)}}, TypeError, "not both"),
    "box rank": ({"box_dim": (8,)}, ValueError, "2 numbers"),
    "box zero": ({"box_dim": (0, 8)}, ValueError, "from 1 to 256"),
    "box large": ({"box_dim": (257, 8)}, ValueError, "not 257"),
    "box float": ({"box_dim": (8.0, 8)}, TypeError, "hold ints"),
    "box bytes": ({"box_dim": (8, 3)}, ValueError, "multiple of 16 bytes in the last dimension, not 12"),
    "element strides": (
        {"box_dim": (8, 8), "element_strides": (9, 1)},
        ValueError,
        "from 1 to 8 in each dimension, not 9",
    ),
    "element strides rank": ({"box_dim": (8, 8), "element_strides": (1,)}, ValueError, "2 numbers"),
    "swizzle": (
        {"box_dim": (8, 16), "swizzle": TensorMapSwizzle.SWIZZLE_32B},
        ValueError,
        "at most 32 bytes .* not 64",
    ),
    "swizzle kind": ({"box_dim": (8, 8), "swizzle": 1}, TypeError, "must be a TensorMapSwizzle"),
    "interleave rank": (
        {"box_dim": (8, 8), "interleave": TensorMapInterleave.INTERLEAVE_16B},
        ValueError,
        "at least 3",
    ),
    "fill": (
        {"box_dim": (8, 8), "data_type": "i4", "oob_fill": TensorMapOOBFill.NAN_REQUEST_ZERO_FMA},
        ValueError,
        "not for INT32",
    ),
    "type": ({"box_dim": (8, 8), "data_type": "c8"}, TypeError, "no type for elements"),
    "type size": ({"box_dim": (8, 8), "data_type": "f8"}, ValueError, "FLOAT64 has 8 bytes"),
    "type name": ({"box_dim": (8, 8), "data_type": "nothing"}, TypeError, "nothing"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options(tensor, name):
    arguments, error, message = BAD[name]
    with pytest.raises(error, match=message):
        tensor.as_tensor_map(**arguments)


def test_bad_tensors(device, stream, tensor):
    buffer = tensor.exporting_obj
    for shape, strides, dtype, message in (
        ((64, 6), None, "u1", "multiples of 16 bytes .* not 6"),
        ((16, 16), (32, 2), "f4", "its stride must be 4 bytes, not 8"),
        ((1, 1, 1, 1, 1, 16), None, "f4", "1 to 5 dimensions, not 6"),
        ((), None, "f4", "1 to 5 dimensions, not 0"),
        ((0, 16), None, "f4", "from 1 to 2\\*\\*31, not 0"),
    ):
        view = StridedMemoryView.from_buffer(buffer, shape, strides, dtype=dtype)
        with pytest.raises(ValueError, match=message):
            view.as_tensor_map((16,) * len(shape))
    shifted = ftcuda.Buffer.from_handle(buffer.handle + 4, 1024, owner=buffer)
    with pytest.raises(ValueError, match="address must be a multiple of 16"):
        StridedMemoryView(shifted, -1).as_tensor_map((16,))
    with pytest.raises(ValueError, match="needs memory that the device reaches"):
        StridedMemoryView.from_array_interface(np.zeros((8, 8), "f4")).as_tensor_map((8, 8))
    with pytest.raises(TypeError, match="made by"):
        TensorMapDescriptor()


def test_maps_fit_parameters_of_128_bytes_only(by_value, saxpy, stream, tensor, words):
    map = tensor.as_tensor_map((8, 32))
    with pytest.raises(TypeError, match="cannot be a tensor map"):
        launch(stream, ONE, by_value.get_kernel("first"), map, map)
    with pytest.raises(TypeError, match="cannot be an array"):
        launch(stream, ONE, by_value.get_kernel("first"), tensor, words)


def test_pinned_memory_has_maps_too():
    with LegacyPinnedMemoryResource().allocate(4096) as buffer:
        view = StridedMemoryView.from_buffer(buffer, (32, 32), dtype="f4")
        assert view.as_tensor_map((8, 32)).view is view


def test_a_device_without_them(run_python):
    if not IS_SIMULATED:
        pytest.skip("needs a device or driver without tensor maps")
    program = (
        "import ftcuda\n"
        "with ftcuda.Device().allocate(4096) as buffer:\n"
        "    view = ftcuda.StridedMemoryView.from_buffer(buffer, (32, 32), dtype='f4')\n"
        "    try: view.as_tensor_map((8, 32))\n"
        "    except ftcuda.NotSupportedError as error: print(error)\n"
    )
    assert NotSupportedError.__name__ in program
    assert "this device has 8.0" in run_python(program, FTCUDA_SIM_CC="80", FTCUDA_SIM_PROFILE="12.4")
    assert "this one is of 11.8" in run_python(program, FTCUDA_SIM_PROFILE="11.8")


def test_tiles_from_sixteen_threads(device, stream, tensor):
    kernel = compile_code(TILES).get_kernel("load")
    config = LaunchConfig(grid=(COLUMNS // 32, ROWS // 8), block=32)
    map = tensor.as_tensor_map((8, 32))
    stream.sync()

    def work(index):
        mine = device.create_stream()
        with device.allocate(4 * ROWS * COLUMNS, stream=mine) as out:
            for _ in range(20):
                out.fill(0, stream=mine)
                launch(mine, config, kernel, map, out, COLUMNS)
                host = np.empty(ROWS * COLUMNS, "f4")
                out.copy_to(host, stream=mine)
                assert (host == np.arange(ROWS * COLUMNS)).all()
        mine.close()

    together(16, work)
