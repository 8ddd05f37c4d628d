// Running a launch: blocks, warps, reconvergence, barriers.
#include "machine.hpp"

#include <algorithm>
#include <cstdio>

namespace ftcuda::sim::ptx {

namespace {

constexpr unsigned slice_instructions = 4096;  // of one warp before another gets its turn
constexpr unsigned loop_patience = 64;         // backward branches before lanes elsewhere in the warp get theirs

const char* name_of(Fault fault) noexcept {
    switch (fault) {
    case Fault::none: return "no fault";
    case Fault::illegal_address: return "illegal address";
    case Fault::misaligned_address: return "misaligned address";
    case Fault::trap: return "trap";
    case Fault::breakpoint: return "breakpoint";
    case Fault::assertion: return "assertion failed";
    case Fault::invalid_program_counter: return "call through a bad function address";
    case Fault::barrier_misuse:
        return "an mbarrier is given what it does not expect: more arrivals or bytes, or none ever";
    case Fault::barrier_deadlock: return "threads wait at a barrier that the others cannot reach";
    case Fault::stack_overflow: return "stack overflow";
    case Fault::aborted: return "aborted";
    case Fault::out_of_budget: return "instruction budget used up";
    }
    return "fault";
}

std::array<unsigned, 3> thread_index(const Machine& machine, unsigned thread) noexcept {
    const auto& block = machine.launch->block;
    return {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
}

void describe(Outcome& outcome, const Machine& machine) {
    char text[320];
    int length = std::snprintf(text, sizeof text, "%s in kernel %s, block (%u,%u,%u), thread (%u,%u,%u), ptx line %d",
                               name_of(outcome.fault), machine.kernel->name.c_str(), outcome.block[0], outcome.block[1],
                               outcome.block[2], outcome.thread[0], outcome.thread[1], outcome.thread[2], outcome.line);
    if (outcome.fault == Fault::illegal_address || outcome.fault == Fault::misaligned_address) {
        const char* const access = outcome.access == Access::read    ? "read"
                                   : outcome.access == Access::write ? "write"
                                                                     : "atomic";
        length +=
            std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ": %s of %zu bytes at 0x%llx",
                          access, outcome.access_bytes, static_cast<unsigned long long>(outcome.address));
    }
    outcome.message.assign(text, static_cast<std::size_t>(std::min<int>(length, sizeof text - 1)));
}

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
        }
        const std::uint32_t bit = std::uint32_t{1} << lane;
        set(lane_id, lane, lane);
        set(warp_id, lane, warp_number);
        set(number_of_warps, lane, warps);
        set(number_of_sms, lane, 1);
        set(one, lane, 1);
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

void start_block(Block& block, Machine& machine, std::uint64_t number) {
    const Launch& launch = *machine.launch;
    block.index = {static_cast<unsigned>(number % launch.grid[0]),
                   static_cast<unsigned>(number / launch.grid[0] % launch.grid[1]),
                   static_cast<unsigned>(number / launch.grid[0] / launch.grid[1])};
    block.shared.assign(machine.shared_bytes + launch.dynamic_shared_bytes, std::byte{0xa5});
    block.threads = launch.block[0] * launch.block[1] * launch.block[2];
    block.exited = 0;
    block.cluster_arrived = 0;
    block.cluster_phase = false;
    std::fill(std::begin(block.barriers), std::end(block.barriers), Barrier{});
    const unsigned warps = (block.threads + lanes - 1) / lanes;
    block.warps.clear();
    block.warps.resize(warps);
    for (unsigned warp = 0; warp < warps; ++warp)
        start_warp(block.warps[warp], block, machine, warp * lanes, block.threads - warp * lanes);
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

bool finished(const Block& block) noexcept { return block.exited == block.threads; }

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
    return release_cluster(block) || released || progressed;
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

std::vector<std::uint64_t> order_of_blocks(std::uint64_t count, std::uint64_t seed) {
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

void run_blocks_in_turn(Machine& machine, std::uint64_t count) {
    Block block;
    const std::vector<std::uint64_t> order =
        machine.launch->seed != 0 ? order_of_blocks(count, machine.launch->seed) : std::vector<std::uint64_t>();
    for (std::uint64_t index = 0; index < count && !machine.failed(); ++index) {
        start_block(block, machine, order.empty() ? index : order[index]);
        while (!machine.failed() && !finished(block)) {
            if (!step_block(block, machine) && !finished(block)) deadlock(block, machine);
        }
    }
}

// All blocks at once: any of them may wait for any other.
void run_blocks_together(Machine& machine, std::uint64_t count) {
    std::vector<Block> blocks(count);
    for (std::uint64_t index = 0; index < count; ++index) start_block(blocks[index], machine, index);
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

// Ends the top frame: its callers get their results and go on.
void return_results(Warp& warp) {
    const Frame done = warp.frames.back();
    warp.frames.pop_back();
    const Frame& caller = warp.frame();
    warp.rows = warp.registers.data() + caller.row_base;
    const std::vector<Symbol>& results = done.function->results;
    const std::size_t count = std::min(done.site->results.size(), results.size());
    each(done.callers, [&](unsigned lane) {
        std::byte* const local = warp.local.data() + lane * warp.local_stride;
        for (std::size_t index = 0; index < count; ++index) {
            std::memcpy(local + caller.local_base + done.site->results[index],
                        local + done.local_base + results[index].offset, results[index].size);
        }
    });
}

}  // namespace

void fail(Warp& warp, const Instruction& instruction, unsigned lane, Fault fault, std::uint64_t address,
          std::size_t bytes, Access access) {
    Outcome& outcome = warp.machine->outcome;
    if (outcome.fault != Fault::none) return;
    outcome.fault = fault;
    outcome.address = address;
    outcome.access_bytes = bytes;
    outcome.access = access;
    outcome.line = instruction.line;
    outcome.block = warp.block->index;
    outcome.thread = thread_index(*warp.machine, warp.first_thread + lane);
}

// The lanes with the smallest program counter run until they meet others or part. Lanes that loop for long while others
// wait let those go first, so that a lane which spins on another's store is not alone for ever.
bool run_warp(Warp& warp, unsigned slice) {
    Machine& machine = *warp.machine;
    const unsigned begun_with = slice;
    while (slice != 0 && !machine.failed()) {
        Frame& frame = warp.frame();
        if (frame.live == 0) {
            if (warp.frames.size() == 1) break;
            return_results(warp);
            continue;
        }
        std::uint32_t candidates = frame.live & ~warp.waiting & ~warp.parked;
        if (candidates == 0) {
            if ((frame.live & warp.parked & ~warp.waiting) == 0) break;  // all wait at a barrier of the block
            warp.parked = 0;
            warp.insisted = true;
            continue;
        }
        std::uint32_t first = ~std::uint32_t{0};
        std::uint32_t highest = 0;
        each(candidates, [&](unsigned lane) {
            first = std::min(first, frame.pc[lane]);
            highest = std::max(highest, frame.pc[lane]);
        });
        if (first != highest && warp.loops > loop_patience) {
            first = highest;
            warp.loops = 0;
        }
        std::uint32_t group = 0;
        std::uint32_t limit = ~std::uint32_t{0};  // where lanes that are ahead wait to be joined
        each(candidates, [&](unsigned lane) {
            if (frame.pc[lane] == first) {
                group |= std::uint32_t{1} << lane;
            } else if (frame.pc[lane] > first) {
                limit = std::min(limit, frame.pc[lane]);
            }
        });
        // Parked lanes at the same place are joined here.
        each(frame.live & warp.parked, [&](unsigned lane) {
            if (frame.pc[lane] == first) {
                group |= std::uint32_t{1} << lane;
                warp.parked &= ~(std::uint32_t{1} << lane);
            } else if (frame.pc[lane] > first) {
                limit = std::min(limit, frame.pc[lane]);
            }
        });
        const bool alone = group == (frame.live & ~warp.waiting);
        const Instruction* const code = frame.function->instructions.data();
        const unsigned width = static_cast<unsigned>(__builtin_popcount(group));
        std::uint32_t pc = first;
        for (;;) {
            const Instruction& instruction = code[pc];
            std::uint32_t mask = group;
            if (instruction.has_guard) {
                const std::uint32_t holds = predicate_mask(warp.rows + std::size_t{instruction.guard} * lanes);
                mask &= instruction.guard_negated ? ~holds : holds;
            }
            ++pc;
            machine.outcome.instructions += width;
            --slice;
            if (mask == 0) {
                if (pc >= limit || slice == 0) break;
                continue;
            }
            if (!instruction.control) {
                instruction.handler(warp, instruction, mask);
                if (machine.failed() || pc >= limit || slice == 0) break;
                continue;
            }
            if (instruction.handler == branch && mask == group) {
                if (instruction.target < pc) ++warp.loops;
                pc = instruction.target;
                if (alone && slice != 0) continue;
                break;
            }
            each(group, [&](unsigned lane) { frame.pc[lane] = pc; });
            pc = ~std::uint32_t{0};
            instruction.handler(warp, instruction, mask);
            break;
        }
        if (pc != ~std::uint32_t{0}) each(group, [&](unsigned lane) { frame.pc[lane] = pc; });
    }
    return slice != begun_with;
}

Outcome Code::run(const Launch& launch) const {
    Machine machine;
    machine.code = this;
    machine.launch = &launch;
    for (const Function& function : functions) {
        if (function.is_entry && function.name == launch.entry) machine.kernel = &function;
    }
    if (machine.kernel == nullptr) {
        machine.outcome.fault = Fault::invalid_program_counter;
        machine.outcome.message = "no kernel named " + std::string(launch.entry);
        return machine.outcome;
    }
    machine.shared_bytes = (shared_bytes + 127) / 128 * 128;
    machine.constants.resize(constants.size() * lanes);
    for (std::size_t row = 0; row < constants.size(); ++row) {
        std::fill_n(machine.constants.begin() + static_cast<std::ptrdiff_t>(row * lanes), lanes, constants[row]);
    }
    for (const auto& [row, variable] : variable_constants) {
        std::fill_n(machine.constants.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * lanes), lanes,
                    launch.variable_addresses[variable] + constants[row]);
    }
    const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    if (launch.cooperative) {
        run_blocks_together(machine, blocks);
    } else {
        run_blocks_in_turn(machine, blocks);
    }
    if (machine.failed()) describe(machine.outcome, machine);
    return machine.outcome;
}

}  // namespace ftcuda::sim::ptx
