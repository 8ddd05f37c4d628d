// What the arithmetic instructions compute, number by number.
#pragma once

#include "number.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ftcuda::sim::ptx {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

struct Add {
    template <class T>
    static T apply(T a, T b) noexcept {
        return static_cast<T>(a + b);
    }
};
struct Sub {
    template <class T>
    static T apply(T a, T b) noexcept {
        return static_cast<T>(a - b);
    }
};
struct Mul {
    template <class T>
    static T apply(T a, T b) noexcept {
        return static_cast<T>(a * b);
    }
};
struct Div {
    template <class T>
    static T apply(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>) {
            if (b == 0) return static_cast<T>(~T{0});  // PTX leaves it open; the hardware gives all ones
            if constexpr (std::is_signed_v<T>) {
                if (b == T(-1)) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
            }
        }
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T>
    static T apply(T a, T b) noexcept {
        if (b == 0) return a;
        if constexpr (std::is_signed_v<T>) {
            if (b == T(-1)) return 0;
        }
        return static_cast<T>(a % b);
    }
};
struct Min {
    template <class T>
    static T apply(T a, T b) noexcept {
        if constexpr (std::is_floating_point_v<T>) {
            if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
            if (std::isnan(b)) return a;
            if (a == 0 && b == 0) return std::signbit(a) ? a : b;
        }
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    static T apply(T a, T b) noexcept {
        if constexpr (std::is_floating_point_v<T>) {
            if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
            if (std::isnan(b)) return a;
            if (a == 0 && b == 0) return std::signbit(a) ? b : a;
        }
        return a < b ? b : a;
    }
};
struct MinNan {
    template <class T>
    static T apply(T a, T b) noexcept {
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : Min::apply(a, b);
    }
};
struct MaxNan {
    template <class T>
    static T apply(T a, T b) noexcept {
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : Max::apply(a, b);
    }
};
struct Neg {
    template <class T>
    static T apply(T a) noexcept {
        if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
        else return -a;
    }
};
struct Abs {
    template <class T>
    static T apply(T a) noexcept {
        if constexpr (std::is_integral_v<T>) return a < 0 ? Neg::apply(a) : a;
        else return std::fabs(a);
    }
};
struct Copysign {
    template <class T>
    static T apply(T a, T b) noexcept {
        return std::copysign(b, a);
    }
};
struct And {
    template <class T>
    static T apply(T a, T b) noexcept {
        return a & b;
    }
};
struct Or {
    template <class T>
    static T apply(T a, T b) noexcept {
        return a | b;
    }
};
struct Xor {
    template <class T>
    static T apply(T a, T b) noexcept {
        return a ^ b;
    }
};
struct Not {
    template <class T>
    static T apply(T a) noexcept {
        return static_cast<T>(~a);
    }
};
struct NotPredicate {
    static std::uint64_t apply(std::uint64_t a) noexcept { return (a & 1) ^ 1; }
};
struct Cnot {
    template <class T>
    static T apply(T a) noexcept {
        return a == 0 ? 1 : 0;
    }
};
struct Popc {
    template <class T>
    static std::uint32_t apply(T a) noexcept {
        return static_cast<std::uint32_t>(__builtin_popcountll(a));
    }
};
struct Clz {
    template <class T>
    static std::uint32_t apply(T a) noexcept {
        return a == 0 ? 8 * sizeof a : static_cast<std::uint32_t>(__builtin_clzll(a)) - (64 - 8 * sizeof a);
    }
};
struct Brev {
    template <class T>
    static T apply(T a) noexcept {
        T r = 0;
        for (unsigned bit = 0; bit < 8 * sizeof a; ++bit)
            r = static_cast<T>(r | (((a >> bit) & 1) << (8 * sizeof a - 1 - bit)));
        return r;
    }
};
struct Mad {
    template <class T>
    static T apply(T a, T b, T c) noexcept {
        return static_cast<T>(a * b + c);
    }
};
struct Sad {
    template <class T>
    static T apply(T a, T b, T c) noexcept {
        return static_cast<T>(c + (a < b ? b - a : a - b));
    }
};

template <class T>
using Wider = std::conditional_t<std::is_signed_v<T>, Int128, Uint128>;
struct MulHi {
    template <class T>
    static T apply(T a, T b) noexcept {
        return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (8 * sizeof(T)));
    }
};
struct MadHi {
    template <class T>
    static T apply(T a, T b, T c) noexcept {
        return static_cast<T>(MulHi::apply(a, b) + c);
    }
};
struct MulWide {
    template <class T>
    static auto apply(T a, T b) noexcept {
        using W = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
    }
};

struct Sqrt {
    template <class T>
    static T apply(T a) noexcept {
        return std::sqrt(a);
    }
};
struct Rcp {
    template <class T>
    static T apply(T a) noexcept {
        return T{1} / a;
    }
};
// The approximations are computed in double and rounded: closer than the hardware's, within its error bounds.
struct Rsqrt {
    template <class T>
    static T apply(T a) noexcept {
        return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
    }
};
struct Sin {
    static float apply(float a) noexcept { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct Cos {
    static float apply(float a) noexcept { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct Ex2 {
    static float apply(float a) noexcept { return static_cast<float>(std::exp2(static_cast<double>(a))); }
};
struct Lg2 {
    static float apply(float a) noexcept { return static_cast<float>(std::log2(static_cast<double>(a))); }
};
struct Tanh {
    static float apply(float a) noexcept { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper 20 bits of the fraction only; full precision is within
// their contract.

struct SmallAdd {
    static double apply(double a, double b, double) noexcept { return a + b; }
};
struct SmallSub {
    static double apply(double a, double b, double) noexcept { return a - b; }
};
struct SmallMul {
    static double apply(double a, double b, double) noexcept { return a * b; }
};
struct SmallFma {
    static double apply(double a, double b, double c) noexcept { return std::fma(a, b, c); }
};
struct SmallFmaRelu {
    static double apply(double a, double b, double c) noexcept { return std::max(std::fma(a, b, c), 0.0); }
};
struct SmallMin {
    static double apply(double a, double b, double) noexcept { return Min::apply(a, b); }
};
struct SmallMax {
    static double apply(double a, double b, double) noexcept { return Max::apply(a, b); }
};
struct SmallNeg {
    static double apply(double a, double, double) noexcept { return -a; }
};
struct SmallAbs {
    static double apply(double a, double, double) noexcept { return std::fabs(a); }
};
struct SmallEx2 {
    static double apply(double a, double, double) noexcept { return std::exp2(a); }
};
struct SmallTanh {
    static double apply(double a, double, double) noexcept { return std::tanh(a); }
};

}  // namespace ftcuda::sim::ptx
