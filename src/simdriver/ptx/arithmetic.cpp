// Arithmetic and logic. Compiled with -frounding-math -ffp-contract=off: the compiler must not move or fuse operations.
#include "machine.hpp"
#include "number.hpp"
#include "operations.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

// ---- Shapes of instructions
// ------------------------------------------------------------------------------------------

template <class Value, class Operation>
void unary(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) { d[lane] = put(Operation::apply(get<Value>(a[lane]))); });
}

template <class Value, class Operation>
void binary(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) { d[lane] = put(Operation::apply(get<Value>(a[lane]), get<Value>(b[lane]))); });
}

template <class Value, class Operation>
void ternary(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        d[lane] = put(Operation::apply(get<Value>(a[lane]), get<Value>(b[lane]), get<Value>(c[lane])));
    });
}

// Floating point: flushing, rounding and saturation are the instruction's.
template <class Value, class Operation>
void float_unary(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    const Rounding rounding(instruction.rounding);
    const bool ftz = instruction.ftz;
    each(mask, [&](unsigned lane) {
        const Value x = get<Value>(a[lane]);
        Value result = Operation::apply(ftz ? flush(x) : x);
        if (ftz) result = flush(result);
        d[lane] = put(instruction.saturate ? saturated(result) : result);
    });
}

template <class Value, class Operation>
void float_binary(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    if (instruction.rounding == 0 && !instruction.ftz && !instruction.saturate) {
        each(mask, [&](unsigned lane) { d[lane] = put(Operation::apply(get<Value>(a[lane]), get<Value>(b[lane]))); });
        return;
    }
    const Rounding rounding(instruction.rounding);
    const bool ftz = instruction.ftz;
    each(mask, [&](unsigned lane) {
        const Value x = get<Value>(a[lane]);
        const Value y = get<Value>(b[lane]);
        Value result = ftz ? flush(Operation::apply(flush(x), flush(y))) : Operation::apply(x, y);
        if (instruction.saturate) result = saturated(result);
        d[lane] = put(result);
    });
}

template <class Value>
void float_fma(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    const Rounding rounding(instruction.rounding);
    const bool ftz = instruction.ftz;
    each(mask, [&](unsigned lane) {
        Value x = get<Value>(a[lane]);
        Value y = get<Value>(b[lane]);
        Value z = get<Value>(c[lane]);
        if (ftz) {
            x = flush(x);
            y = flush(y);
            z = flush(z);
        }
        Value result = std::fma(x, y, z);
        if (ftz) result = flush(result);
        if (instruction.saturate) result = saturated(result);
        d[lane] = put(result);
    });
}

// Half precision, one or two numbers in a register: computed in double, rounded once.
struct Half {
    static double wide(std::uint16_t bits) noexcept { return half_to_float(bits); }
    static std::uint16_t narrow(double value) noexcept { return double_to_half(value, 0); }
};
struct Bfloat {
    static double wide(std::uint16_t bits) noexcept { return bfloat_to_float(bits); }
    static std::uint16_t narrow(double value) noexcept { return double_to_bfloat(value, 0); }
};

template <class Format, unsigned elements, class Operation>
void small_float(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        std::uint64_t result = 0;
        for (unsigned element = 0; element < elements; ++element) {
            const auto pick = [&](const std::uint64_t* row) {
                return Format::wide(static_cast<std::uint16_t>(row[lane] >> (16 * element)));
            };
            double value = Operation::apply(pick(a), pick(b), pick(c));
            if (instruction.saturate) value = saturated(value);
            result |= std::uint64_t{Format::narrow(value)} << (16 * element);
        }
        d[lane] = result;
    });
}

template <class T>
void wide_multiply(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t keep = sizeof(T) == 2 ? 0xffff'ffff : ~std::uint64_t{0};
    each(mask, [&](unsigned lane) {
        d[lane] = static_cast<std::uint64_t>(MulWide::apply(get<T>(a[lane]), get<T>(b[lane]))) & keep;
    });
}

template <class T>
void wide_multiply_add(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    const std::uint64_t keep = sizeof(T) == 2 ? 0xffff'ffff : ~std::uint64_t{0};
    each(mask, [&](unsigned lane) {
        d[lane] = (static_cast<std::uint64_t>(MulWide::apply(get<T>(a[lane]), get<T>(b[lane]))) + c[lane]) & keep;
    });
}

