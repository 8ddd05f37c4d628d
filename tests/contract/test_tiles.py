"""Tiles of tensors, copied by tensor maps: the same on the simulated driver and on a GPU, and against numpy."""

import itertools

import numpy as np
import pytest

from ftcuda import CUDAError, LaunchConfig, ObjectCode, StridedMemoryView, launch
from tests.conftest import needs_nvrtc, simulated_only
from tests.kernels import IS_SIMULATED, compile_code

HEAD = """
struct alignas(128) Map { unsigned long long words[16]; };
__device__ unsigned shared_address(const void* place) { return (unsigned)__cvta_generic_to_shared(place); }
"""
# The coordinates stand innermost first, as PTX wants them; `late` is whether a second phase of the barrier is over, which is wrong.
LOAD = """extern "C" __global__ void load_RANK(const __grid_constant__ Map map, unsigned char* out, int* late, unsigned bytes,
                                             int a, int b, int c, int d, int e) {
    extern __shared__ __align__(128) unsigned char tile[];
    __shared__ unsigned long long barrier;
    unsigned gate = shared_address(&barrier);
    for (unsigned at = threadIdx.x; at < bytes; at += blockDim.x) tile[at] = 0x5a;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(gate) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(gate), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.RANKd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {PLACES}], [%2];"
            :: "r"(shared_address(tile)), "l"(&map), "r"(gate), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");
    }
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 :: "r"(gate) : "memory");
    for (unsigned at = threadIdx.x; at < bytes; at += blockDim.x) out[at] = tile[at];
    if (threadIdx.x == 0)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 1; selp.s32 %0, 1, 0, p; }"
                     : "=r"(*late) : "r"(gate) : "memory");
}
"""
STORE = """extern "C" __global__ void store_RANK(const __grid_constant__ Map map, const unsigned char* in, unsigned bytes,
                                              int a, int b, int c, int d, int e) {
    extern __shared__ __align__(128) unsigned char tile[];
    for (unsigned at = threadIdx.x; at < bytes; at += blockDim.x) tile[at] = in[at];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.RANKd.global.shared::cta.tile.bulk_group [%0, {PLACES}], [%1];"
            :: "l"(&map), "r"(shared_address(tile)), "r"(0), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""

# Type, shape of the tensor, shape of a tile, and where tiles begin: inside, over each edge, far away. The innermost coordinate is
# a multiple of 16 bytes.
CASES = {
    1: ("f4", (100,), (32,), [(0,), (-8,), (80,), (4,), (-40,), (2**31 - 36,)]),
    2: ("f4", (10, 12), (4, 8), [(0, 0), (-2, 4), (8, 8), (3, -4), (-3, -4), (20, 0)]),
    3: ("u1", (4, 5, 32), (2, 3, 32), [(0, 0, 0), (-1, 3, 16), (3, -2, -16), (1, 1, 16)]),
    4: ("f2", (3, 4, 5, 16), (2, 2, 2, 16), [(0, 0, 0, 0), (2, 3, 4, 8), (-1, -1, -1, -8), (1, 2, 3, 0)]),
    5: ("f8", (2, 3, 3, 4, 6), (2, 2, 1, 2, 4), [(0, 0, 0, 0, 0), (1, 2, 2, 3, 4), (-1, -1, 0, -1, -2), (0, 1, 2, 1, 2)]),
}  # fmt: skip
PLACES = [(rank, place) for rank in CASES for place in CASES[rank][3]]


def named(places):
    return pytest.mark.parametrize(("rank", "place"), [pytest.param(*both, id="{}d-{}".format(*both)) for both in places])


def instantiated(source, rank):
    return source.replace("RANK", str(rank)).replace("PLACES", ", ".join(f"%{number}" for number in range(3, 3 + rank)))


@pytest.fixture(scope="module")
def kernels(device):
    if not device.features.tensor_maps:
        pytest.skip("the device or driver has no tensor maps")
    needs_nvrtc((12, 0), "copies of tiles")
    source = HEAD + "".join(instantiated(source, rank) for rank in CASES for source in (LOAD, STORE))
    code = compile_code(source, arch=f"sm_{90 if IS_SIMULATED else device.arch}", std="c++17")
    code.get_kernel("load_1")  # loads it, so that no test finds a new module
    return code


def elements(dtype, shape, first=1):
    return (np.arange(first, first + np.prod(shape)) % 251).astype(dtype).reshape(shape)


def indices(tensor, tile, place):
    """Of each element of the tile that lies in the tensor: its index in the tile and in the tensor."""
    for index in itertools.product(*map(range, tile)):
        there = tuple(begin + step for begin, step in zip(place, index, strict=True))
        if all(0 <= at < extent for at, extent in zip(there, tensor.shape, strict=True)):
            yield index, there


class Tensor:
    """An array in device memory."""

    def __init__(self, device, stream, array):
        self.stream, self.array = stream, array
        self.buffer = device.allocate(array.nbytes, stream=stream)
        self.buffer.copy_from(np.ascontiguousarray(array), stream=stream)
        self.view = StridedMemoryView.from_buffer(self.buffer, array.shape, dtype=array.dtype)

    def read(self):
        host = np.empty_like(self.array)
        self.buffer.copy_to(host, stream=self.stream)
        self.stream.sync()
        return host


@pytest.fixture
def tensors(device, stream):
    made = []

    def make(array):
        tensor = Tensor(device, stream, array)
        made.append(tensor)  # the last of them may be another thread's
        return tensor

    yield make
    for tensor in made:
        tensor.buffer.close(stream)


def coordinates(place):
    return (*reversed(place), *(0,) * (5 - len(place)))


@named(PLACES)
def test_load(kernels, stream, tensors, rank, place):
    """Zeros where the tensor ends; the barrier counts them too, exactly once."""
    dtype, shape, tile, _ = CASES[rank]
    tensor = tensors(elements(dtype, shape))
    expected = np.zeros(tile, dtype)
    for there, here in indices(tensor.array, tile, place):
        expected[there] = tensor.array[here]
    out, late = tensors(np.full(tile, 99, dtype)), tensors(np.full(1, 7, np.int32))
    config = LaunchConfig(grid=1, block=32, shmem_size=expected.nbytes + 128)
    map = tensor.view.as_tensor_map(tile)
    launch(stream, config, kernels.get_kernel(f"load_{rank}"), map, out.buffer, late.buffer, expected.nbytes, *coordinates(place))
    assert (out.read() == expected).all()
    assert late.read()[0] == 0


@named((rank, place) for rank, place in PLACES if min(place) >= 0)
def test_store(kernels, stream, tensors, rank, place):
    """What lies outside of the tensor is left out, and nothing else is touched."""
    dtype, shape, tile, _ = CASES[rank]
    tensor, source = tensors(elements(dtype, shape)), tensors(elements(dtype, tile, first=100))
    expected = tensor.array.copy()
    for there, here in indices(expected, tile, place):
        expected[here] = source.array[there]
    config = LaunchConfig(grid=1, block=32, shmem_size=source.array.nbytes + 128)
    map = tensor.view.as_tensor_map(tile)
    launch(stream, config, kernels.get_kernel(f"store_{rank}"), map, source.buffer, source.array.nbytes, *coordinates(place))
    assert (tensor.read() == expected).all()


def test_rows_that_lie_apart(device, kernels, stream, tensors):
    """A map of every second row of a tensor, and of its first columns."""
    tensor = tensors(elements("i4", (12, 16)))
    view = StridedMemoryView.from_buffer(tensor.buffer, (6, 10), strides=(32, 1), dtype="i4")
    part = tensor.array[::2, :10]
    expected = np.zeros((4, 8), "i4")
    for there, here in indices(part, (4, 8), (3, 4)):
        expected[there] = part[here]
    out, late = tensors(np.full((4, 8), 99, "i4")), tensors(np.full(1, 7, np.int32))
    config = LaunchConfig(grid=1, block=32, shmem_size=expected.nbytes + 128)
    map = view.as_tensor_map((4, 8))
    launch(stream, config, kernels.get_kernel("load_2"), map, out.buffer, late.buffer, expected.nbytes, *coordinates((3, 4)))
    assert (out.read() == expected).all()


PROGRAM = """
import numpy as np
import ftcuda
from ftcuda.testing import simulation
from tests.kernels import compile_code
from tests.contract import test_tiles as tiles
device = ftcuda.Device(0)
stream = device.create_stream()
code = compile_code(tiles.HEAD + tiles.instantiated(tiles.LOAD, {rank}), arch="sm_90", std="c++17")
tensor = tiles.Tensor(device, stream, tiles.elements("{dtype}", (8, 8, 32)))
out = device.allocate(1 << 16, stream=stream)
map = {map}
ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1, shmem_size=1 << 15), code.get_kernel("load_{rank}"), map, out, out,
              np.uint32(64), 0, 0, 0, 0, 0)
