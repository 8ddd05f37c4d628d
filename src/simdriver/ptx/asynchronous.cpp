// Barriers in memory, and the copies, stores and reductions that report to them.
//
// Copies are done at once, so that waiting for them later finds them done: the barrier has counted their bytes by then.
#include "machine.hpp"

namespace ftcuda::sim::ptx {

namespace {

constexpr std::uint32_t count_limit = (1 << 20) - 1;  // of arrivals, by the PTX ISA; of transactions likewise

// The 64 bits in shared memory, in a coding of our own: PTX leaves it open.
struct Mbarrier {
    std::uint32_t pending = 0;      // arrivals to come in this phase
    std::uint32_t expected = 0;     // arrivals in a phase
    std::int32_t transactions = 0;  // bytes to come in this phase
    bool phase = false;             // its parity

    static Mbarrier of(std::uint64_t bits) noexcept {
        Mbarrier made;
        made.pending = static_cast<std::uint32_t>(bits) & count_limit;
        made.expected = static_cast<std::uint32_t>(bits >> 20) & count_limit;
        made.transactions =
            static_cast<std::int32_t>(static_cast<std::int64_t>(bits << 1) >> 41);  // 23 bits with their sign
        made.phase = bits >> 63 != 0;
        return made;
    }

    std::uint64_t bits() const noexcept {
        return pending | std::uint64_t{expected} << 20 | (static_cast<std::uint64_t>(transactions) & 0x7f'ffff) << 40 |
               std::uint64_t{phase} << 63;
    }

    void end_phase_if_complete() noexcept {
        if (pending != 0 || transactions != 0 || expected == 0) return;
        phase = !phase;
        pending = expected;
    }
};

// Changes the barrier at an address: change(barrier) says whether that may be done.
template <class Change>
bool change_barrier(Warp& warp, const Instruction& instruction, unsigned lane, Space space, std::uint64_t address,
                    Change change) {
    std::byte* const place = reach(warp, instruction, lane, space, address, sizeof(std::uint64_t), Access::atomic);
    if (place == nullptr) return false;
    std::uint64_t bits = 0;
    std::memcpy(&bits, place, sizeof bits);
    Mbarrier barrier = Mbarrier::of(bits);
    if (!change(barrier)) {
        fail(warp, instruction, lane, Fault::barrier_misuse, address, sizeof bits, Access::atomic);
        return false;
    }
    barrier.end_phase_if_complete();
    bits = barrier.bits();
    std::memcpy(place, &bits, sizeof bits);
    return true;
}

// Whether a barrier is the block's own: another block's can be told of arrivals and bytes, and not be made or asked.
bool is_own(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t address) {
    const bool generic = instruction.space == Space::generic && (address & window_mask) == shared_window;
    if (!generic || block_behind(*warp.block, address & ~window_mask) == warp.block) return true;
    fail(warp, instruction, lane, Fault::illegal_address, address, sizeof(std::uint64_t), Access::atomic);
    return false;
}

// Bytes that came, or that are to come.
bool add_transactions(Mbarrier& barrier, std::int64_t bytes) noexcept {
    const std::int64_t sum = barrier.transactions + bytes;
    if (sum > std::int64_t{count_limit} || -sum > std::int64_t{count_limit}) return false;
    barrier.transactions = static_cast<std::int32_t>(sum);
    return true;
}

}  // namespace

void report_bytes(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t target,
                  std::uint64_t barrier, std::uint64_t bytes) {
    constexpr auto place = [](std::uint64_t address) { return address & ~window_mask; };
    if (block_behind(*warp.block, place(target)) != block_behind(*warp.block, place(barrier)))
        return fail(warp, instruction, lane, Fault::illegal_address, barrier, sizeof bytes, Access::atomic);
    change_barrier(warp, instruction, lane, instruction.space, barrier,
                   [&](Mbarrier& told) { return add_transactions(told, -static_cast<std::int64_t>(bytes)); });
}

namespace {

// One lane after another: what `write` does at a, offset, and then the report to the barrier at c, target.
void write_and_report(Warp& warp, const Instruction& instruction, std::uint32_t mask, Handler write) {
    const std::uint64_t* const base = in(warp, instruction.a);
    const std::uint64_t* const barriers = in(warp, instruction.c);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        write(warp, instruction, std::uint32_t{1} << lane);
        if (warp.machine->failed()) return;
        report_bytes(warp, instruction, lane, base[lane] + static_cast<std::uint64_t>(instruction.offset),
                     barriers[lane] + static_cast<std::uint64_t>(static_cast<std::int32_t>(instruction.target)),
                     std::uint64_t{size_of(instruction.type)} * instruction.count);
    });
}

}  // namespace

