// The blocks of a launch: clusters in turn, the blocks of one interleaved, and the barriers of a block. A block without
// a cluster is one of its own; all blocks of a cooperative launch are interleaved.
#include "machine.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

constexpr unsigned slice_instructions = 4096;  // of one warp before another gets its turn

void start_warp(Warp& warp, Block& block, Machine& machine, unsigned first_thread, unsigned count) {
    const Launch& launch = *machine.launch;
    warp.machine = &machine;
    warp.block = &block;
    warp.first_thread = first_thread;
    warp.constants = machine.constants.data();
    warp.registers.assign(std::size_t{special_count} * lanes, 0);
    const unsigned warp_number = first_thread / lanes;
    const unsigned warps = (block.threads + lanes - 1) / lanes;
    const auto set = [&](Special row, unsigned lane, std::uint64_t value) {
        warp.registers[std::size_t{row} * lanes + lane] = value;
    };
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::array<unsigned, 3> thread = thread_index(machine, first_thread + lane);
        for (unsigned axis = 0; axis < 3; ++axis) {
            set(static_cast<Special>(tid_x + axis), lane, thread[axis]);
            set(static_cast<Special>(ntid_x + axis), lane, launch.block[axis]);
            set(static_cast<Special>(ctaid_x + axis), lane, block.index[axis]);
            set(static_cast<Special>(nctaid_x + axis), lane, launch.grid[axis]);
            set(static_cast<Special>(clusterid_x + axis), lane, block.index[axis] / launch.cluster[axis]);
            set(static_cast<Special>(nclusterid_x + axis), lane, launch.grid[axis] / launch.cluster[axis]);
            set(static_cast<Special>(cluster_ctaid_x + axis), lane, block.index[axis] % launch.cluster[axis]);
            set(static_cast<Special>(cluster_nctaid_x + axis), lane, launch.cluster[axis]);
        }
        const std::uint32_t bit = std::uint32_t{1} << lane;
        set(lane_id, lane, lane);
        set(warp_id, lane, warp_number);
        set(number_of_warps, lane, warps);
        set(number_of_sms, lane, 1);
        set(cluster_ctarank, lane, block.rank);
        set(cluster_nctarank, lane, block.cluster->size);
        set(is_explicit_cluster, lane, launch.is_explicit_cluster);
        set(envreg1, lane, launch.workspace >> 32);
        set(envreg2, lane, launch.workspace & 0xffff'ffff);
        set(lanemask_eq, lane, bit);
        set(lanemask_lt, lane, bit - 1);
        set(lanemask_le, lane, bit | (bit - 1));
        set(lanemask_gt, lane, ~(bit | (bit - 1)));
        set(lanemask_ge, lane, ~(bit - 1));
        set(dynamic_smem_size, lane, launch.dynamic_shared_bytes);
        set(total_smem_size, lane, block.shared.size());
    }
    const std::uint32_t live = count >= lanes ? all_lanes : (std::uint32_t{1} << count) - 1;
    if (!push_frame(warp, *machine.kernel, nullptr, live)) machine.outcome.fault = Fault::stack_overflow;
}

void start_block(Block& block, Machine& machine, Cluster& cluster, unsigned rank,
                 const std::array<unsigned, 3>& index) {
    const Launch& launch = *machine.launch;
    block.index = index;
    block.cluster = &cluster;
    block.rank = rank;
    block.shared.assign(machine.shared_bytes + launch.dynamic_shared_bytes, std::byte{0xa5});
    block.threads = launch.block[0] * launch.block[1] * launch.block[2];
    block.exited = 0;
    std::fill(std::begin(block.barriers), std::end(block.barriers), Barrier{});
    const unsigned warps = (block.threads + lanes - 1) / lanes;
    block.warps.clear();
    block.warps.resize(warps);
    for (unsigned warp = 0; warp < warps; ++warp)
        start_warp(block.warps[warp], block, machine, warp * lanes, block.threads - warp * lanes);
}

// The `number`-th cluster of the grid, in the blocks from `blocks` on.
void start_cluster(Cluster& cluster, Block* blocks, Machine& machine, std::uint64_t number) {
    const Launch& launch = *machine.launch;
    const std::array<unsigned, 3>& extent = launch.cluster;
    cluster = {blocks, extent[0] * extent[1] * extent[2]};
    const std::uint64_t across = launch.grid[0] / extent[0];
    const std::uint64_t down = launch.grid[1] / extent[1];
    const unsigned first[3] = {static_cast<unsigned>(number % across) * extent[0],
                               static_cast<unsigned>(number / across % down) * extent[1],
                               static_cast<unsigned>(number / across / down) * extent[2]};
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        start_block(blocks[rank], machine, cluster, rank,
                    {first[0] + rank % extent[0], first[1] + rank / extent[0] % extent[1],
                     first[2] + rank / extent[0] / extent[1]});
    }
}

