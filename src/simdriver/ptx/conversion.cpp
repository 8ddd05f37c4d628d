// Comparisons, selections, conversions and moves. Compiled with -frounding-math, as arithmetic.cpp.
#include "machine.hpp"
#include "number.hpp"

#include <algorithm>
#include <limits>

namespace ftcuda::sim::ptx {

namespace {

// ---- Comparisons
// -----------------------------------------------------------------------------------------------------

enum class Order { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <class Value, Order order>
bool compare(Value a, Value b) noexcept {
    if constexpr (std::is_floating_point_v<Value>) {
        const bool unordered = std::isnan(a) || std::isnan(b);
        if constexpr (order == Order::num) return !unordered;
        if constexpr (order == Order::nan) return unordered;
        if constexpr (order >= Order::equ && order <= Order::geu) {
            if (unordered) return true;
        } else if (unordered) {
            return false;  // ne too: it is the ordered one, neu the other
        }
    }
    switch (order) {
    case Order::eq:
    case Order::equ: return a == b;
    case Order::ne:
    case Order::neu: return a != b;
    case Order::lt:
    case Order::ltu: return a < b;
    case Order::le:
    case Order::leu: return a <= b;
    case Order::gt:
    case Order::gtu: return a > b;
    default: return a >= b;
    }
}

template <class Value>
Value widened(std::uint64_t bits, const Instruction& instruction) noexcept {
    if constexpr (std::is_same_v<Value, float>) {
        if (instruction.type == Type::f16) return half_to_float(static_cast<std::uint16_t>(bits));
        if (instruction.type == Type::bf16) return bfloat_to_float(static_cast<std::uint16_t>(bits));
        const float value = get<float>(bits);
        return instruction.ftz ? flush(value) : value;
    } else {
        return get<Value>(bits);
    }
}

// option: 0 no third operand, 1 and, 2 or, 3 xor. option2: 0 setp, 1 set with integer result, 2 set with float result.
template <class Value, Order order>
void compare_lanes(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    std::uint64_t* const d2 = out(warp, instruction.d2);
    const auto combine = [&](bool result, bool other) {
        switch (instruction.option) {
        case 1: return result && other;
        case 2: return result || other;
        case 3: return result != other;
        default: return result;
        }
    };
    each(mask, [&](unsigned lane) {
        const bool result =
            compare<Value, order>(widened<Value>(a[lane], instruction), widened<Value>(b[lane], instruction));
        const bool other = instruction.option != 0 && ((c[lane] & 1) != 0) != (instruction.count == 2);
        const bool first = combine(result, other);
        const bool second = combine(!result, other);
        if (instruction.option2 == 0) {
            d[lane] = first;
            if (instruction.d2.index != 0) d2[lane] = second;
        } else {
            d[lane] = !first ? 0 : instruction.option2 == 1 ? 0xffff'ffff : put(1.0f);
        }
    });
}

template <class Value>
Handler compare_by_order(std::string_view comparison) {
    constexpr bool is_float_value = std::is_floating_point_v<Value>;
    if (comparison == "eq") return compare_lanes<Value, Order::eq>;
    if (comparison == "ne") return compare_lanes<Value, Order::ne>;
    if (comparison == "lt" || (!is_float_value && comparison == "lo")) return compare_lanes<Value, Order::lt>;
    if (comparison == "le" || (!is_float_value && comparison == "ls")) return compare_lanes<Value, Order::le>;
    if (comparison == "gt" || (!is_float_value && comparison == "hi")) return compare_lanes<Value, Order::gt>;
    if (comparison == "ge" || (!is_float_value && comparison == "hs")) return compare_lanes<Value, Order::ge>;
    if constexpr (is_float_value) {
        if (comparison == "equ") return compare_lanes<Value, Order::equ>;
        if (comparison == "neu") return compare_lanes<Value, Order::neu>;
        if (comparison == "ltu") return compare_lanes<Value, Order::ltu>;
        if (comparison == "leu") return compare_lanes<Value, Order::leu>;
        if (comparison == "gtu") return compare_lanes<Value, Order::gtu>;
        if (comparison == "geu") return compare_lanes<Value, Order::geu>;
        if (comparison == "num") return compare_lanes<Value, Order::num>;
        if (comparison == "nan") return compare_lanes<Value, Order::nan>;
    }
    return nullptr;
}

// ---- Conversions
// -------------------------------------------------------------------------------------------------------

double read_float(std::uint64_t bits, Type type, bool ftz) noexcept {
    switch (type) {
    case Type::f16: return half_to_float(static_cast<std::uint16_t>(bits));
    case Type::bf16: return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case Type::f32: return ftz ? flush(get<float>(bits)) : get<float>(bits);
    default: return get<double>(bits);
    }
}

std::uint64_t write_float(double value, const Instruction& instruction) noexcept {
    const int mode = instruction.rounding & 3;
    if (instruction.saturate) value = saturated(value);
    switch (instruction.type) {
    case Type::f16: return double_to_half(value, mode);
    case Type::bf16: return double_to_bfloat(value, mode);
    case Type::f32: {
        const Rounding rounding(mode);
        const float narrow = static_cast<float>(value);
        return put(instruction.ftz ? flush(narrow) : narrow);
    }
    default: return put(value);
    }
}

double to_integral(double value, int mode) noexcept {
    return mode == 0   ? std::nearbyint(value)
           : mode == 1 ? std::trunc(value)
           : mode == 2 ? std::floor(value)
                       : std::ceil(value);
}

std::uint64_t clamp_to_integer(double value, Type type) noexcept {
    const unsigned bits = 8 * size_of(type);
    if (std::isnan(value)) return 0;  // CUDA's answer for 32 bits and less; for 64 bits the hardware gives the sign bit
    if (is_signed(type)) {
        const double limit = std::ldexp(1.0, static_cast<int>(bits) - 1);
        if (value >= limit) return (std::uint64_t{1} << (bits - 1)) - 1;
        if (value < -limit) return std::uint64_t{1} << (bits - 1);
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
    if (value <= 0) return 0;
    if (value >= std::ldexp(1.0, static_cast<int>(bits)))
        return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return static_cast<std::uint64_t>(value);
}

std::uint64_t extend(std::uint64_t bits, Type type) noexcept {
    switch (type) {
    case Type::s8: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(bits)));
    case Type::s16: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int16_t>(bits)));
    case Type::s32: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
    case Type::u8:
    case Type::b8: return bits & 0xff;
    case Type::u16:
    case Type::b16: return bits & 0xffff;
    case Type::u32:
    case Type::b32: return bits & 0xffff'ffff;
    default: return bits;
    }
}