// Shifts: the amount is 32 bits whatever the type, and amounts beyond the width shift everything out.
template <class T>
void shift_left(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const auto amount = static_cast<std::uint32_t>(b[lane]);
        d[lane] = amount >= 8 * sizeof(T) ? 0 : put(static_cast<T>(get<T>(a[lane]) << amount));
    });
}

template <class T>
void shift_right(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const auto amount = std::min<std::uint32_t>(static_cast<std::uint32_t>(b[lane]), 8 * sizeof(T));
        const T value = get<T>(a[lane]);
        const T gone = std::is_signed_v<T> && value < T{0} ? static_cast<T>(~T{0}) : T{0};
        d[lane] = put(amount == 8 * sizeof(T) ? gone : static_cast<T>(value >> amount));
    });
}

// option: bit 0 right, bit 1 clamp
void funnel_shift(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const auto wanted = static_cast<std::uint32_t>(c[lane]);
        const std::uint32_t amount = (instruction.option & 2) != 0 ? std::min(wanted, 32u) : wanted & 31;
        const std::uint64_t both = (b[lane] << 32) | (a[lane] & 0xffff'ffff);
        d[lane] = static_cast<std::uint32_t>((instruction.option & 1) != 0 ? both >> amount : (both << amount) >> 32);
    });
}

template <class T>
void bit_field_extract(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    constexpr unsigned width = 8 * sizeof(T);
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const unsigned position = b[lane] & 0xff;
        const unsigned length = c[lane] & 0xff;
        const auto bits = static_cast<std::make_unsigned_t<T>>(get<T>(a[lane]));
        const unsigned top = std::min(position + length, width);
        const bool sign =
            std::is_signed_v<T> && length != 0 && ((bits >> (std::min(position + length - 1, width - 1))) & 1) != 0;
        std::uint64_t result = sign ? ~std::uint64_t{0} : 0;
        for (unsigned bit = position; bit < top; ++bit) {
            const std::uint64_t one = std::uint64_t{1} << (bit - position);
            result = ((bits >> bit) & 1) != 0 ? result | one : result & ~one;
        }
        d[lane] = put(static_cast<T>(result));
    });
}

template <class T>
void bit_field_insert(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    constexpr unsigned width = 8 * sizeof(T);
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    const std::uint64_t* const e = in(warp, instruction.e);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const unsigned position = c[lane] & 0xff;
        const unsigned length = e[lane] & 0xff;
        T result = get<T>(b[lane]);
        for (unsigned bit = 0; bit < length && position + bit < width; ++bit) {
            const T one = static_cast<T>(T{1} << (position + bit));
            result = ((a[lane] >> bit) & 1) != 0 ? result | one : result & static_cast<T>(~one);
        }
        d[lane] = put(result);
    });
}

// option: 1 = .shiftamt
template <class T>
void find_leading_bit(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    using Bits = std::make_unsigned_t<T>;
    const std::uint64_t* const a = in(warp, instruction.a);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const T value = get<T>(a[lane]);
        const auto bits = static_cast<Bits>(std::is_signed_v<T> && value < T{0} ? static_cast<T>(~value) : value);
        const std::uint32_t leading = Clz::apply(bits);
        const std::uint32_t width = 8 * sizeof(T);
        d[lane] = bits == 0 ? 0xffff'ffff : (instruction.option == 1 ? leading : width - 1 - leading);
    });
}

void permute_bytes(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        const std::uint64_t both = (b[lane] << 32) | (a[lane] & 0xffff'ffff);
        const auto byte_of = [&](unsigned index) { return static_cast<std::uint32_t>((both >> (8 * index)) & 0xff); };
        const auto selector = static_cast<std::uint32_t>(c[lane]);
        std::uint32_t result = 0;
        for (unsigned target = 0; target < 4; ++target) {
            unsigned source = 0;
            bool replicate_sign = false;
            const unsigned s = selector & 3;
            switch (instruction.option) {
            case 0:  // by nibbles
                source = (selector >> (4 * target)) & 7;
                replicate_sign = ((selector >> (4 * target)) & 8) != 0;
                break;
            case 1: source = s + target; break;                   // f4e
            case 2: source = (s + 8 - target) & 7; break;         // b4e
            case 3: source = s; break;                            // rc8
            case 4: source = std::max(target, s); break;          // ecl
            case 5: source = std::min(target, s); break;          // ecr
            default: source = (s & 1) * 2 + (target & 1); break;  // rc16
            }
            const std::uint32_t byte = byte_of(source & 7);
            result |= (replicate_sign ? ((byte & 0x80) != 0 ? 0xffu : 0u) : byte) << (8 * target);
        }
        d[lane] = result;
    });
}

