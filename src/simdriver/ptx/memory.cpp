// Loads, stores and atomics in every space.
#include "machine.hpp"
#include "number.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

std::byte* reach_global(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t address,
                        std::size_t size, Access access) {
    const Launch& launch = *warp.machine->launch;
    const std::uint64_t generation = launch.memory->generation();
    Extent& extent = warp.extent;
    const bool known = warp.extent_generation == generation && address >= extent.begin && address <= extent.end &&
                       size <= extent.end - address;
    if (!known) {
        if (!launch.memory->find(address, size, extent)) {
            extent = {};
            fail(warp, instruction, lane, Fault::illegal_address, address, size, access);
            return nullptr;
        }
        warp.extent_generation = generation;
    }
    if (launch.touched) launch.touched(address, size, access);
    return extent.bytes + (address - extent.begin);
}

std::byte* within(std::byte* begin, std::uint64_t capacity, Warp& warp, const Instruction& instruction, unsigned lane,
                  std::uint64_t address, std::size_t size, Access access) {
    if (address <= capacity && size <= capacity - address) return begin + address;
    fail(warp, instruction, lane, Fault::illegal_address, address, size, access);
    return nullptr;
}

std::uint64_t address_of(const Warp& warp, const Instruction& instruction, const std::uint64_t* base,
                         unsigned lane) noexcept {
    return base[lane] + static_cast<std::uint64_t>(instruction.offset) +
           (instruction.frame_relative ? warp.frames.back().local_base : 0);
}

// Device memory is read by other interpreting threads too: a racing kernel is the kernel's fault, not undefined here.
template <class Unit>
Unit read_unit(const std::byte* from) noexcept {
    return __atomic_load_n(reinterpret_cast<const Unit*>(from), __ATOMIC_RELAXED);
}

template <class Unit>
void write_unit(std::byte* to, std::uint64_t bits) noexcept {
    __atomic_store_n(reinterpret_cast<Unit*>(to), static_cast<Unit>(bits), __ATOMIC_RELAXED);
}

std::uint64_t read_bits(const std::byte* from, unsigned size) noexcept {
    switch (size) {
    case 1: return read_unit<std::uint8_t>(from);
    case 2: return read_unit<std::uint16_t>(from);
    case 4: return read_unit<std::uint32_t>(from);
    default: return read_unit<std::uint64_t>(from);
    }
}

void write_bits(std::byte* to, std::uint64_t bits, unsigned size) noexcept {
    switch (size) {
    case 1: return write_unit<std::uint8_t>(to, bits);
    case 2: return write_unit<std::uint16_t>(to, bits);
    case 4: return write_unit<std::uint32_t>(to, bits);
    default: return write_unit<std::uint64_t>(to, bits);
    }
}

std::uint64_t sign_extended(std::uint64_t bits, Type type) noexcept {
    switch (type) {
    case Type::s8: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(bits)));
    case Type::s16: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int16_t>(bits)));
    case Type::s32: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
    default: return bits;
    }
}

// ---- Atomics
// -------------------------------------------------------------------------------------------------------------

enum class Update : std::uint8_t { add, min, max, and_, or_, xor_, exch, cas, inc, dec };

template <class Bits>
Bits updated(Bits old, Bits operand, Bits third, Update update, Type type) noexcept {
    const auto as_signed = [](Bits bits) { return static_cast<std::make_signed_t<Bits>>(bits); };
    switch (update) {
    case Update::and_: return old & operand;
    case Update::or_: return old | operand;
    case Update::xor_: return old ^ operand;
    case Update::exch: return operand;
    case Update::cas: return old == operand ? third : old;
    case Update::inc: return old >= operand ? 0 : static_cast<Bits>(old + 1);
    case Update::dec: return old == 0 || old > operand ? operand : static_cast<Bits>(old - 1);
    default: break;
    }
    if (type == Type::f32 || type == Type::f64) {
        const double sum = type == Type::f32 ? static_cast<double>(get<float>(old) + get<float>(operand))
                                             : get<double>(old) + get<double>(operand);
        return static_cast<Bits>(type == Type::f32 ? put(static_cast<float>(sum)) : put(sum));
    }
    if (type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2) {
        const bool half = type == Type::f16 || type == Type::f16x2;
        std::uint64_t result = 0;
        for (unsigned element = 0; element < sizeof(Bits) / 2; ++element) {
            const auto a = static_cast<std::uint16_t>(std::uint64_t{old} >> (16 * element));
            const auto b = static_cast<std::uint16_t>(std::uint64_t{operand} >> (16 * element));
            const std::uint16_t sum =
                half ? double_to_half(static_cast<double>(half_to_float(a)) + half_to_float(b), 0)
                     : double_to_bfloat(static_cast<double>(bfloat_to_float(a)) + bfloat_to_float(b), 0);
            result |= std::uint64_t{sum} << (16 * element);
        }
        return static_cast<Bits>(result);
    }
    if (update == Update::add) return static_cast<Bits>(old + operand);
    const bool less = is_signed(type) ? as_signed(operand) < as_signed(old) : operand < old;
    return less == (update == Update::min) ? operand : old;
}

