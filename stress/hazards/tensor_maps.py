"""One tensor map, given other addresses by a thread while others launch with it, as it is and bound."""

from types import SimpleNamespace

import numpy as np

import ftcuda
from ftcuda import ClosedError, LegacyPinnedMemoryResource, StridedMemoryView
from ftcuda.testing.hazard import Hazard

TURNS = 12
SHAPE = (8, 32)
WORDS = 16  # of a map

# The two maps as they are, and what the kernel finds through the first: the simulated driver's maps have the address in
# their second word, hardware is asked by a load of one tile.
HEAD = """
struct alignas(128) Map { unsigned long long words[16]; };
extern "C" __global__ void probe(const __grid_constant__ Map map, const __grid_constant__ Map same,
                                 unsigned long long* out) {
    int found = 0;
"""
TAIL = """
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 16; ++i) { out[i] = map.words[i]; out[16 + i] = same.words[i]; }
    out[32] = found;
}
"""
SIMULATED = "    found = *(const int*)map.words[1];\n"
HARDWARE = """
    __shared__ alignas(128) int tile[8][32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned target = (unsigned)__cvta_generic_to_shared(tile), gate = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(gate) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(gate), "r"(8 * 32 * 4) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" :: "r"(target), "l"(&map), "r"(0), "r"(0), "r"(gate) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 :: "r"(gate) : "memory");
    found = tile[0][0];
"""


class TensorMaps(Hazard):
    """A launch has the old map or the new one, wholly, and the memory there; one begun after the change has the new.

    Each tensor has a number of its own, and is closed when the map has left it.
    """

    oracle = (
        "kernels store the map as they were given it, twice, and the number that stands in the tensor which they reach "
        "through it; the bytes that Python reads are those of one map"
    )
    threads = 3

    def __init__(self, env):
        super().__init__(env)
        self.supported = env.device.features.tensor_maps
        if self.supported:
            code = ftcuda.Program(HEAD + (SIMULATED if env.is_simulated else HARDWARE) + TAIL, "c++").compile(
                "ptx" if env.is_simulated else "cubin"
            )
            self.probe = code.get_kernel("probe")
        self.config = ftcuda.LaunchConfig(grid=1, block=32)
        self.host = LegacyPinnedMemoryResource()

    def tensor(self, state, number):
        buffer = self.env.device.allocate(4 * SHAPE[0] * SHAPE[1], stream=state.stream)
        buffer.fill(np.int32(number), stream=state.stream)
        state.stream.sync()
        view = StridedMemoryView.from_buffer(buffer, SHAPE, dtype="i4")
        state.numbers[bytes(view.as_tensor_map(SHAPE))] = number  # an address may come again: the last number counts
        return view

    def round(self, seed, random):
        if not self.supported:
            return None
        state = SimpleNamespace(stream=self.env.device.create_stream(), numbers={}, begun=0, ended=0)
        state.map = self.tensor(state, 0).as_tensor_map(SHAPE)
        return state

    def act(self, state, index, random):
        if state is None:
            return 0
        return self.replace_all(state) if index == 0 else self.launch_all(state, index)

    def replace_all(self, state):
        for number in range(1, TURNS):
            old, new = state.map.view, self.tensor(state, number)
            state.begun = number
            state.map.replace_address(new)
            state.ended = number
            old.exporting_obj.close()
        return TURNS

    def launch_all(self, state, index):
        stream, out = self.env.device.create_stream(), self.host.allocate(8 * (2 * WORDS + 1))
        bound = self.probe.bind(self.config, state.map, state.map, out) if index % 2 else None
        found = np.frombuffer(out, np.uint64)
        for _ in range(TURNS):
            read = bytes(state.map)
            if read not in state.numbers:
                raise AssertionError(f"bytes of one map and of another: {read.hex()}")
            least = state.ended
            try:
                if bound:
                    bound.launch(stream)
                else:
                    ftcuda.launch(stream, self.config, self.probe, state.map, state.map, out)
            except ClosedError:  # it took the map before the address was changed
                continue
            most = state.begun
            stream.sync()
            first, second = found[:WORDS].tobytes(), found[WORDS : 2 * WORDS].tobytes()
            if first != second or first not in state.numbers:
                raise AssertionError(f"half of one map and half of another: {first.hex()} and {second.hex()}")
            if not least <= found[-1] <= most:
                raise AssertionError(f"the tensor is number {found[-1]}, and should be one of {least} to {most}")
        stream.close()
        return TURNS

    def check(self, state):
        if state is not None:
            state.map.view.exporting_obj.close()
            state.stream.close()