// option: the truth table
template <class T>
void logic3(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        std::uint64_t result = 0;
        for (unsigned term = 0; term < 8; ++term) {
            if (((instruction.option >> term) & 1) == 0) continue;
            result |= ((term & 4) != 0 ? a[lane] : ~a[lane]) & ((term & 2) != 0 ? b[lane] : ~b[lane]) &
                      ((term & 1) != 0 ? c[lane] : ~c[lane]);
        }
        d[lane] = put(static_cast<T>(result));
    });
}

// option: bit 0 a signed, bit 1 b signed
void dot4(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        auto sum = static_cast<std::uint32_t>(c[lane]);
        for (unsigned element = 0; element < 4; ++element) {
            const auto x = static_cast<std::uint8_t>(a[lane] >> (8 * element));
            const auto y = static_cast<std::uint8_t>(b[lane] >> (8 * element));
            const int left = (instruction.option & 1) != 0 ? static_cast<std::int8_t>(x) : x;
            const int right = (instruction.option & 2) != 0 ? static_cast<std::int8_t>(y) : y;
            sum += static_cast<std::uint32_t>(left * right);
        }
        d[lane] = sum;
    });
}

// Extended precision: option bit 0 takes the carry in, bit 1 writes it, bit 2 subtracts; option2: 0 add, 1 mad.lo, 2
// mad.hi
template <class T>
void with_carry(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    const std::uint64_t* const a = in(warp, instruction.a);
    const std::uint64_t* const b = in(warp, instruction.b);
    const std::uint64_t* const c = in(warp, instruction.c);
    std::uint64_t* const d = out(warp, instruction.d);
    each(mask, [&](unsigned lane) {
        T x = get<T>(a[lane]);
        T y = get<T>(b[lane]);
        if (instruction.option2 != 0) {
            x = instruction.option2 == 1 ? static_cast<T>(x * y) : MulHi::apply(x, y);
            y = get<T>(c[lane]);
        }
        const std::uint32_t bit = std::uint32_t{1} << lane;
        const Uint128 extra = (instruction.option & 1) != 0 && (warp.carry & bit) != 0 ? 1 : 0;
        const bool subtracts = (instruction.option & 4) != 0;
        const Uint128 wide = subtracts ? static_cast<Uint128>(x) - y - extra : static_cast<Uint128>(x) + y + extra;
        if ((instruction.option & 2) != 0) {
            const bool carries = ((wide >> (8 * sizeof(T))) & 1) != 0;
            warp.carry = carries ? warp.carry | bit : warp.carry & ~bit;
        }
        d[lane] = put(static_cast<T>(wide));
    });
}

// ---- By type
// -----------------------------------------------------------------------------------------------------------

template <template <class> class Shape>
Handler integer(Type type) {
    switch (type) {
    case Type::u16:
    case Type::b16: return Shape<std::uint16_t>::run;
    case Type::s16: return Shape<std::int16_t>::run;
    case Type::u32:
    case Type::b32: return Shape<std::uint32_t>::run;
    case Type::s32: return Shape<std::int32_t>::run;
    case Type::u64:
    case Type::b64: return Shape<std::uint64_t>::run;
    case Type::s64: return Shape<std::int64_t>::run;
    default: return nullptr;
    }
}

#define INTEGER_SHAPE(name, ...)                                                          \
    template <class T>                                                                    \
    struct name {                                                                         \
        static void run(Warp& warp, const Instruction& instruction, std::uint32_t mask) { \
            __VA_ARGS__(warp, instruction, mask);                                         \
        }                                                                                 \
    }