template <class Bits>
std::uint64_t update_memory(std::byte* place, std::uint64_t operand, std::uint64_t third, Update update,
                            Type type) noexcept {
    Bits* const target = reinterpret_cast<Bits*>(place);
    Bits old = __atomic_load_n(target, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(
        target, &old, updated(old, static_cast<Bits>(operand), static_cast<Bits>(third), update, type), true,
        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return old;
}

}  // namespace

std::byte* reach(Warp& warp, const Instruction& instruction, unsigned lane, Space space, std::uint64_t address,
                 std::size_t size, Access access) {
    if (space == Space::generic) {
        const std::uint64_t window = address & window_mask;
        space = window == shared_window  ? Space::cluster
                : window == local_window ? Space::local
                : window == param_window ? Space::param
                                         : Space::global;
        if (space != Space::global) address &= ~window_mask;
    }
    if (address % size != 0 && (size & (size - 1)) == 0) {
        fail(warp, instruction, lane, Fault::misaligned_address, address, size, access);
        return nullptr;
    }
    switch (space) {
    case Space::shared:
        address = block_address(*warp.block, address);
        return within(warp.block->shared.data(), warp.block->shared.size(), warp, instruction, lane, address, size,
                      access);
    case Space::cluster: {
        Block* const target = block_behind(*warp.block, address);
        if (target == nullptr) {
            fail(warp, instruction, lane, Fault::absent_block, address, size, access);
            return nullptr;
        }
        if (target->cluster->size > 1) address &= (std::uint64_t{1} << block_shift) - 1;
        return within(target->shared.data(), target->shared.size(), warp, instruction, lane, address, size, access);
    }
    case Space::local:
        return within(warp.local.data() + lane * warp.local_stride, warp.local_stride, warp, instruction, lane, address,
                      size, access);
    case Space::param:
        if (access == Access::read) {
            // Read only, as the const below says; the pointer is shared with the writable spaces.
            return within(const_cast<std::byte*>(warp.machine->launch->parameters),
                          warp.machine->kernel->entry.parameter_bytes, warp, instruction, lane, address, size, access);
        }
        fail(warp, instruction, lane, Fault::illegal_address, address, size, access);
        return nullptr;
    default: return reach_global(warp, instruction, lane, address, size, access);
    }
}

void load(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const base = in(warp, instruction.a);
    const unsigned size = size_of(instruction.type);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        const std::byte* const from =
            reach(warp, instruction, lane, instruction.space, address_of(warp, instruction, base, lane),
                  std::size_t{size} * instruction.count, Access::read);
        if (from == nullptr) return;
        for (unsigned element = 0; element < instruction.count; ++element) {
            if (instruction.elements[element] == blank_element) continue;
            out(warp, {instruction.elements[element], false})[lane] =
                sign_extended(read_bits(from + std::size_t{size} * element, size), instruction.type);
        }
    });
}

void store(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const base = in(warp, instruction.a);
    const unsigned size = size_of(instruction.type);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        std::byte* const to =
            reach(warp, instruction, lane, instruction.space, address_of(warp, instruction, base, lane),
                  std::size_t{size} * instruction.count, Access::write);
        if (to == nullptr) return;
        for (unsigned element = 0; element < instruction.count; ++element) {
            write_bits(to + std::size_t{size} * element,
                       in(warp, {instruction.elements[element], instruction.element_constant[element]})[lane], size);
        }
    });
}

// option: Update. d.index 0: no result is wanted (red).
void atomic(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const base = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    const unsigned size = size_of(instruction.type);
    const auto update = static_cast<Update>(instruction.option);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        std::byte* const place = reach(warp, instruction, lane, instruction.space,
                                       address_of(warp, instruction, base, lane), size, Access::atomic);
        if (place == nullptr) return;
        const std::uint64_t old =
            size == 2   ? update_memory<std::uint16_t>(place, b[lane], c[lane], update, instruction.type)
            : size == 4 ? update_memory<std::uint32_t>(place, b[lane], c[lane], update, instruction.type)
                        : update_memory<std::uint64_t>(place, b[lane], c[lane], update, instruction.type);
        if (instruction.d.index != 0) out(warp, instruction.d)[lane] = old;
    });
}

// cp.async, done at once: waiting for it later finds it done. count: bytes; b: bytes to read, the rest are zeros.
void copy_async(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const to = in(warp, instruction.d);
    const std::uint64_t* const from = in(warp, instruction.a);
    const std::uint64_t* const wanted = in(warp, instruction.b);
    each(mask, [&](unsigned lane) {
        if (warp.machine->failed()) return;
        const std::size_t bytes = instruction.count;
        const std::size_t read = std::min<std::size_t>(bytes, static_cast<std::uint32_t>(wanted[lane]));
        std::byte* const target =
            reach(warp, instruction, lane, Space::shared, to[lane] + static_cast<std::uint64_t>(instruction.offset),
                  bytes, Access::write);
        if (target == nullptr) return;
        std::memset(target, 0, bytes);
        if (read == 0) return;
        const std::byte* const source =
            reach(warp, instruction, lane, Space::global, from[lane] + instruction.target, read, Access::read);
        if (source != nullptr) std::memcpy(target, source, read);
    });
}

}  // namespace ftcuda::sim::ptx