std::uint64_t saturate_integer(std::uint64_t bits, Type from, Type to) noexcept {
    const unsigned width = 8 * size_of(to);
    if (is_signed(from)) {
        const auto value = static_cast<std::int64_t>(bits);
        if (!is_signed(to))
            return value < 0 ? 0 : width < 64 ? std::min<std::uint64_t>(bits, (std::uint64_t{1} << width) - 1) : bits;
        const std::int64_t high = static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) - 1);
        return static_cast<std::uint64_t>(std::clamp(value, -high - 1, high));
    }
    const std::uint64_t high = is_signed(to) ? (std::uint64_t{1} << (width - 1)) - 1
                               : width < 64  ? (std::uint64_t{1} << width) - 1
                                             : ~std::uint64_t{0};
    return std::min(bits, high);
}

std::uint64_t convert_one(std::uint64_t bits, const Instruction& instruction) noexcept {
    const Type from = instruction.type2;
    const Type to = instruction.type;
    const bool to_integral_value = instruction.option == 1;  // .rni, .rzi, .rmi, .rpi
    const int mode = instruction.rounding;
    if (is_float(from)) {
        double value = read_float(bits, from, instruction.ftz);
        if (is_float(to)) {
            if (to_integral_value) value = to_integral(value, mode);
            return write_float(value, instruction);
        }
        return clamp_to_integer(to_integral(value, mode), to) & (size_of(to) >= 4 ? ~std::uint64_t{0} : 0xffff'ffff);
    }
    const std::uint64_t wide = extend(bits, from);
    if (!is_float(to)) return extend(instruction.saturate ? saturate_integer(wide, from, to) : wide, to);
    // Integer to float: one rounding, so a 64-bit integer must not pass through double on its way to float.
    const Rounding rounding(mode);
    if (to == Type::f32) {
        const float value =
            is_signed(from) ? static_cast<float>(static_cast<std::int64_t>(wide)) : static_cast<float>(wide);
        return put(instruction.saturate ? saturated(value) : value);
    }
    const double value =
        is_signed(from) ? static_cast<double>(static_cast<std::int64_t>(wide)) : static_cast<double>(wide);
    if (to == Type::f64) return put(value);
    return write_float(value, instruction);
}

}  // namespace

