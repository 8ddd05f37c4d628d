// Running a launch, and a warp of it: reconvergence, faults. Blocks are in blocks.cpp.
#include "machine.hpp"

#include <algorithm>
#include <cstdio>

namespace ftcuda::sim::ptx {

namespace {

constexpr unsigned loop_patience = 64;  // backward branches before lanes elsewhere in the warp get theirs

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
    case Fault::cluster_barrier_misuse:
        return "a thread arrives at the barrier of its cluster again before it waited there";
    case Fault::absent_block:
        return "access to the shared memory of a block that has exited, or of none of the cluster";
    case Fault::no_tensor_map: return "a tile is copied by what is no tensor map of its rank";
    case Fault::tile_place: return "a tile begins where no tile can be copied";
    case Fault::tensor_map_mode: return "a tile is copied by a tensor map in a mode that is not simulated";
    case Fault::no_conditional_handle:
        return "cudaGraphSetConditional outside of a launch of a graph that has conditional handles";
    case Fault::barrier_deadlock: return "threads wait at a barrier that the others cannot reach";
    case Fault::stack_overflow: return "stack overflow";
    case Fault::aborted: return "aborted";
    case Fault::out_of_budget: return "instruction budget used up";
    }
    return "fault";
}

void describe(Outcome& outcome, const Machine& machine) {
    char text[320];
    int length = std::snprintf(text, sizeof text, "%s in kernel %s, block (%u,%u,%u), thread (%u,%u,%u), ptx line %d",
                               name_of(outcome.fault), machine.kernel->name.c_str(), outcome.block[0], outcome.block[1],
                               outcome.block[2], outcome.thread[0], outcome.thread[1], outcome.thread[2], outcome.line);
    if (outcome.fault == Fault::illegal_address || outcome.fault == Fault::misaligned_address ||
        outcome.fault == Fault::absent_block) {
        const char* const access = outcome.access == Access::read    ? "read"
                                   : outcome.access == Access::write ? "write"
                                                                     : "atomic";
        length +=
            std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ": %s of %zu bytes at 0x%llx",
                          access, outcome.access_bytes, static_cast<unsigned long long>(outcome.address));
    }
    outcome.message.assign(text, static_cast<std::size_t>(std::min<int>(length, sizeof text - 1)));
    if (outcome.detail != nullptr) outcome.message.append(": ").append(outcome.detail);
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

std::array<unsigned, 3> thread_index(const Machine& machine, unsigned thread) noexcept {
    const auto& block = machine.launch->block;
    return {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
}

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
    run_blocks(machine);
    if (machine.failed()) describe(machine.outcome, machine);
    return machine.outcome;
}

}  // namespace ftcuda::sim::ptx
