// The 16-bit floating-point types in software: stored in 16 bits, computed with in float, rounded to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/vector_types.h"

namespace nanolm::emulator {

inline std::uint16_t bf16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// half: 10 bits of fraction, exponents from -14 to 15, subnormals below.
inline std::uint16_t half_bits(float value) {
  if (value != value) return 0x7fff;
  const std::uint16_t sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x1p-14f)                                                     // in units of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude) - (112u << 23);  // exponent bias 127 becomes 15
  return static_cast<std::uint16_t>(sign | ((bits + 0xfff + (bits >> 13 & 1)) >> 13));
}
inline float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                    : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                    : std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

}  // namespace nanolm::emulator

// NAME with arithmetic and comparison, and NAME2 of two.
#define NANOLM_NARROW_FLOAT(NAME, TO_BITS, FROM_BITS)                          \
  struct NAME {                                                                \
    std::uint16_t bits;                                                        \
    NAME() = default;                                                          \
    NAME(float value) : bits(::nanolm::emulator::TO_BITS(value)) {}            \
    operator float() const { return ::nanolm::emulator::FROM_BITS(bits); }     \
    NAME& operator+=(NAME b) { return *this = NAME(float(*this) + float(b)); } \
    NAME& operator-=(NAME b) { return *this = NAME(float(*this) - float(b)); } \
    NAME& operator*=(NAME b) { return *this = NAME(float(*this) * float(b)); } \
    NAME& operator/=(NAME b) { return *this = NAME(float(*this) / float(b)); } \
  };                                                                           \
  inline NAME operator+(NAME a, NAME b) { return NAME(float(a) + float(b)); }  \
  inline NAME operator-(NAME a, NAME b) { return NAME(float(a) - float(b)); }  \
  inline NAME operator*(NAME a, NAME b) { return NAME(float(a) * float(b)); }  \
  inline NAME operator/(NAME a, NAME b) { return NAME(float(a) / float(b)); }