try:
    stream.sync()
except ftcuda.CUDAError as error:
    print(error.name, simulation.last_fault())
"""


FAULT = """
import ftcuda
from tests.kernels import IS_SIMULATED, compile_code
from tests.contract import test_tiles as tiles
from tests.contract.fault import report
device = ftcuda.Device(0)
stream = device.create_stream()
source = tiles.HEAD + tiles.instantiated(tiles.LOAD, {rank}) + tiles.instantiated(tiles.STORE, {rank})
code = compile_code(source, arch="sm_90" if IS_SIMULATED else "sm_" + device.arch, std="c++17")
dtype, shape, tile, _ = tiles.CASES[{rank}]
tensor, other, late = (tiles.Tensor(device, stream, tiles.elements(dtype, shape)) for shape in (shape, tile, tile))
more = (late.buffer,) if "{kernel}" == "load" else ()
ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=32, shmem_size=other.array.nbytes + 128), code.get_kernel("{kernel}_{rank}"),
              tensor.view.as_tensor_map(tile), other.buffer, *more, other.array.nbytes, *tiles.coordinates({place}))
report(stream)
"""


@pytest.mark.faulting
@pytest.mark.parametrize(
    ("kernel", "rank", "place", "message"),
    [
        *(("load", rank, place, "no multiple of 16 bytes") for rank, place in [(1, (7,)), (1, (-5,)), (2, (3, -3)), (3, (1, 1, 8))]),
        *(("store", rank, place, "no multiple of 16 bytes") for rank, place in [(1, (7,)), (2, (3, 3)), (5, (0, 1, 2, 1, 3))]),
        *(("store", rank, place, "is negative") for rank, place in [(1, (-40,)), (2, (-2, 4)), (2, (3, -4))]),
    ],
)
def test_where_no_tile_begins(kernels, run_python, kernel, rank, place, message):
    """A process of its own, since the context is lost."""
    printed = run_python(FAULT.format(kernel=kernel, rank=rank, place=place))
    assert "CUDA_ERROR_ILLEGAL_INSTRUCTION\n" in printed
    if IS_SIMULATED:
        assert message in printed and f"kernel {kernel}_{rank}" in printed


@simulated_only
class TestWhatIsRefused:
    """By its name: modes when a tile is copied, instructions when they are loaded."""

    @pytest.mark.parametrize(
        ("options", "what"),
        [("swizzle=ftcuda.TensorMapSwizzle.SWIZZLE_64B", "swizzled"), ("interleave=ftcuda.TensorMapInterleave.INTERLEAVE_16B", "interleaved"), ("element_strides=(1, 2, 1)", "element strides"),
         ("oob_fill=ftcuda.TensorMapOOBFill.NAN_REQUEST_ZERO_FMA", "NaN"), ("data_type='tfloat32'", "rounded")],
    )  # fmt: skip
    def test_modes(self, kernels, run_python, options, what):
        printed = run_python(PROGRAM.format(rank=3, dtype="f4", map=f"tensor.view.as_tensor_map((2, 2, 16), {options})"))
        assert "CUDA_ERROR_NOT_SUPPORTED" in printed and what in printed and "kernel load_3" in printed

    def test_im2col(self, kernels, run_python):
        made = "ftcuda.TensorMapDescriptor.from_im2col(tensor.view, (0,), (0,), 16, 8)"
        printed = run_python(PROGRAM.format(rank=3, dtype="f4", map=made))
        assert "CUDA_ERROR_NOT_SUPPORTED" in printed and "im2col" in printed

    @pytest.mark.parametrize("map", ["tensor.view.as_tensor_map((2, 2, 16))", "bytes(128)"])
    def test_no_map_of_that_rank(self, kernels, run_python, map):
        printed = run_python(PROGRAM.format(rank=2, dtype="f4", map=map))
        assert "CUDA_ERROR_LAUNCH_FAILED" in printed and "no tensor map of its rank" in printed

    @pytest.mark.parametrize(
        "instruction",
        [
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r1, %r1}], [%r1], %rs1;",
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r1, %r1}], [%r1], {%rs1};",
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r1}], [%r1];",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1, %r1}], [%r1];",
        ],
    )  # fmt: skip
    def test_instructions(self, kernels, instruction):
        text = (
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
            f".reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .b16 %rs<2>;\n{instruction}\nret; }}\n"
        )
        opcode = instruction.split(" ")[0]
        with pytest.raises(CUDAError, match=f"ptx line 6: unsupported instruction '{opcode}'"):
            ObjectCode.from_ptx(text.encode()).get_kernel("k")
