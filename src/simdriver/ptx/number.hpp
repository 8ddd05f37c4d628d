// Half-precision numbers, rounding and flushing, as PTX defines them.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ftcuda::sim::ptx {

inline float half_to_float(std::uint16_t half) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1f;
    const std::uint32_t mantissa = half & 0x3ff;
    std::uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000 | mantissa << 13;
    } else if (exponent != 0) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else {
        const float value = std::ldexp(static_cast<float>(mantissa), -24);
        std::memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

// `value` as a binary floating-point number of `precision` bits and smallest exponent `smallest`, in the rounding
// `mode` (0 nearest even, 1 zero, 2 down, 3 up).
inline double round_to(double value, int precision, int smallest, int mode) noexcept {
    if (value == 0 || !std::isfinite(value)) return value;
    int exponent = 0;
    std::frexp(value, &exponent);  // value = m * 2^exponent, 0.5 <= |m| < 1
    const int unit = std::max(exponent - precision, smallest);
    const double scaled = std::ldexp(value, -unit);
    const double rounded = mode == 0   ? std::nearbyint(scaled)
                           : mode == 1 ? std::trunc(scaled)
                           : mode == 2 ? std::floor(scaled)
                                       : std::ceil(scaled);
    return std::ldexp(rounded, unit);
}

inline std::uint16_t double_to_half(double value, int mode) noexcept {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return 0x7fff;
    double magnitude = std::fabs(round_to(value, 11, -24, mode));
    if (magnitude > 65504.0) {
        const bool toward_zero = mode == 1 || (mode == 2 && sign == 0) || (mode == 3 && sign != 0);
        if (std::isinf(value) || !toward_zero) return sign | 0x7c00;
        magnitude = 65504.0;
    }
    if (magnitude == 0) return sign;
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    if (exponent < -13) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::ldexp(magnitude, 24)));
    const auto mantissa = static_cast<std::uint16_t>(std::ldexp(magnitude, 11 - exponent));  // 1024 to 2047
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>((exponent + 14) << 10) | (mantissa & 0x3ff));
}

inline float bfloat_to_float(std::uint16_t value) noexcept {
    const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

inline std::uint16_t double_to_bfloat(double value, int mode) noexcept {
    if (std::isnan(value)) return 0x7fff;
    const double rounded = round_to(value, 8, -133, mode);
    const float narrow = static_cast<float>(rounded);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    if (std::isinf(narrow) && !std::isinf(value)) {
        const bool negative = std::signbit(value);
        if (mode == 1 || (mode == 2 && !negative) || (mode == 3 && negative))
            bits = (negative ? 0x80000000u : 0u) | 0x7f7f0000u;
    }
    return static_cast<std::uint16_t>(bits >> 16);
}

inline float flush(float value) noexcept {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
inline double flush(double value) noexcept { return value; }

inline float saturated(float value) noexcept { return !(value > 0.0f) ? 0.0f : value > 1.0f ? 1.0f : value; }
inline double saturated(double value) noexcept { return !(value > 0.0) ? 0.0 : value > 1.0 ? 1.0 : value; }

// The processor's rounding mode for a scope: what makes add, mul, fma, div and sqrt round as asked, exactly.
class Rounding {
public:
    explicit Rounding(int mode) noexcept : changed_(mode != 0) {
        constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        if (changed_) std::fesetround(modes[mode]);
    }
    ~Rounding() {
        if (changed_) std::fesetround(FE_TONEAREST);
    }
    Rounding(const Rounding&) = delete;
    Rounding& operator=(const Rounding&) = delete;

private:
    const bool changed_;
};

}  // namespace ftcuda::sim::ptx
