"""CCCL's barriers, asynchronous copies, pipelines and cooperative groups' clusters: the same on the simulated driver and on a GPU."""

import numpy as np
import pytest

import ftcuda
from ftcuda import CUDAError, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
from tests.conftest import needs_nvrtc, simulated_only
from tests.kernels import IS_SIMULATED, compile_code

BARRIER = """#include <cuda/barrier>
#include <cuda/std/utility>
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
"""
VALUES = np.arange(64, dtype=np.int32)


def neighbour(values):
    return np.roll(values, -1)


CASES = {
    "headers that only define": (
        """#include <cuda/barrier>
        #include <cuda/ptx>
        extern "C" __global__ void k(int* x) { x[threadIdx.x] += 1; }""",
        VALUES + 1, 80,
    ),
    "arrive and wait": (
        BARRIER + """extern "C" __global__ void k(int* x) {
            __shared__ block_barrier b; __shared__ int s[64]; int i = threadIdx.x;
            if (i == 0) init(&b, blockDim.x);
            __syncthreads();
            for (int round = 0; round < 5; ++round) {   // both parities, and a barrier that is used again
                s[i] = x[i];
                auto token = b.arrive();
                b.wait(cuda::std::move(token));
                x[i] = s[(i + 1) % 64];
                b.arrive_and_wait();
            } }""",
        np.roll(VALUES, -5), 80,
    ),
    "one half waits for the other": (
        BARRIER + """extern "C" __global__ void k(int* x) {
            __shared__ block_barrier b; __shared__ int s[32]; int i = threadIdx.x;
            if (i == 0) init(&b, 64);
            __syncthreads();
            if (i < 32) { s[i] = x[i] * 2; (void)b.arrive(); }
            else { b.arrive_and_wait(); x[i] = s[i - 32]; } }""",
        np.concatenate([VALUES[:32], VALUES[:32] * 2]), 80,
    ),
    "arrive and drop": (
        BARRIER + """extern "C" __global__ void k(int* x) {
            __shared__ block_barrier b; int i = threadIdx.x;
            if (i == 0) init(&b, 64);
            __syncthreads();
            if (i >= 40) { b.arrive_and_drop(); return; }
            b.arrive_and_wait(); b.arrive_and_wait(); b.arrive_and_wait();
            x[i] = -x[i]; }""",
        np.concatenate([-VALUES[:40], VALUES[40:]]), 80,
    ),
    "memcpy_async with a barrier": (
        BARRIER + """extern "C" __global__ void k(int* x) {
            __shared__ block_barrier b; __shared__ alignas(16) int s[64]; int i = threadIdx.x;
            if (i == 0) init(&b, 64);
            __syncthreads();
            cuda::memcpy_async(s + i, x + i, sizeof(int), b);
            b.arrive_and_wait();
            x[i] = s[(i + 1) % 64]; }""",
        neighbour(VALUES), 80,
    ),
    "a pipeline": (
        """#include <cuda/pipeline>
        #include <cooperative_groups.h>
        extern "C" __global__ void k(int* x) {
            __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state; __shared__ int s[64];
            auto group = cooperative_groups::this_thread_block();
            auto pipe = cuda::make_pipeline(group, &state);
            pipe.producer_acquire();
            cuda::memcpy_async(group, s, x, sizeof s, pipe);
            pipe.producer_commit();
            pipe.consumer_wait();
            int value = s[63 - threadIdx.x];
            pipe.consumer_release();
            x[threadIdx.x] = value; }""",
        VALUES[::-1], 80,
    ),
    "bulk copies": (
        BARRIER + """#include <cuda/ptx>
        namespace ptx = cuda::ptx;
        extern "C" __global__ void k(int* x) {
            __shared__ block_barrier b; __shared__ alignas(128) int s[64]; int i = threadIdx.x;
            if (i == 0) { init(&b, 64); ptx::fence_proxy_async(ptx::space_shared); }
            __syncthreads();
            block_barrier::arrival_token token;
            if (i == 0) {
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, x, sizeof s, cuda::device::barrier_native_handle(b));
                token = cuda::device::barrier_arrive_tx(b, 1, sizeof s);
            } else token = b.arrive();
            b.wait(cuda::std::move(token));
            int mine = s[(i + 1) % 64];
            __syncthreads();
            s[i] = mine;
            ptx::fence_proxy_async(ptx::space_shared);
            __syncthreads();
            if (i == 0) {
                ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, x, s, sizeof s);
                ptx::cp_async_bulk_commit_group();
                ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
            } }""",
        neighbour(VALUES), 90,
    ),
    "a cluster of one block": (
        """#include <cooperative_groups.h>
        extern "C" __global__ void k(int* x) {
            auto cluster = cooperative_groups::this_cluster();
            __shared__ int s; int i = threadIdx.x;
            if (i == 63) s = 7;
            cluster.sync();
            unsigned id, number, explicit_;
            asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
            asm("mov.u32 %0, %%nclusterid.x;" : "=r"(number));
            asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(explicit_));
            int seen[10] = {(int)cluster.block_rank(), (int)cluster.num_blocks(), (int)cluster.block_index().x, (int)cluster.dim_blocks().x,
                            (int)cluster.thread_rank(), *cluster.map_shared_rank(&s, 0), (int)id, (int)number, (int)explicit_,
                            (int)cluster.num_threads()};
            if (i == 5 && blockIdx.x == 2) for (int n = 0; n < 10; ++n) x[n] = seen[n];
            cluster.sync(); }""",
        np.concatenate([np.array([0, 1, 0, 1, 5, 7, 2, 3, 0, 64], np.int32), VALUES[10:]]), 90,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernel(name, device, stream):
    source, expected, capability = CASES[name]
    if int(device.arch) < capability:
        pytest.skip(f"needs a device of compute capability {capability / 10}")
    if "<cuda/ptx>" in source:
        needs_nvrtc((12, 0), "<cuda/ptx>")
    code = compile_code(source, arch=f"sm_{capability if IS_SIMULATED else device.arch}", std="c++17")
    with LegacyPinnedMemoryResource().allocate(VALUES.nbytes) as buffer:
        array = np.frombuffer(buffer, np.int32)
        array[:] = VALUES
        launch(stream, LaunchConfig(grid=3 if "cluster" in name else 1, block=64), code.get_kernel("k"), buffer)
        stream.sync()
        assert (array == expected).all(), array
        del array


@simulated_only
@pytest.mark.skipif(IS_SIMULATED and ftcuda.driver_info().version < "12", reason="the text is of PTX 8.0")
class TestWhatIsRefused:
    """By the opcode and the line, when a kernel can reach it; else it is let be."""

    HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
    KERNEL = ".visible .entry k(.param .u64 x) {{ .reg .b64 %rd<2>; ld.param.u64 %rd1, [x]; {} st.global.u32 [%rd1], 3; ret; }}\n"
    TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"

    def load(self, text, stream):
        code = ObjectCode.from_ptx((self.HEAD + text).encode())
        with LegacyPinnedMemoryResource().allocate(4) as buffer:
            launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer)
            stream.sync()
            return bytes(buffer)

    def test_a_tensor_load_in_a_kernel(self, stream):
        load = f"{self.TENSOR} [%rd1], [%rd1, {{0, 0}}], [%rd1];"
        with pytest.raises(CUDAError, match=rf"ptx line 4: unsupported instruction '{self.TENSOR}'"):
            self.load(self.KERNEL.format(load), stream)

    @pytest.mark.parametrize(
        "body", [TENSOR + " [%rd1], [%rd1, {%r1, %r1}], [%rd1];", "mov.u32 %r1, %nosuchregister;", ".nosuchdirective;"]
    )
    def test_in_a_function(self, body, stream):
        """It matters only if a kernel calls it."""
        function = f".visible .func f() {{ .reg .b32 %r<2>; .reg .b64 %rd<2>; {body} ret; }}\n"
        assert self.load(function + self.KERNEL.format(""), stream) == bytes([3, 0, 0, 0])
        indirect = ".visible .func g() { call f, (); ret; }\n"
        assert self.load(function + indirect + self.KERNEL.format(""), stream) == bytes([3, 0, 0, 0])
        with pytest.raises(CUDAError, match="ptx line 4: unsupported"):
            self.load(function + indirect + self.KERNEL.format("call g, ();"), stream)
        with pytest.raises(CUDAError, match="ptx line 4: unsupported"):
            self.load(function + self.KERNEL.format("mov.u64 %rd1, f;"), stream)

    def test_large_vectors_are_named_by_their_opcode(self, stream):
        registers = ", ".join(f"%r{index % 2}" for index in range(64))
        wgmma = f"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{{registers}}}, %rd1, %rd1, 1, 1, 1, 0, 0;"
        with pytest.raises(CUDAError, match="unsupported instruction 'wgmma"):
            self.load(self.KERNEL.format(".reg .b32 %r<2>; " + wgmma), stream)


@simulated_only
def test_more_arrivals_than_a_barrier_expects_are_a_fault(run_python):
    printed = run_python("""
import ftcuda
from ftcuda.testing import simulation
SOURCE = '''extern "C" __global__ void k() { __shared__ unsigned long long b; unsigned at = __cvta_generic_to_shared(&b);
    unsigned long long state;
    asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(at));
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 3;" : "=l"(state) : "r"(at)); }'''
device = ftcuda.Device(0)
code = ftcuda.Program(SOURCE, "c++", ftcuda.ProgramOptions(arch="sm_80")).compile("ptx").code.decode()
import re
code = ftcuda.ObjectCode.from_ptx(re.sub(r"\\.version .*", ".version 7.2", code).encode())
stream = device.create_stream()
ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), code.get_kernel("k"))
try:
    stream.sync()
except ftcuda.CUDAError as error:
    print(error.name, simulation.last_fault())
""")
    assert "CUDA_ERROR_LAUNCH_FAILED" in printed and "more arrivals" in printed and "kernel k" in printed