INTEGER_SHAPE(AddShape, binary<std::make_unsigned_t<T>, Add>);
INTEGER_SHAPE(SubShape, binary<std::make_unsigned_t<T>, Sub>);
INTEGER_SHAPE(MulLoShape, binary<std::conditional_t<sizeof(T) == 2, std::uint32_t, std::make_unsigned_t<T>>, Mul>);
INTEGER_SHAPE(MulHiShape, binary<T, MulHi>);
INTEGER_SHAPE(MulWideShape, wide_multiply<T>);
INTEGER_SHAPE(MadLoShape, ternary<std::conditional_t<sizeof(T) == 2, std::uint32_t, std::make_unsigned_t<T>>, Mad>);
INTEGER_SHAPE(MadHiShape, ternary<T, MadHi>);
INTEGER_SHAPE(MadWideShape, wide_multiply_add<T>);
INTEGER_SHAPE(DivShape, binary<T, Div>);
INTEGER_SHAPE(RemShape, binary<T, Rem>);
INTEGER_SHAPE(MinShape, binary<T, Min>);
INTEGER_SHAPE(MaxShape, binary<T, Max>);
INTEGER_SHAPE(NegShape, unary<T, Neg>);
INTEGER_SHAPE(AbsShape, unary<T, Abs>);
INTEGER_SHAPE(SadShape, ternary<T, Sad>);
INTEGER_SHAPE(AndShape, binary<T, And>);
INTEGER_SHAPE(OrShape, binary<T, Or>);
INTEGER_SHAPE(XorShape, binary<T, Xor>);
INTEGER_SHAPE(NotShape, unary<T, Not>);
INTEGER_SHAPE(CnotShape, unary<T, Cnot>);
INTEGER_SHAPE(PopcShape, unary<std::make_unsigned_t<T>, Popc>);
INTEGER_SHAPE(ClzShape, unary<std::make_unsigned_t<T>, Clz>);
INTEGER_SHAPE(BrevShape, unary<std::make_unsigned_t<T>, Brev>);
INTEGER_SHAPE(ShlShape, shift_left<std::make_unsigned_t<T>>);
INTEGER_SHAPE(ShrShape, shift_right<T>);
INTEGER_SHAPE(BfeShape, bit_field_extract<T>);
INTEGER_SHAPE(BfiShape, bit_field_insert<std::make_unsigned_t<T>>);
INTEGER_SHAPE(BfindShape, find_leading_bit<T>);
INTEGER_SHAPE(Lop3Shape, logic3<std::make_unsigned_t<T>>);
INTEGER_SHAPE(CarryShape, with_carry<std::make_unsigned_t<T>>);
#undef INTEGER_SHAPE

template <class Operation>
Handler small_handler(Type type) {
    switch (type) {
    case Type::f16: return small_float<Half, 1, Operation>;
    case Type::f16x2: return small_float<Half, 2, Operation>;
    case Type::bf16: return small_float<Bfloat, 1, Operation>;
    case Type::bf16x2: return small_float<Bfloat, 2, Operation>;
    default: return nullptr;
    }
}

template <class Operation>
Handler float_binary_handler(Type type) {
    return type == Type::f32   ? float_binary<float, Operation>
           : type == Type::f64 ? float_binary<double, Operation>
                               : nullptr;
}

template <class Operation>
Handler float_unary_handler(Type type) {
    return type == Type::f32   ? float_unary<float, Operation>
           : type == Type::f64 ? float_unary<double, Operation>
                               : nullptr;
}