// a: address, b: arrivals, c: bytes to expect. d.index 0: nobody wants the state.
void change_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const auto kind = static_cast<MbarrierChange>(instruction.option);
    const std::uint64_t* const base = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        std::uint64_t state = 0;
        const auto count = static_cast<std::uint32_t>(b[lane]);
        const auto bytes = static_cast<std::int64_t>(static_cast<std::uint32_t>(c[lane]));
        const auto change = [&](Mbarrier& barrier) {
            state = barrier.bits();
            switch (kind) {
            case MbarrierChange::init: barrier = {count, count, 0, false}; return count != 0 && count <= count_limit;
            case MbarrierChange::inval: barrier = {}; return true;
            case MbarrierChange::expect: return add_transactions(barrier, bytes);
            case MbarrierChange::complete: return add_transactions(barrier, -bytes);
            case MbarrierChange::arrive:
            case MbarrierChange::drop: break;
            }
            if (count == 0 || count > barrier.pending || !add_transactions(barrier, bytes)) return false;
            barrier.pending -= count;
            if (kind == MbarrierChange::drop) barrier.expected -= count;
            return true;
        };
        const std::uint64_t address = base[lane] + static_cast<std::uint64_t>(instruction.offset);
        const bool makes = kind == MbarrierChange::init || kind == MbarrierChange::inval;
        if (makes && !is_own(warp, instruction, lane, address)) return;
        if (!change_barrier(warp, instruction, lane, instruction.space, address, change)) return;
        if (instruction.d.index != 0) out(warp, instruction.d)[lane] = state;
    });
}

// Whether the phase of state c is over; option 1: whether that of parity c is.
void test_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const base = in(warp, instruction.a);
    const std::uint64_t* const c = in(warp, instruction.c);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        const std::uint64_t address = base[lane] + static_cast<std::uint64_t>(instruction.offset);
        if (!is_own(warp, instruction, lane, address)) return;
        const std::byte* const place =
            reach(warp, instruction, lane, instruction.space, address, sizeof(std::uint64_t), Access::atomic);
        if (place == nullptr) return;
        std::uint64_t bits = 0;
        std::memcpy(&bits, place, sizeof bits);
        const bool phase = instruction.option == 1 ? (c[lane] & 1) != 0 : Mbarrier::of(c[lane]).phase;
        out(warp, instruction.d)[lane] = Mbarrier::of(bits).phase != phase;
    });
}

void pending_of_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) { d[lane] = Mbarrier::of(a[lane]).pending; });
}

// d, offset: to; a, target: from; b: bytes; c, elements[0]: the barrier, if option is 1.
void copy_bulk(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    constexpr std::uint64_t unit = 16;  // of addresses and sizes
    const std::uint64_t* const to = in(warp, instruction.d);
    const std::uint64_t* const from = in(warp, instruction.a);
    const std::uint64_t* const size = in(warp, instruction.b);
    const std::uint64_t* const barriers = in(warp, instruction.c);
    each(mask, [&](unsigned lane) {
        const auto bytes = std::uint64_t{static_cast<std::uint32_t>(size[lane])};
        const std::uint64_t target = to[lane] + static_cast<std::uint64_t>(instruction.offset);
        const std::uint64_t source =
            from[lane] + static_cast<std::uint64_t>(static_cast<std::int32_t>(instruction.target));
        if (bytes % unit != 0) fail(warp, instruction, lane, Fault::misaligned_address, source, bytes);
        for (std::uint64_t at = 0; at < bytes && !warp.machine->failed(); at += unit) {
            const std::byte* const origin =
                reach(warp, instruction, lane, instruction.space2, source + at, unit, Access::read);
            std::byte* const place =
                origin != nullptr ? reach(warp, instruction, lane, instruction.space, target + at, unit, Access::write)
                                  : nullptr;
            if (place != nullptr) std::memcpy(place, origin, unit);
        }
        if (warp.machine->failed() || instruction.option != 1) return;
        const std::uint64_t address =
            barriers[lane] + static_cast<std::uint64_t>(static_cast<std::int32_t>(instruction.elements[0]));
        report_bytes(warp, instruction, lane, target, address, bytes);
    });
}

// st.async, red.async: done at once too.
void store_async(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    write_and_report(warp, instruction, mask, store);
}

void reduce_async(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    write_and_report(warp, instruction, mask, atomic);
}

}  // namespace ftcuda::sim::ptx
