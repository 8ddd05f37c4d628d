"""Ordinary kernels, as NVRTC compiles them, against numpy: the same on the simulated driver and on a GPU.

Each case also compiles with fast math, with debug information (-G) and with line numbers, whose PTX looks different.
"""

import numpy as np
import pytest

from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, launch
from tests.kernels import IS_SIMULATED, compile_code

RANDOM = np.random.default_rng(5)
FLOATS = RANDOM.normal(size=256).astype(np.float32)
DOUBLES = RANDOM.uniform(0.1, 5.0, size=256)
INTS = RANDOM.integers(-(2**31), 2**31, size=256, dtype=np.int64).astype(np.int32)
WORDS = INTS.view(np.uint32)
LONGS = RANDOM.integers(-(2**63), 2**63 - 1, size=256, dtype=np.int64)


class Case:
    """One kernel `k(out, in)` for 256 threads in `blocks` blocks, and what it must write."""

    def __init__(self, source, inputs, expected, *, block=256, grid=1, tolerance=0.0, options=None, arguments=()):
        self.source, self.inputs, self.expected = source, inputs, expected
        self.block, self.grid, self.tolerance, self.options, self.arguments = (
            block,
            grid,
            tolerance,
            options or {},
            arguments,
        )


def matmul_reference():
    a = FLOATS.reshape(16, 16)
    return (a.astype(np.float64) @ a.T.astype(np.float64)).ravel().astype(np.float32)


def warp_sums(values):
    return np.repeat(values.reshape(-1, 32).sum(axis=1), 32)


def bits(values):
    return np.array([bin(int(value)).count("1") for value in values], np.int32)


