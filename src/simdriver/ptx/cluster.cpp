// What the blocks of a cluster share: a barrier, and each other's shared memory.
#include "machine.hpp"

namespace ftcuda::sim::ptx {

namespace {

// The lanes whose arrival counts in the phase that is not over yet.
std::uint32_t arrived_in_this_phase(const Warp& warp) noexcept {
    return warp.cluster_arrived & (warp.block->cluster->phase ? warp.cluster_phase : ~warp.cluster_phase);
}

}  // namespace

// ---- The barrier

void arrive_at_cluster(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    Cluster& cluster = *warp.block->cluster;
    if (const std::uint32_t again = warp.cluster_arrived & mask; again != 0)
        return fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(again)), Fault::cluster_barrier_misuse);
    warp.cluster_arrived |= mask;
    warp.cluster_phase = cluster.phase ? warp.cluster_phase | mask : warp.cluster_phase & ~mask;
    cluster.arrived += static_cast<unsigned>(__builtin_popcount(mask));
}

void wait_for_cluster(Warp& warp, const Instruction&, std::uint32_t mask) {
    warp.waiting |= mask;
    each(mask, [&](unsigned lane) { warp.barrier_of[lane] = cluster_barrier; });
}

// A thread that is gone is not waited for: its own arrival must not stand for another's.
void leave_cluster(Warp& warp, std::uint32_t mask) {
    warp.block->cluster->arrived -= static_cast<unsigned>(__builtin_popcount(arrived_in_this_phase(warp) & mask));
    warp.cluster_arrived &= ~mask;
}

bool release_cluster(Cluster& cluster) {
    unsigned present = 0;
    for (unsigned rank = 0; rank < cluster.size; ++rank)
        present += cluster.blocks[rank].threads - cluster.blocks[rank].exited;
    if (cluster.arrived != 0 && cluster.arrived >= present) {
        cluster.phase = !cluster.phase;
        cluster.arrived = 0;
    }
    bool released = false;
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        for (Warp& warp : cluster.blocks[rank].warps) {
            if (warp.waiting == 0) continue;
            std::uint32_t done = warp.waiting & warp.cluster_arrived & ~arrived_in_this_phase(warp);
            each(done, [&](unsigned lane) {
                done &= warp.barrier_of[lane] == cluster_barrier ? all_lanes : ~(std::uint32_t{1} << lane);
            });
            warp.waiting &= ~done;
            warp.cluster_arrived &= ~done;
            released = released || done != 0;
        }
    }
    return released;
}

// ---- Addresses

Block* block_behind(const Block& block, std::uint64_t address) noexcept {
    const Cluster& cluster = *block.cluster;
    const std::uint64_t tag = address >> block_shift;
    const std::uint64_t rank = cluster.size == 1 || tag == 0 ? block.rank : tag - 1;
    if (rank >= cluster.size || finished(cluster.blocks[rank])) return nullptr;
    return &cluster.blocks[rank];
}

// mapa. a: an address in the shared memory of a block of the cluster, b: the rank of the one where the same place is
// wanted. space: how a is written, and d.
void map_to_block(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const Block& block = *warp.block;
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t window = instruction.space == Space::generic ? shared_window : 0;
    each(mask, [&](unsigned lane) {
        const auto rank = static_cast<std::uint32_t>(b[lane]);
        if ((a[lane] & window_mask) != window) return fail(warp, instruction, lane, Fault::illegal_address, a[lane], 1);
        if (rank >= block.cluster->size) return fail(warp, instruction, lane, Fault::absent_block, a[lane], 1);
        if (block.cluster->size == 1) {
            d[lane] = a[lane];
            return;
        }
        const std::uint64_t address = (a[lane] & ((std::uint64_t{1} << block_shift) - 1)) | tag_of(rank);
        d[lane] = window != 0 ? window | address : block_address(block, address);
    });
}

// getctarank. a: as of mapa.
void rank_of_address(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const Block& block = *warp.block;
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t window = instruction.space == Space::generic ? shared_window : 0;
    each(mask, [&](unsigned lane) {
        const std::uint64_t tag = (a[lane] & ~window_mask) >> block_shift;
        const std::uint64_t rank = block.cluster->size == 1 || tag == 0 ? block.rank : tag - 1;
        if ((a[lane] & window_mask) != window || rank >= block.cluster->size)
            return fail(warp, instruction, lane, Fault::illegal_address, a[lane], 1);
        d[lane] = rank;
    });
}

}  // namespace ftcuda::sim::ptx
