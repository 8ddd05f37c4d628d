// Control flow, barriers and what the lanes of a warp do together.
#include "machine.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

constexpr std::uint64_t local_limit = 512 * 1024;  // bytes of local memory for one thread
constexpr std::size_t depth_limit = 1024;          // nested calls

std::uint32_t present(const Warp& warp) noexcept { return warp.frames.front().live; }

void arrive(Warp& warp, const Instruction& instruction, std::uint32_t mask, unsigned index, unsigned expected) {
    Barrier& barrier = warp.block->barriers[index & 15];
    barrier.arrived += static_cast<unsigned>(__builtin_popcount(mask));
    barrier.expected = expected;
    warp.waiting |= mask;
    warp.reduction = instruction.option2 != 0 ? &instruction : warp.reduction;
    each(mask, [&](unsigned lane) { warp.barrier_of[lane] = static_cast<std::uint8_t>(index & 15); });
}

// For an instruction that the lanes of `wanted` execute together: true when those that can still come are here.
// Otherwise the ones that are here go back to it and wait.
bool together(Warp& warp, std::uint32_t mask, std::uint32_t wanted) {
    const std::uint32_t missing = wanted & warp.frame().live & ~warp.waiting & ~mask;
    if (missing == 0 || warp.insisted) {
        warp.insisted = false;
        return true;
    }
    Frame& frame = warp.frame();
    each(mask, [&](unsigned lane) { --frame.pc[lane]; });
    warp.parked |= mask;
    return false;
}

std::uint32_t member_mask(const Warp& warp, RowRef row, std::uint32_t mask) noexcept {
    return static_cast<std::uint32_t>(in(warp, row)[__builtin_ctz(mask)]);
}

}  // namespace

bool push_frame(Warp& warp, const Function& function, const CallSite* site, std::uint32_t mask) {
    if (warp.frames.size() >= depth_limit) return false;
    Frame frame;
    frame.function = &function;
    frame.site = site;
    frame.callers = mask;
    frame.live = mask;
    if (!warp.frames.empty()) {
        const Frame& caller = warp.frame();
        frame.row_base = caller.row_base + std::size_t{caller.function->registers} * lanes;
        frame.local_base = (caller.local_base + caller.function->local_bytes + 15) / 16 * 16;
    }
    const std::size_t rows = frame.row_base + std::size_t{function.registers} * lanes;
    if (warp.registers.size() < rows) warp.registers.resize(rows);
    const std::uint64_t local = frame.local_base + function.local_bytes;
    if (local > local_limit) return false;
    if (local > warp.local_stride) {
        const std::uint64_t stride = std::min(local_limit, std::max(local, 2 * warp.local_stride) + 15) / 16 * 16;
        std::vector<std::byte> wider(stride * lanes);
        for (unsigned lane = 0; lane < lanes && warp.local_stride != 0; ++lane) {
            std::memcpy(wider.data() + lane * stride, warp.local.data() + lane * warp.local_stride, warp.local_stride);
        }
        warp.local.swap(wider);
        warp.local_stride = stride;
    }
    // The special registers are the first rows of every frame.
    if (frame.row_base != 0)
        std::copy_n(warp.registers.begin(), std::size_t{special_count} * lanes,
                    warp.registers.begin() + static_cast<std::ptrdiff_t>(frame.row_base));
    warp.rows = warp.registers.data() + frame.row_base;
    warp.frames.push_back(frame);
    return true;
}

void branch(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    Frame& frame = warp.frame();
    each(mask, [&](unsigned lane) { frame.pc[lane] = instruction.target; });
}

void leave(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (warp.frames.size() == 1) return finish(warp, instruction, mask);
    warp.frame().live &= ~mask;
}

void finish(Warp& warp, const Instruction&, std::uint32_t mask) {
    leave_cluster(warp, mask);
    for (Frame& frame : warp.frames) frame.live &= ~mask;
    warp.exited |= mask;
    warp.block->exited += static_cast<unsigned>(__builtin_popcount(mask));
}

void set_conditional(Warp& warp, const Instruction& instruction, unsigned lane, const CallSite& site,
                     const std::byte* local) {
    const Launch& launch = *warp.machine->launch;
    if (!launch.set_conditional) return fail(warp, instruction, lane, Fault::no_conditional_handle);
    std::uint64_t handle = 0;
    std::uint32_t value = 0;
    std::memcpy(&handle, local + site.arguments[0], sizeof handle);
    std::memcpy(&value, local + site.arguments[1], sizeof value);
    launch.set_conditional(handle, value);
}