Handler float_handler(std::string_view base, const Instruction& instruction) {
    const Type type = instruction.type;
    const bool small = type == Type::f16 || type == Type::f16x2 || type == Type::bf16 || type == Type::bf16x2;
    if (small) {
        if (base == "add") return small_handler<SmallAdd>(type);
        if (base == "sub") return small_handler<SmallSub>(type);
        if (base == "mul") return small_handler<SmallMul>(type);
        if (base == "fma")
            return instruction.option == 1 ? small_handler<SmallFmaRelu>(type) : small_handler<SmallFma>(type);
        if (base == "min") return small_handler<SmallMin>(type);
        if (base == "max") return small_handler<SmallMax>(type);
        if (base == "neg") return small_handler<SmallNeg>(type);
        if (base == "abs") return small_handler<SmallAbs>(type);
        if (base == "ex2") return small_handler<SmallEx2>(type);
        if (base == "tanh") return small_handler<SmallTanh>(type);
        return nullptr;
    }
    if (base == "add") return float_binary_handler<Add>(type);
    if (base == "sub") return float_binary_handler<Sub>(type);
    if (base == "mul") return float_binary_handler<Mul>(type);
    if (base == "div") return float_binary_handler<Div>(type);
    if (base == "min")
        return instruction.option == 1 ? float_binary_handler<MinNan>(type) : float_binary_handler<Min>(type);
    if (base == "max")
        return instruction.option == 1 ? float_binary_handler<MaxNan>(type) : float_binary_handler<Max>(type);
    if (base == "copysign") return float_binary_handler<Copysign>(type);
    if (base == "fma" || base == "mad") return type == Type::f32 ? float_fma<float> : float_fma<double>;
    if (base == "neg") return float_unary_handler<Neg>(type);
    if (base == "abs") return float_unary_handler<Abs>(type);
    if (base == "sqrt") return float_unary_handler<Sqrt>(type);
    if (base == "rcp") return float_unary_handler<Rcp>(type);
    if (base == "rsqrt") return float_unary_handler<Rsqrt>(type);
    if (type != Type::f32) return nullptr;
    if (base == "sin") return float_unary<float, Sin>;
    if (base == "cos") return float_unary<float, Cos>;
    if (base == "ex2") return float_unary<float, Ex2>;
    if (base == "lg2") return float_unary<float, Lg2>;
    if (base == "tanh") return float_unary<float, Tanh>;
    return nullptr;
}

}  // namespace

Handler arithmetic_handler(std::string_view base, const Instruction& instruction) {
    const Type type = instruction.type;
    if (type == Type::pred) {
        if (base == "and") return binary<std::uint64_t, And>;
        if (base == "or") return binary<std::uint64_t, Or>;
        if (base == "xor") return binary<std::uint64_t, Xor>;
        if (base == "not") return unary<std::uint64_t, NotPredicate>;
        return nullptr;
    }
    if (is_float(type)) return float_handler(base, instruction);
    if (base == "add") return integer<AddShape>(type);
    if (base == "sub") return integer<SubShape>(type);
    if (base == "mul.lo") return integer<MulLoShape>(type);
    if (base == "mul.hi") return integer<MulHiShape>(type);
    if (base == "mul.wide") return integer<MulWideShape>(type);
    if (base == "mad.lo") return integer<MadLoShape>(type);
    if (base == "mad.hi") return integer<MadHiShape>(type);
    if (base == "mad.wide") return integer<MadWideShape>(type);
    if (base == "div") return integer<DivShape>(type);
    if (base == "rem") return integer<RemShape>(type);
    if (base == "min") return integer<MinShape>(type);
    if (base == "max") return integer<MaxShape>(type);
    if (base == "neg") return integer<NegShape>(type);
    if (base == "abs") return integer<AbsShape>(type);
    if (base == "sad") return integer<SadShape>(type);
    if (base == "and") return integer<AndShape>(type);
    if (base == "or") return integer<OrShape>(type);
    if (base == "xor") return integer<XorShape>(type);
    if (base == "not") return integer<NotShape>(type);
    if (base == "cnot") return integer<CnotShape>(type);
    if (base == "popc") return integer<PopcShape>(type);
    if (base == "clz") return integer<ClzShape>(type);
    if (base == "brev") return integer<BrevShape>(type);
    if (base == "shl") return integer<ShlShape>(type);
    if (base == "shr") return integer<ShrShape>(type);
    if (base == "shf") return funnel_shift;
    if (base == "bfe") return integer<BfeShape>(type);
    if (base == "bfi") return integer<BfiShape>(type);
    if (base == "bfind") return integer<BfindShape>(type);
    if (base == "prmt") return permute_bytes;
    if (base == "lop3") return integer<Lop3Shape>(type);
    if (base == "dp4a") return dot4;
    if (base == "carry") return integer<CarryShape>(type);
    return nullptr;
}

}  // namespace ftcuda::sim::ptx