CASES = {
    "matmul with tiles": Case(
        """extern "C" __global__ void k(float* out, const float* a) {
            __shared__ float x[16][17], y[16][17];
            x[threadIdx.y][threadIdx.x] = a[threadIdx.y * 16 + threadIdx.x]; y[threadIdx.x][threadIdx.y] = a[threadIdx.x * 16 + threadIdx.y];
            __syncthreads();
            float s = 0; for (int i = 0; i < 16; ++i) s += x[threadIdx.y][i] * y[threadIdx.x][i];
            out[threadIdx.y * 16 + threadIdx.x] = s; }""",
        FLOATS, matmul_reference(), block=(16, 16), tolerance=1e-5,
    ),
    "shuffles": Case(
        """extern "C" __global__ void k(int* out, const int* in) { int i = threadIdx.x; unsigned v = in[i];
            for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
            unsigned up = __shfl_up_sync(~0u, v, 1), first = __shfl_sync(~0u, v, 0); out[i] = v + (up - first); }""",
        INTS, warp_sums(WORDS).astype(np.uint32).view(np.int32),
    ),
    "votes": Case(
        """extern "C" __global__ void k(unsigned* out, const int* in) { int i = threadIdx.x; bool p = in[i] > 0;
            unsigned b = __ballot_sync(~0u, p); out[i] = __all_sync(~0u, p) ? 1 : __any_sync(~0u, p) ? __popc(b) : 2; }""",
        INTS, np.repeat((INTS > 0).reshape(-1, 32).sum(axis=1), 32).astype(np.uint32),
    ),
    "block votes": Case(
        """extern "C" __global__ void k(int* out, const int* in) { bool p = in[threadIdx.x] > 0;
            out[threadIdx.x] = __syncthreads_count(p) + 1000 * __syncthreads_and(p) + 2000 * (__syncthreads_or(p) != 0); }""",
        INTS, np.full(256, (INTS > 0).sum() + 2000, np.int32),
    ),
    "divergence and early exit": Case(
        """extern "C" __global__ void k(int* out, const int* in) { int i = threadIdx.x; int n = in[i] & 15; int s = 0;
            if (n == 3) { out[i] = -1; return; }
            for (int j = 0; j < n; ++j) { if (j & 1) continue; if (j > 10) break; s += j; }
            switch (n & 3) { case 0: s += 100; break; case 1: s -= 100; break; case 2: s *= 2; default: s ^= 1; }
            out[i] = s; }""",
        INTS, np.array([-1 if (n := int(v) & 15) == 3 else
                        (lambda s, n: s + 100 if n & 3 == 0 else s - 100 if n & 3 == 1 else (2 * s) ^ 1 if n & 3 == 2 else s ^ 1)
                        (sum(j for j in range(n) if j % 2 == 0 and j <= 10), n) for v in INTS], np.int32),
    ),
    "integer intrinsics": Case(
        """extern "C" __global__ void k(int* out, const int* in) { int v = in[threadIdx.x]; unsigned u = v;
            out[threadIdx.x] = __popc(u) + __clz(v) + __ffs(v) + (int)(__brev(u) >> 28) + (int)__byte_perm(u, ~u, 0x3210) + __mulhi(v, 12345)
                + (int)__umulhi(u, 12345u) + (int)__funnelshift_l(u, ~u, 7) + __sad(v, 5, 1u) + abs(v % 1000) + v / 7 + (int)(u % 1000u) + (int)(u / 7u)
                + max(v, 3) + min(v, -3) + (v >> 5) + (int)(u >> 5) + (v << 3); }""",
        INTS, None,
    ),
    "wide integers": Case(
        """extern "C" __global__ void k(long long* out, const long long* in) { long long v = in[threadIdx.x]; unsigned long long u = v;
            out[threadIdx.x] = __mul64hi(v, 0x123456789abcdefLL) + (long long)__umul64hi(u, 0x123456789abcdefULL) + v % 1000003 + (long long)(u / 1000003ULL)
                + __popcll(u) + __clzll(v) + (v >> 9) + (long long)(u >> 9); }""",
        LONGS,
        np.array([(lambda v, u: ((v * 0x123456789ABCDEF >> 64) + (u * 0x123456789ABCDEF >> 64) + int(np.fmod(v, 1000003) if abs(v) < 2**53 else (abs(v) % 1000003) * (1 if v >= 0 else -1))
                   + u // 1000003 + bin(u).count("1") + (64 - u.bit_length()) + (v >> 9) + (u >> 9) + 2**63) % 2**64 - 2**63)(int(v), int(v) % 2**64) for v in LONGS], np.int64),
    ),
    "conversions": Case(
        """extern "C" __global__ void k(int* out, const float* in) { float f = in[threadIdx.x] * 10;
            out[threadIdx.x] = __float2int_rn(f) + 100 * __float2int_rz(f) + 10000 * __float2int_rd(f) + 1000000 * __float2int_ru(f)
                + (int)(short)f + (int)(unsigned char)(int)f + (int)floorf(f) + (int)__float2uint_rz(fabsf(f)); }""",
        FLOATS,
        (lambda f: (np.rint(f) + 100 * np.trunc(f) + 10000 * np.floor(f) + 1000000 * np.ceil(f) + np.trunc(f) + (np.trunc(f).astype(np.int64) & 255)
                    + np.floor(f) + np.trunc(np.abs(f))).astype(np.int64).astype(np.int32))((FLOATS * np.float32(10)).astype(np.float64)),
    ),
    "rounding modes": Case(
        """extern "C" __global__ void k(float* out, const float* in) { float f = in[threadIdx.x];
            out[threadIdx.x] = (__fadd_ru(f, 1e-9f) - __fadd_rd(f, 1e-9f)) + (__fmul_rz(f, 1.1f) - __fmul_rz(f, 1.1f)) + __fmaf_rn(f, f, -f * f) * 0.0f; }""",
        FLOATS, (lambda f: np.where(np.abs(f) > 0.05, np.spacing(np.abs(f)), 0))(FLOATS).astype(np.float32), tolerance=2.0,
    ),
    "special functions": Case(
        """extern "C" __global__ void k(float* out, const float* in) { float f = fabsf(in[threadIdx.x]) + 0.5f;
            out[threadIdx.x] = expf(f) + logf(f) + sinf(f) + cosf(f) + tanhf(f) + sqrtf(f) + rsqrtf(f) + powf(f, 1.5f) + 1.0f / f; }""",
        FLOATS,
        (lambda f: (np.exp(f) + np.log(f) + np.sin(f) + np.cos(f) + np.tanh(f) + np.sqrt(f) + 1 / np.sqrt(f) + f**1.5 + 1 / f).astype(np.float32))(np.abs(FLOATS.astype(np.float64)) + 0.5),
        tolerance=1e-4,
    ),
    "double precision": Case(
        """extern "C" __global__ void k(double* out, const double* in) { double f = in[threadIdx.x];
            out[threadIdx.x] = exp(f) + log(f) + sin(f) + cos(f) + sqrt(f) + pow(f, 1.5) + 1 / f + fma(f, f, 1.0) + rint(f) + floor(f) + fmod(f, 0.7); }""",
        DOUBLES,
        (lambda f: np.exp(f) + np.log(f) + np.sin(f) + np.cos(f) + np.sqrt(f) + f**1.5 + 1 / f + f * f + 1 + np.rint(f) + np.floor(f) + np.fmod(f, 0.7))(DOUBLES),
        tolerance=1e-12,
    ),
    "device functions, recursion, pointers to functions": Case(
        """__device__ __noinline__ int twice(int x) { return 2 * x; }
        __device__ __noinline__ int thrice(int x) { return 3 * x; }
        __device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        __device__ int (*const table[2])(int) = {twice, thrice};
        extern "C" __global__ void k(int* out, const int* in) { int v = in[threadIdx.x]; out[threadIdx.x] = table[v & 1](v & 255) + fib(threadIdx.x % 8); }""",
        INTS, np.array([((v & 255) * (3 if v & 1 else 2)) + [0, 1, 1, 2, 3, 5, 8, 13][i % 8] for i, v in enumerate(INTS.tolist())], np.int32),
    ),
    "local arrays": Case(
        """extern "C" __global__ void k(int* out, const int* in) { int local[32]; int v = in[threadIdx.x] & 31;
            for (int i = 0; i < 32; ++i) local[(i + v) & 31] = i; out[threadIdx.x] = local[5] * 100 + local[(v * 7) & 31]; }""",
        INTS, np.array([((5 - v) & 31) * 100 + ((v * 7 - v) & 31) for v in (INTS & 31).tolist()], np.int32),
    ),
    "constant and global variables": Case(
        """__constant__ int table[4] = {3, 1, 4, 1}; __device__ int counters[2] = {10, 20}; __device__ const char* text = "pi"; __device__ int* where = counters + 1;
        extern "C" __global__ void k(int* out, const int* in) { out[threadIdx.x] = table[in[threadIdx.x] & 3] + *where + text[1] + counters[0]; }""",
        INTS, np.array([3, 1, 4, 1], np.int32)[INTS & 3] + 20 + ord("i") + 10,
    ),
    "atomics": Case(
        """__device__ int add, low, high, bits_and = ~0, bits_or, bits_xor, swapped; __device__ unsigned ring, count; __device__ float real; __device__ double wide;
        __device__ unsigned long long big;
        extern "C" __global__ void k(int* out, const int* in) { int i = threadIdx.x, v = in[i] >> 8;
            atomicAdd(&add, v); atomicMin(&low, v); atomicMax(&high, v); atomicAnd(&bits_and, v | 15); atomicOr(&bits_or, v & 240); atomicXor(&bits_xor, v);
            atomicInc(&ring, 99u); atomicAdd(&real, 0.5f); atomicAdd(&wide, 0.25); atomicAdd(&big, 1ull << 33); atomicExch(&swapped, 7);
            for (int old = -1; old != (int)count || true;) { unsigned seen = count; if (atomicCAS(&count, seen, seen + 2) == seen) break; old = seen; }
            __syncthreads();
            int results[] = {add, low, high, bits_and & 15, bits_or, bits_xor, (int)ring, (int)real, (int)wide, (int)(big >> 33), swapped, (int)count};
            out[i] = i < 12 ? results[i] : 0; }""",
        INTS,
        np.array([(int((INTS >> 8).sum()) + 2**31) % 2**32 - 2**31, min(0, int((INTS >> 8).min())), max(0, int((INTS >> 8).max())), 15, int(np.bitwise_or.reduce((INTS >> 8) & 240)),
                  int(np.bitwise_xor.reduce(INTS >> 8)), 256 % 100, 128, 64, 256, 7, 512] + [0] * 244, np.int32),
        options={"arch": "sm_75"} if IS_SIMULATED else {},
    ),
    "shared histogram": Case(
        """extern "C" __global__ void k(int* out, const int* in) { extern __shared__ int bins[]; bins[threadIdx.x] = 0; __syncthreads();
            atomicAdd(&bins[in[threadIdx.x] & 7], 1); __syncthreads(); out[threadIdx.x] = bins[threadIdx.x]; }""",
        INTS, np.bincount(INTS & 7, minlength=256).astype(np.int32),
    ),
    "half precision": Case(
        """#include <cuda_fp16.h>
        extern "C" __global__ void k(float* out, const float* in) { __half h = __float2half(in[threadIdx.x]); __half2 p = __halves2half2(h, __float2half(2.0f));
            p = __hfma2(p, p, p); out[threadIdx.x] = __half2float(__hadd(__low2half(p), __hmul(h, h))) + __high2float(p); }""",
        FLOATS, (lambda h: ((h.astype(np.float64) * h + h).astype(np.float16) + (h * h)).astype(np.float16).astype(np.float32) + np.float32(6))(FLOATS.astype(np.float16)),
        tolerance=1e-3,
    ),
    "bfloat16": Case(
        """#include <cuda_bf16.h>
        extern "C" __global__ void k(float* out, const float* in) { __nv_bfloat16 h = __float2bfloat16(in[threadIdx.x]); out[threadIdx.x] = __bfloat162float(__hadd(h, h)); }""",
        FLOATS, (lambda w: (2 * (((w + 0x7FFF + ((w >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32))))(FLOATS.view(np.uint32).astype(np.uint64)),
        options={"arch": "sm_80"} if IS_SIMULATED else {},
    ),
    "vectors and structures": Case(
        """struct alignas(16) Four { float x, y, z, w; }; struct Odd { char a; short b; int c; };
        extern "C" __global__ void k(float* out, const float4* in, Four add, Odd odd) { if (threadIdx.x < 64) { float4 v = in[threadIdx.x];
            v.x += add.x; v.y += add.y; v.z += add.z + odd.a; v.w += add.w + odd.b * odd.c; reinterpret_cast<float4*>(out)[threadIdx.x] = v; } }""",
        FLOATS, (FLOATS.reshape(64, 4) + np.float32([1, 2, 3 + 4, 4 + 30])).ravel(), tolerance=1e-6,
        arguments=(np.float32([1, 2, 3, 4]).tobytes(), np.array([(4, 5, 6)], np.dtype([("a", "i1"), ("b", "i2"), ("c", "i4")], align=True))[0]),
    ),
    "byte dot products": Case(
        """extern "C" __global__ void k(int* out, const int* in) { int d;
            asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(in[threadIdx.x]), "r"(0x01020304), "r"(5)); out[threadIdx.x] = d; }""",
        INTS, (INTS.view(np.int8).reshape(256, 4).astype(np.int32) * np.array([4, 3, 2, 1])).sum(axis=1, dtype=np.int32) + 5,
    ),
    "waiting for another thread of the warp": Case(
        """extern "C" __global__ void k(int* out, const int* in) { __shared__ volatile int flag[8]; int w = threadIdx.x / 32; if (threadIdx.x % 32 == 0) flag[w] = 0; __syncwarp();
            if (threadIdx.x % 32 == 31) { __threadfence_block(); flag[w] = 1; } else { while (flag[w] == 0) {} } __syncwarp(); out[threadIdx.x] = in[threadIdx.x] + flag[w]; }""",
        INTS, INTS + np.int32(1),
    ),
    "clocks": Case(
        'extern "C" __global__ void k(int* out, const int* in) { long long a = clock64(); __nanosleep(100); out[threadIdx.x] = clock64() >= a ? in[threadIdx.x] : -1; }',
        INTS, INTS,
    ),
    "many blocks": Case(
        'extern "C" __global__ void k(int* out, const int* in) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i] ^ (int)blockIdx.x; }',
        INTS, INTS ^ (np.arange(256) // 16).astype(np.int32), block=16, grid=16,
    ),
}  # fmt: skip


def python_integer_intrinsics():
    def one(v):
        u = v % 2**32
        trunc = lambda a, b: abs(a) // b * (1 if a >= 0 else -1)  # noqa: E731 - C division
        total = (
            bin(u).count("1") + (32 - u.bit_length()) + ((u & -u).bit_length() if u else 0) + (int(f"{u:032b}"[::-1], 2) >> 28) + u + (v * 12345 >> 32)
            + (u * 12345 >> 32) + (((((~u) % 2**32) << 32 | u) << 7 >> 32) % 2**32) + (abs(v - 5) + 1) + abs(v - trunc(v, 1000) * 1000) + trunc(v, 7) + u % 1000 + u // 7
            + max(v, 3) + min(v, -3) + (v >> 5) + (u >> 5) + (v << 3)
        )  # fmt: skip
        return (total + 2**31) % 2**32 - 2**31

    return np.array([one(v) for v in INTS.tolist()], np.int32)


CASES["integer intrinsics"].expected = python_integer_intrinsics()
VARIANTS = {
    "plain": {},
    "line numbers": {"lineinfo": True},
    "debug": {"debug": True},
    "fast math": {"use_fast_math": True},
}


def run(case, stream, **options):
    kernel = compile_code(case.source, **{**case.options, **options}).get_kernel("k")
    resource = LegacyPinnedMemoryResource()
    source, out = resource.allocate(case.inputs.nbytes), resource.allocate(max(case.expected.nbytes, 1024))
    np.frombuffer(source, case.inputs.dtype)[:] = case.inputs
    np.frombuffer(out, np.uint8)[:] = 0xCC
    shared = 1024 if "extern __shared__" in case.source else 0
    launch(
        stream, LaunchConfig(grid=case.grid, block=case.block, shmem_size=shared), kernel, out, source, *case.arguments
    )
    stream.sync()
    return np.frombuffer(out, case.expected.dtype)[: case.expected.size].copy()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name, variant, stream):
    case = CASES[name]
    got = run(case, stream, **VARIANTS[variant])
    if case.expected.dtype.kind != "f" or case.tolerance == 0:
        assert np.array_equal(got, case.expected)
    else:
        tolerance = max(case.tolerance, 1e-3) if variant == "fast math" else case.tolerance
        assert np.allclose(
            got, case.expected, rtol=tolerance, atol=min(tolerance, 1e-6) if case.tolerance < 1 else 1e-6
        )


@pytest.mark.skipif(not IS_SIMULATED, reason="a GPU runs code for its own architecture only")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize(
    "name",
    [
        "matmul with tiles",
        "shuffles",
        "atomics",
        "double precision",
        "device functions, recursion, pointers to functions",
    ],
)
def test_other_architectures(name, arch, stream, device):
    if int(arch.removeprefix("sm_")) > int(device.arch):
        pytest.skip(reason=f"the simulated device is sm_{device.arch}, which refuses newer code")
    case = CASES[name]
    got = run(Case(case.source, case.inputs, case.expected, block=case.block), stream, arch=arch)
    assert np.allclose(got, case.expected, rtol=1e-4) if case.tolerance else np.array_equal(got, case.expected)


def test_printf(stream, capfd, device):
    kernel = compile_code(
        r"""extern "C" __global__ void k(const char* unused) { if (threadIdx.x == 1)
            printf("%d|%5.2f|%s|%c|%llu|%x|%%\n", -5, 2.5, "text", 'z', 1234567890123ull, 255u); }"""
    ).get_kernel("k")
    launch(stream, LaunchConfig(grid=1, block=2), kernel, 0)
    device.sync()
    assert "-5| 2.50|text|z|1234567890123|ff|%" in capfd.readouterr().out