Handler compare_handler(std::string_view comparison, Type type) {
    switch (type) {
    case Type::u16:
    case Type::b16: return compare_by_order<std::uint16_t>(comparison);
    case Type::s16: return compare_by_order<std::int16_t>(comparison);
    case Type::u32:
    case Type::b32: return compare_by_order<std::uint32_t>(comparison);
    case Type::s32: return compare_by_order<std::int32_t>(comparison);
    case Type::u64:
    case Type::b64: return compare_by_order<std::uint64_t>(comparison);
    case Type::s64: return compare_by_order<std::int64_t>(comparison);
    case Type::f16:
    case Type::bf16:
    case Type::f32: return compare_by_order<float>(comparison);
    case Type::f64: return compare_by_order<double>(comparison);
    default: return nullptr;
    }
}

// option: 0 by a predicate; 1 by the sign of an s32; 2 by the sign of an f32
void select_by_predicate(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const bool first = instruction.option == 0   ? (c[lane] & 1) != 0
                           : instruction.option == 1 ? get<std::int32_t>(c[lane]) >= 0
                                                     : get<float>(c[lane]) >= 0.0f;
        d[lane] = first ? a[lane] : b[lane];
    });
}

// count 2: two numbers packed in one register, the first operand above the second.
void convert(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        std::uint64_t result = convert_one(a[lane], instruction);
        if (instruction.count == 2) result = (result & 0xffff) << 16 | (convert_one(b[lane], instruction) & 0xffff);
        d[lane] = result;
    });
}

void move(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) { d[lane] = a[lane]; });
}

void move_local_address(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t address = warp.frame().local_base + static_cast<std::uint64_t>(instruction.offset);
    each(mask, [&](unsigned lane) { d[lane] = address; });
}

// {a, b, ...} to one register, and back. `type` is of the whole.
void pack(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    std::uint64_t* const d = out(warp, instruction.d);
    const unsigned width = 8 * size_of(instruction.type) / instruction.count;
    const std::uint64_t low = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    each(mask, [&](unsigned lane) {
        std::uint64_t result = 0;
        for (unsigned element = 0; element < instruction.count; ++element) {
            result |= (in(warp, {instruction.elements[element], instruction.element_constant[element]})[lane] & low)
                      << (width * element);
        }
        d[lane] = result;
    });
}

void unpack(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const unsigned width = 8 * size_of(instruction.type) / instruction.count;
    const std::uint64_t low = (std::uint64_t{1} << width) - 1;
    each(mask, [&](unsigned lane) {
        const std::uint64_t whole = a[lane];
        for (unsigned element = 0; element < instruction.count; ++element) {
            if (instruction.elements[element] != blank_element)
                out(warp, {instruction.elements[element], false})[lane] = (whole >> (width * element)) & low;
        }
    });
}

// option: the row of the special register
void read_timer(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    std::uint64_t* const d = out(warp, instruction.d);
    const auto& nanoseconds = warp.machine->launch->nanoseconds;
    std::uint64_t now = nanoseconds ? nanoseconds() : 0;
    if (instruction.option == clock_low || instruction.option == timer_low) now &= 0xffff'ffff;
    if (instruction.option == clock_high || instruction.option == timer_high) now >>= 32;
    each(mask, [&](unsigned lane) { d[lane] = now; });
}

namespace {

std::uint64_t window_of(Space space) noexcept {
    switch (space) {
    case Space::shared:
    case Space::cluster: return shared_window;
    case Space::local: return local_window;
    case Space::param: return param_window;
    default: return 0;  // global and constant memory are where they are
    }
}

}  // namespace

void to_generic(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t window = window_of(instruction.space);
    if (window == shared_window)  // a generic address means the same to all blocks of the cluster
        return each(mask, [&](unsigned lane) { d[lane] = cluster_address(*warp.block, a[lane]) | window; });
    each(mask, [&](unsigned lane) { d[lane] = a[lane] | window; });
}

void from_generic(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t window = window_of(instruction.space);
    if (window == shared_window)
        return each(mask, [&](unsigned lane) { d[lane] = block_address(*warp.block, a[lane] & ~window); });
    each(mask, [&](unsigned lane) { d[lane] = a[lane] & ~window; });
}

void is_in_space(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t window = window_of(instruction.space);
    const bool own_only = instruction.space == Space::shared;  // shared::cta
    each(mask, [&](unsigned lane) {
        d[lane] = (a[lane] & window_mask) == window &&
                  (!own_only || block_address(*warp.block, a[lane] & ~window_mask) >> block_shift == 0);
    });
}

void nothing(Warp&, const Instruction&, std::uint32_t) {}

}  // namespace ftcuda::sim::ptx