void call(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const CallSite& site = warp.machine->code->calls[instruction.target];
    if (site.builtin != CallSite::Builtin::none) {
        const std::uint64_t base = warp.frame().local_base;
        each(mask, [&](unsigned lane) {
            if (warp.machine->failed()) return;
            std::byte* const local = warp.local.data() + lane * warp.local_stride + base;
            if (site.builtin == CallSite::Builtin::assertfail) {
                fail(warp, instruction, lane, Fault::assertion);
                return;
            }
            if (site.builtin == CallSite::Builtin::set_conditional)
                return set_conditional(warp, instruction, lane, site, local);
            std::uint64_t format = 0;
            std::uint64_t arguments = 0;
            std::memcpy(&format, local + site.arguments[0], sizeof format);
            std::memcpy(&arguments, local + site.arguments[1], sizeof arguments);
            std::string text;
            if (!print_formatted(warp, instruction, lane, format, arguments, text)) return;
            if (warp.machine->launch->print) warp.machine->launch->print(text);
            const auto length = static_cast<std::int32_t>(text.size());
            if (!site.results.empty()) std::memcpy(local + site.results[0], &length, sizeof length);
        });
        return;
    }
    std::uint32_t callee = site.function;
    std::uint32_t callers = mask;
    if (site.indirect) {
        // The lanes that call the same function as the first one go together; the others come back to the call.
        const std::uint64_t* const pointers = in(warp, site.pointer);
        const std::uint64_t pointer = pointers[__builtin_ctz(mask)];
        callers = 0;
        each(mask, [&](unsigned lane) { callers |= pointers[lane] == pointer ? std::uint32_t{1} << lane : 0; });
        each(mask & ~callers, [&](unsigned lane) { --warp.frame().pc[lane]; });
        const std::uint64_t index = pointer & ~window_mask;
        if ((pointer & window_mask) != function_window || index >= warp.machine->code->functions.size()) {
            return fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(mask)), Fault::invalid_program_counter,
                        pointer);
        }
        callee = static_cast<std::uint32_t>(index);
    }
    const Function& function = warp.machine->code->functions[callee];
    if (!function.is_defined || function.refusal || function.parameters.size() != site.arguments.size()) {
        return fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(mask)), Fault::invalid_program_counter);
    }
    const std::uint64_t caller_base = warp.frame().local_base;
    if (!push_frame(warp, function, &site, callers)) {
        return fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(mask)), Fault::stack_overflow);
    }
    const std::uint64_t callee_base = warp.frame().local_base;
    each(callers, [&](unsigned lane) {
        std::byte* const local = warp.local.data() + lane * warp.local_stride;
        for (std::size_t index = 0; index < site.arguments.size(); ++index) {
            std::memcpy(local + callee_base + function.parameters[index].offset,
                        local + caller_base + site.arguments[index], function.parameters[index].size);
        }
    });
}

void trap(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(mask)), Fault::trap);
}

void breakpoint(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    fail(warp, instruction, static_cast<unsigned>(__builtin_ctz(mask)), Fault::breakpoint);
}

// a: index, b: number of threads (0 = all). option: 0 wait, 1 arrive only. option2: 0, 1 popc, 2 and, 3 or of predicate
// c.
void barrier(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
    const auto index = static_cast<unsigned>(in(warp, instruction.a)[first]);
    const auto expected = static_cast<unsigned>(in(warp, instruction.b)[first]);
    if (index > 15) return fail(warp, instruction, first, Fault::trap);
    if (instruction.option2 != 0) {
        std::uint32_t holds = predicate_mask(in(warp, instruction.c)) & mask;
        if (instruction.count == 2) holds = ~holds & mask;  // the predicate is negated
        warp.block->barriers[index].votes += static_cast<unsigned>(__builtin_popcount(holds));
    }
    if (instruction.option == 1) {
        warp.block->barriers[index].arrived += static_cast<unsigned>(__builtin_popcount(mask));
        warp.block->barriers[index].expected = expected;
        return;
    }
    arrive(warp, instruction, mask, index, expected);
}