// Lets the threads at complete barriers go on.
bool release_barriers(Block& block) {
    bool released = false;
    for (unsigned index = 0; index < 16; ++index) {
        Barrier& barrier = block.barriers[index];
        if (barrier.arrived == 0) continue;
        const unsigned expected = barrier.expected != 0 ? barrier.expected : block.threads - block.exited;
        if (barrier.arrived < expected) continue;
        const unsigned threads = barrier.arrived;
        for (Warp& warp : block.warps) {
            std::uint32_t here = 0;
            each(warp.waiting,
                 [&](unsigned lane) { here |= warp.barrier_of[lane] == index ? std::uint32_t{1} << lane : 0; });
            if (here == 0) continue;
            warp.waiting &= ~here;
            if (warp.reduction != nullptr) {
                const unsigned kind = warp.reduction->option2;
                const std::uint64_t result = kind == 1   ? barrier.votes
                                             : kind == 2 ? barrier.votes == threads
                                                         : barrier.votes != 0;
                std::uint64_t* const d = out(warp, warp.reduction->d);
                each(here, [&](unsigned lane) { d[lane] = result; });
                warp.reduction = nullptr;
            }
        }
        barrier = Barrier{};
        released = true;
    }
    return released;
}

// True if some warp of the block did something.
bool step_block(Block& block, Machine& machine) {
    bool progressed = false;
    for (Warp& warp : block.warps) {
        if (warp.frames.empty() || warp.frames.front().live == 0) continue;
        progressed = run_warp(warp, slice_instructions) || progressed;
        if (machine.failed()) return true;
        if (machine.launch->abort != nullptr && machine.launch->abort->load(std::memory_order_relaxed)) {
            machine.outcome.fault = Fault::aborted;
            return true;
        }
        if (machine.outcome.instructions > machine.launch->instruction_budget) {
            machine.outcome.fault = Fault::out_of_budget;
            return true;
        }
        if (machine.launch->slice) machine.launch->slice();
    }
    const bool released = release_barriers(block);
    return release_cluster(*block.cluster) || released || progressed;
}

void deadlock(Block& block, Machine& machine) {
    machine.outcome.fault = Fault::barrier_deadlock;
    machine.outcome.block = block.index;
    for (const Warp& warp : block.warps) {
        if (warp.waiting == 0) continue;
        const auto lane = static_cast<unsigned>(__builtin_ctz(warp.waiting));
        const Frame& frame = warp.frames.back();
        machine.outcome.thread = thread_index(machine, warp.first_thread + lane);
        machine.outcome.line = frame.function->instructions[frame.pc[lane] - 1].line;
        return;
    }
}

std::vector<std::uint64_t> order_of_clusters(std::uint64_t count, std::uint64_t seed) {
    std::vector<std::uint64_t> order(count);
    for (std::uint64_t index = 0; index < count; ++index) order[index] = index;
    std::uint64_t state = seed;
    for (std::uint64_t index = count; seed != 0 && index > 1; --index) {  // Fisher and Yates, over SplitMix64
        state += 0x9e3779b97f4a7c15;
        std::uint64_t mixed = state;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        std::swap(order[index - 1], order[(mixed ^ (mixed >> 31)) % index]);
    }
    return order;
}

// Until all are done: any of them may wait for any other.
void run_together(Machine& machine, std::vector<Block>& blocks) {
    for (bool running = true; running && !machine.failed();) {
        running = false;
        bool progressed = false;
        for (Block& block : blocks) {
            if (machine.failed()) return;
            if (finished(block)) continue;
            running = true;
            progressed = step_block(block, machine) || progressed;
        }
        if (running && !progressed) {
            for (Block& block : blocks) {
                if (!finished(block)) return deadlock(block, machine);
            }
        }
    }
}

}  // namespace

void run_blocks(Machine& machine) {
    const Launch& launch = *machine.launch;
    const std::uint64_t count = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    const std::size_t size = std::size_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
    if (launch.cooperative) {
        std::vector<Block> blocks(count);
        std::vector<Cluster> clusters(count / size);
        for (std::uint64_t number = 0; number < clusters.size(); ++number)
            start_cluster(clusters[number], blocks.data() + number * size, machine, number);
        return run_together(machine, blocks);
    }
    std::vector<Block> blocks(size);
    Cluster cluster;
    const std::vector<std::uint64_t> order =
        launch.seed != 0 ? order_of_clusters(count / size, launch.seed) : std::vector<std::uint64_t>();
    for (std::uint64_t number = 0; number < count / size && !machine.failed(); ++number) {
        start_cluster(cluster, blocks.data(), machine, order.empty() ? number : order[number]);
        run_together(machine, blocks);
    }
}

}  // namespace ftcuda::sim::ptx
