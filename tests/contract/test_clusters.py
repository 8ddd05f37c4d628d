"""Clusters of several blocks, and the shared memory that they reach of each other: the same on the simulated driver and on a GPU."""

import numpy as np
import pytest

from ftcuda import CUDAError, LaunchConfig, launch
from tests.conftest import needs_nvrtc, simulated_only
from tests.kernels import IS_SIMULATED, compile_code

HEAD = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned shared_address(const void* place) { return (unsigned)__cvta_generic_to_shared(place); }
__device__ unsigned in_block(unsigned address, unsigned rank) {
    unsigned mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}
__device__ void make_barrier(unsigned barrier, unsigned arrivals, unsigned bytes) {   // by one thread; it is one of the arrivals
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait_at(unsigned barrier) {
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 :: "r"(barrier) : "memory");
}
__device__ void arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
__device__ void wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
"""
# Of the kernel's thread: i in the block, r the block's rank among n, g in the grid, o for its output.
SIGNATURE = """extern "C" __global__ void k(int* out, const int* in) {
    auto cluster = cg::this_cluster();
    int i = threadIdx.x; unsigned r = cluster.block_rank(), n = cluster.num_blocks();
    int g = blockIdx.x * blockDim.x + i;
"""
RANDOM = np.random.default_rng(7)
VALUES = RANDOM.integers(0, 1000, size=1024).astype(np.int32)


def by_block(clusters, size):
    return VALUES[: clusters * size * 64].reshape(clusters, size, 64)


def seen_registers():
    rows = []
    for y in range(4):
        for x in range(4):
            rank = x % 2 + 2 * (y % 2)
            rows.append([x % 2, y % 2, 0, 2, 2, 1, x // 2, y // 2, 0, 2, 2, 1, rank, 4, 1, 4])
    return np.array(rows, np.int32)


REGISTERS = """extern "C" __global__ void k(int* out, const int*) {
    unsigned v[16], at = 16 * (blockIdx.x + gridDim.x * blockIdx.y);
""" + "".join(
    f'asm("mov.u32 %0, %%{name};" : "=r"(v[{index}]));\n'
    for index, name in enumerate([
        *(f"{register}.{axis}" for register in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"),
        "cluster_ctarank", "cluster_nctarank"])
) + """asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(v[14]));
    v[15] = gridDim.x;
    if (threadIdx.x == 0) for (int n = 0; n < 16; ++n) out[at + n] = v[n]; }"""  # fmt: skip

# Name: source, clusters, blocks in one, what `out` holds then. 64 threads in a block.
CASES = {
    "special registers": (REGISTERS, (2, 2), (2, 2), seen_registers()),
    "a ring of shared memory": (
        SIGNATURE + """__shared__ int s[64];
            s[i] = in[g];
            for (int round = 0; round < 5; ++round) {
                cluster.sync();
                int value = cluster.map_shared_rank(s, (r + 1) % n)[(i + 1) % 64];
                cluster.sync();
                s[i] = value;
            }
            out[g] = s[i]; }""",
        3, 4, np.roll(by_block(3, 4), (-5, -5), (1, 2)),
    ),
    "eight blocks write to all": (
        SIGNATURE + """__shared__ int s[8][64];
            for (unsigned to = 0; to < n; ++to) {
                asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(in_block(shared_address(&s[r][i]), to)), "r"(in[g] + to) : "memory");
            }
            cluster.sync();
            int sum = 0;
            for (unsigned from = 0; from < n; ++from) sum = 3 * sum + s[from][i];
            out[g] = sum; }""",
        1, 8, np.array([sum((by_block(1, 8)[0, sender] + to) * 3 ** (7 - sender) for sender in range(8)) for to in range(8)]),
    ),
    "a histogram over the cluster": (
        SIGNATURE + """__shared__ int bins[16];
            if (i < 16) bins[i] = 0;
            cluster.sync();
            for (int at = g; at < 1024; at += 256) {
                int value = in[at] % 64;
                if (at & 1) atomicAdd(cluster.map_shared_rank(bins, value / 16) + value % 16, 1);
                else asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;"
                                  :: "r"(in_block(shared_address(&bins[value % 16]), value / 16)) : "memory");
            }
            cluster.sync();
            if (i < 16) out[16 * r + i] = bins[i]; }""",
        1, 4, np.bincount(VALUES % 64, minlength=64),
    ),
    "arrive first and wait later": (
        SIGNATURE + """__shared__ int s[64];
            s[i] = in[g];
            arrive();
            int mine = 0;
            for (int n = 0; n < 10; ++n) mine += in[g] * n;
            wait();
            mine += cluster.map_shared_rank(s, n - 1 - r)[i];
            arrive(); wait();
            out[g] = mine; }""",
        2, 2, by_block(2, 2) * 45 + by_block(2, 2)[:, ::-1],
    ),
    "threads that exit are not waited for": (
        SIGNATURE + """__shared__ int s[64];
            s[i] = in[g];
            if (i >= 8 + 32 * r) return;
            arrive(); wait();
            out[g] = i < 8 ? cluster.map_shared_rank(s, 1 - r)[i] : -1;
            arrive(); wait(); }""",
        1, 2, np.concatenate([by_block(1, 2)[0, 1, :8], np.zeros(56, int), by_block(1, 2)[0, 0, :8], np.full(32, -1)]),
    ),
    # Mutant: a thread that arrives and exits is counted twice, and the first block goes on before the second one wrote.
    "a thread that arrives and exits counts once": (
        SIGNATURE + """__shared__ volatile int s; __shared__ volatile int other;
            if (i == 0) s = other = 0;
            arrive(); wait();
            if (r == 0) { arrive(); if (i >= 32) return; wait(); out[i] = s; }
            else {
                if (i >= 32) return;
                for (int n = 0; n < 20000; ++n) other = other + 1;
                if (i == 0) asm volatile("st.shared::cluster.u32 [%0], 7;" :: "r"(in_block(shared_address((const void*)&s), 0)) : "memory");
                arrive(); wait();
            } }""",
        1, 2, np.full(32, 7),
    ),
    "st.async reports to the block it writes to": (
        SIGNATURE + """__shared__ alignas(16) int s[64][2]; __shared__ unsigned long long barrier;
            unsigned gate = shared_address(&barrier), to = (r + 1) % n;
            if (i == 0) make_barrier(gate, 1, sizeof s);
            cluster.sync();
            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                         :: "r"(in_block(shared_address(s[i]), to)), "r"(in[g]), "r"((int)r), "r"(in_block(gate, to)) : "memory");
            wait_at(gate);
            out[g] = s[i][0] + 1000 * s[i][1];
            cluster.sync(); }""",
        2, 4, np.roll(by_block(2, 4) + 1000 * np.arange(4)[:, None], 1, 1),
    ),
    "red.async adds in one block": (
        SIGNATURE + """__shared__ unsigned sums[64]; __shared__ unsigned long long barrier;
            unsigned gate = shared_address(&barrier);
            sums[i] = 0;
            if (i == 0 && r == 0) make_barrier(gate, 1, 4 * 64 * n);
            cluster.sync();
            asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                         :: "r"(in_block(shared_address(&sums[i]), 0)), "r"(in[g]), "r"(in_block(gate, 0)) : "memory");
            if (r == 0) { wait_at(gate); out[i] = sums[i]; }
            cluster.sync(); }""",
        1, 8, by_block(1, 8)[0].sum(axis=0),
    ),
    "all arrive at one block's barrier": (
        SIGNATURE + """__shared__ int s[4][64]; __shared__ unsigned long long barrier;
            unsigned gate = shared_address(&barrier);
            if (i == 0 && r == 0) make_barrier(gate, 64 * n + 1, 0);
            cluster.sync();
            *cluster.map_shared_rank(&s[r][i], 0) = in[g];
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(in_block(gate, 0)) : "memory");
            if (r == 0) { wait_at(gate); for (unsigned from = 0; from < n; ++from) out[64 * from + i] = s[from][63 - i]; }
            cluster.sync(); }""",
        1, 4, by_block(1, 4)[0, :, ::-1],
    ),
    "bulk copies between blocks": (
        SIGNATURE + """__shared__ alignas(128) int s[64]; __shared__ alignas(128) int t[64]; __shared__ unsigned long long barrier;
            unsigned gate = shared_address(&barrier), to = n - 1 - r;
            s[i] = in[g];
            if (i == 0) make_barrier(gate, 1, sizeof t);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            cluster.sync();
            if (i == 0) asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                :: "r"(in_block(shared_address(t), to)), "r"(shared_address(s)), "r"(256), "r"(in_block(gate, to)) : "memory");
            wait_at(gate);
            out[g] = t[i];
            cluster.sync(); }""",
        1, 4, by_block(1, 4)[:, ::-1],
    ),
    "addresses and their blocks": (
        SIGNATURE + """__shared__ int s;
            unsigned long long generic = (unsigned long long)&s, mapped; unsigned rank, near, far;
            asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(generic), "r"(i % n));
            asm volatile("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(mapped));
            asm volatile("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(near) : "l"(generic));
            asm volatile("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(far) : "l"(mapped));
            unsigned other, own;
            asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(other) : "r"(in_block(shared_address(&s), i % n)));
            asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(own) : "r"(shared_address(&s)));
            out[g] = rank + 10 * near + 100 * far + 1000 * other + 10000 * own; }""",
        1, 4, np.array([[110 + i % 4 * 1001 + 10000 * r for i in range(64)] for r in range(4)]),
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def clusters(device):
    if not device.features.cluster_launch:
        pytest.skip("needs clusters: compute capability 9.0, driver 11.8")


def compiled(source, device, **options):
    return compile_code(source, arch=f"sm_{90 if IS_SIMULATED else device.arch}", std="c++17", **options)


def run(config, kernel, stream, pinned, count):
    out, result = pinned(np.zeros(count, np.int32))
    values, _ = pinned(VALUES)
    launch(stream, config, kernel, out, values)
    stream.sync()
    return result


@pytest.mark.parametrize("name", CASES)
def test_kernel(name, device, stream, pinned):
    source, grid, cluster, expected = CASES[name]
    if "async" in source or "make_barrier" in source:
        needs_nvrtc((12, 0), "barriers that count bytes")
    kernel = compiled(HEAD + source, device).get_kernel("k")
    found = run(LaunchConfig(grid=grid, cluster=cluster, block=64), kernel, stream, pinned, 1024)
    expected = np.asarray(expected).ravel()
    assert (found[: expected.size] == expected).all(), found


def test_a_cooperative_launch_has_clusters_too(device, stream, pinned):
    """All of its blocks run at once, whatever cluster they are of."""
    source = SIGNATURE + """__shared__ int s;
        if (i == 0) {
            s = blockIdx.x;
            atomicAdd(out, 1);
            while (atomicAdd(out, 0) < gridDim.x) {}
        }
        cluster.sync();
        if (i == 0) out[1 + blockIdx.x] = 10 * *cluster.map_shared_rank(&s, 1 - r) + r;
        cluster.sync(); }"""
    config = LaunchConfig(grid=3, cluster=2, block=64, is_cooperative=True)
    found = run(config, compiled(HEAD + source, device).get_kernel("k"), stream, pinned, 7)
    assert list(found) == [6, 10, 1, 30, 21, 50, 41]


SHAPE = """extern "C" __global__ void {} k(int* out, const int*) {{ unsigned size; asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (threadIdx.x == 0) out[blockIdx.x] = size; }}"""


def sizes(kernel, stream, pinned, **config):
    found = run(LaunchConfig(block=32, **config), kernel, stream, pinned, 64)
    return list(found[found != 0])


def refused(kernel, stream, pinned, **config):
    with pytest.raises(CUDAError) as caught:
        sizes(kernel, stream, pinned, **config)
    return caught.value.name


class TestSizes:
    @pytest.mark.parametrize("cluster", [9, (4, 4), (1, 1, 9), 16])
    def test_above_eight_blocks(self, device, stream, pinned, cluster):
        kernel = compiled(SHAPE.format(""), device).get_kernel("k")
        assert refused(kernel, stream, pinned, grid=1, cluster=cluster) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"
        assert sizes(kernel, stream, pinned, grid=4) == [1] * 4
        assert sizes(kernel, stream, pinned, grid=1, cluster=8) == [8] * 8
        assert sizes(kernel, stream, pinned, grid=2, cluster=3) == [3] * 6

    def test_sixteen_where_they_need_not_be_portable(self, device, stream, pinned):
        kernel = compiled(SHAPE.format(""), device).get_kernel("k")
        assert kernel.attributes.non_portable_cluster_size_allowed is False
        kernel.attributes.non_portable_cluster_size_allowed = 1
        assert kernel.attributes.non_portable_cluster_size_allowed is True
        config = LaunchConfig(grid=1, cluster=1, block=32)
        largest = kernel.occupancy.max_potential_cluster_size(config, stream=stream)
        assert 8 <= largest <= 16
        assert sizes(kernel, stream, pinned, grid=1, cluster=largest) == [largest] * largest
        assert refused(kernel, stream, pinned, grid=1, cluster=17) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"

    def test_of_the_kernel_itself(self, device, stream, pinned):
        kernel = compiled(SHAPE.format("__cluster_dims__(2, 1, 1)"), device).get_kernel("k")
        attributes = kernel.attributes
        assert attributes.cluster_size_must_be_set is True
        required = attributes.required_cluster_width, attributes.required_cluster_height, attributes.required_cluster_depth
        assert required == (2, 1, 1)
        assert sizes(kernel, stream, pinned, grid=4) == [2] * 4 == sizes(kernel, stream, pinned, grid=2, cluster=2)
        assert refused(kernel, stream, pinned, grid=3) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"
        for other in (1, 4, (1, 2)):
            assert refused(kernel, stream, pinned, grid=2, cluster=other) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"

    def test_the_kernel_s_own_limit(self, device, stream, pinned):
        needs_nvrtc((12, 0), "largest cluster as a launch bound")
        kernel = compiled(SHAPE.format("__launch_bounds__(64, 1, 4)"), device).get_kernel("k")
        assert sizes(kernel, stream, pinned, grid=1, cluster=4) == [4] * 4
        assert sizes(kernel, stream, pinned, grid=4) == [1] * 4
        assert refused(kernel, stream, pinned, grid=1, cluster=8) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"

    def test_how_many_fit(self, device, stream):
        occupancy = compiled(SHAPE.format(""), device).get_kernel("k").occupancy

        def asked(**config):
            config = LaunchConfig(**{"grid": 1, "block": 32, **config})
            largest = occupancy.max_potential_cluster_size(config, stream=stream)
            return largest, occupancy.max_active_clusters(config, stream=stream)

        assert asked() == (8, 0)  # without clusters there are none to count
        (largest, of_two), (_, of_eight), (_, of_threads) = asked(cluster=2), asked(cluster=8), asked(cluster=2, block=1024)
        assert largest == 8 and of_two >= of_threads > 0 and of_two >= 4 * of_eight > 0
        assert asked(cluster=2, block=2048) == (0, 0)  # such a block fits nowhere
        for cluster in (9, 16):
            with pytest.raises(CUDAError) as caught:
                asked(cluster=cluster)
            assert caught.value.name == "CUDA_ERROR_INVALID_CLUSTER_SIZE"


# What a thread of the first of two blocks does, with `at` its shared memory and `far` the same in the second.
FAULTS = {
    "beyond the other block's memory": (
        'asm volatile("ld.shared::cluster.u32 %0, [%1+1048576];" : "=r"(v) : "r"(far));', "ILLEGAL_ADDRESS", "illegal address"),
    "in no block": (
        'asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(in_block(at, 5)));', "LAUNCH_FAILED", "or of none"),
    "misaligned": (
        'asm volatile("ld.shared::cluster.u32 %0, [%1+2];" : "=r"(v) : "r"(far));', "MISALIGNED_ADDRESS", "misaligned"),
}  # fmt: skip
# Only the simulator says it, or is sure to.
STRICTER = {
    "of a block that has exited": (
        'for (int n = 0; n < 100000; ++n) asm volatile("");'
        'asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(far));', "LAUNCH_FAILED", "that has exited"),
    "by an address of another block where only the own ones are allowed": (
        'asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(v) : "r"(far));', "ILLEGAL_ADDRESS", "illegal address"),
    "twice at the barrier": ("arrive(); arrive(); wait();", "LAUNCH_FAILED", "again before it waited"),
    "at the barrier alone": ("wait();", "LAUNCH_FAILED", "cannot reach"),
    "an mbarrier of another block is made": (
        'unsigned long long to; asm volatile("mapa.u64 %0, %1, 1;" : "=l"(to) : "l"(s));'
        'asm volatile("mbarrier.init.b64 [%0], 1;" :: "l"(to) : "memory");', "ILLEGAL_ADDRESS", "illegal address"),
    "bytes for one block are reported to another": (
        'asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"'
        ' :: "r"(far), "r"(1), "r"(at + 8) : "memory");', "ILLEGAL_ADDRESS", "illegal address"),
}  # fmt: skip


@pytest.mark.faulting
@pytest.mark.parametrize("name", [*FAULTS, *(pytest.param(name, marks=simulated_only) for name in STRICTER)])
def test_fault(name, device, run_python):
    """A process of its own, since the context is lost."""
    body, error, message = (FAULTS | STRICTER)[name]
    if "async" in body:
        needs_nvrtc((12, 0), "barriers that count bytes")
    source = HEAD + """extern "C" __global__ void k(unsigned* out) {
        __shared__ unsigned long long s[2]; unsigned at = shared_address(s), far = in_block(at, 1), v = 0;
        arrive(); wait();
        if (cg::this_cluster().block_rank() == 0) { BODY out[0] = v; }
        STAY }""".replace("BODY", body).replace("STAY", "" if "exited" in name else "arrive(); wait();")
    printed = run_python(f"""
import ftcuda
from tests.kernels import compile_code, IS_SIMULATED
from tests.contract.fault import report
device = ftcuda.Device(0)
stream = device.create_stream()
code = compile_code({source!r}, arch="sm_90" if IS_SIMULATED else "sm_" + device.arch, std="c++17")
out = device.allocate(64, stream=stream)
ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, cluster=2, block=1), code.get_kernel("k"), out)
report(stream)
""")
    assert f"CUDA_ERROR_{error}\n" in printed
    if IS_SIMULATED:
        assert message in printed and "kernel k, block (0,0,0), thread (0,0,0)" in printed