// option: 0 idx, 1 up, 2 down, 3 bfly. a value, b lane or delta, c clamp and segment, e members
void shuffle(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (!together(warp, mask, member_mask(warp, instruction.e, mask))) return;
    std::uint64_t values[lanes];
    std::copy_n(in(warp, instruction.a), lanes, values);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    std::uint64_t* const valid = out(warp, instruction.d2);
    std::uint64_t results[lanes];
    std::uint64_t flags[lanes];
    each(mask, [&](unsigned lane) {
        const auto amount = static_cast<unsigned>(b[lane]) & 31;
        const auto control = static_cast<unsigned>(c[lane]);
        const unsigned segment = (control >> 8) & 31;
        const unsigned clamp = control & 31;
        const unsigned highest = (lane & segment) | (clamp & ~segment);
        const unsigned lowest = lane & segment;
        int source = 0;
        bool inside = false;
        switch (instruction.option) {
        case 1:
            source = static_cast<int>(lane) - static_cast<int>(amount);
            inside = source >= static_cast<int>(highest);
            break;
        case 2:
            source = static_cast<int>(lane + amount);
            inside = source <= static_cast<int>(highest);
            break;
        case 3:
            source = static_cast<int>(lane ^ amount);
            inside = source <= static_cast<int>(highest);
            break;
        default: source = static_cast<int>(lowest | (amount & ~segment)); inside = source <= static_cast<int>(highest);
        }
        if (!inside) source = static_cast<int>(lane);
        results[lane] = values[source & 31];
        flags[lane] = inside;
    });
    each(mask, [&](unsigned lane) {
        d[lane] = results[lane] & 0xffff'ffff;
        if (instruction.d2.index != 0) valid[lane] = flags[lane];
    });
}

// option: 0 all, 1 any, 2 uni, 3 ballot. a predicate, b members
void vote(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (!together(warp, mask, member_mask(warp, instruction.b, mask))) return;
    std::uint32_t holds = predicate_mask(in(warp, instruction.a)) & mask;
    if (instruction.count == 2) holds = ~holds & mask;
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t result = instruction.option == 0   ? holds == mask
                                 : instruction.option == 1 ? holds != 0
                                 : instruction.option == 2 ? holds == mask || holds == 0
                                                           : holds;
    each(mask, [&](unsigned lane) { d[lane] = result; });
}

// option: 0 any, 1 all. a value, b members
void match(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (!together(warp, mask, member_mask(warp, instruction.b, mask))) return;
    const std::uint64_t low = size_of(instruction.type) == 4 ? 0xffff'ffff : ~std::uint64_t{0};
    std::uint64_t values[lanes];
    std::copy_n(in(warp, instruction.a), lanes, values);
    std::uint64_t* const d = out(warp, instruction.d);
    std::uint64_t* const d2 = out(warp, instruction.d2);
    each(mask, [&](unsigned lane) {
        std::uint32_t same = 0;
        each(mask, [&](unsigned other) {
            same |= (values[other] & low) == (values[lane] & low) ? std::uint32_t{1} << other : 0;
        });
        if (instruction.option == 0) {
            d[lane] = same;
        } else {
            d[lane] = same == mask ? mask : 0;
            if (instruction.d2.index != 0) d2[lane] = same == mask;
        }
    });
}

// option: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor. a value, b members
void reduce(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (!together(warp, mask, member_mask(warp, instruction.b, mask))) return;
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    auto result = static_cast<std::uint32_t>(a[__builtin_ctz(mask)]);
    each(mask & (mask - 1), [&](unsigned lane) {
        const auto value = static_cast<std::uint32_t>(a[lane]);
        const bool less = is_signed(instruction.type)
                              ? static_cast<std::int32_t>(value) < static_cast<std::int32_t>(result)
                              : value < result;
        switch (instruction.option) {
        case 0: result += value; break;
        case 1: result = less ? value : result; break;
        case 2: result = less ? result : value; break;
        case 3: result &= value; break;
        case 4: result |= value; break;
        default: result ^= value;
        }
    });
    each(mask, [&](unsigned lane) { d[lane] = result; });
}

void active_mask(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) { d[lane] = mask; });
}

void warp_barrier(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    if (!together(warp, mask, member_mask(warp, instruction.a, mask) & present(warp))) return;
}

}  // namespace ftcuda::sim::ptx
