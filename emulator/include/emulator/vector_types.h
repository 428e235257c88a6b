// float4 and its relatives, dim3, streams' and events' names. Copies of 8- and 16-byte vectors are one access, as on a
// device: what checks and counts accesses must see one of 16 bytes, not four of 4.
#pragma once

#include <cstdint>

namespace nanolm::emulator {

typedef std::int64_t Bits8 __attribute__((may_alias));
typedef std::int64_t Bits16 __attribute__((vector_size(16), may_alias));

}  // namespace nanolm::emulator

#define NANOLM_INLINE inline __attribute__((always_inline))
// NAME's own copying goes through one load and one store of BITS.
#define NANOLM_COPIED_AS(NAME, BITS)                                        \
  NAME() = default;                                                         \
  NANOLM_INLINE NAME(const NAME& from) { *this = from; }                    \
  NANOLM_INLINE NAME& operator=(const NAME& from) {                         \
    using Bits = ::nanolm::emulator::BITS;                                  \
    *reinterpret_cast<Bits*>(this) = *reinterpret_cast<const Bits*>(&from); \
    return *this;                                                           \
  }
#define NANOLM_VECTOR1_AND_3(T, NAME)                   \
  struct NAME##1 {                                      \
    T x;                                                \
  };                                                    \
  struct NAME##3 {                                      \
    T x, y, z;                                          \
  };                                                    \
  constexpr NAME##1 make_##NAME##1(T x) { return {x}; } \
  constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }
#define NANOLM_VECTOR2(T, NAME, BITS)               \
  struct alignas(2 * sizeof(T)) NAME##2 {           \
    T x, y;                                         \
    constexpr NAME##2(T x_, T y_) : x(x_), y(y_) {} \
    NANOLM_COPIED_AS(NAME##2, BITS)                 \
  };                                                \
  NANOLM_INLINE NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }
#define NANOLM_VECTOR4(T, NAME, BITS)                                         \
  struct alignas(4 * sizeof(T)) NAME##4 {                                     \
    T x, y, z, w;                                                             \
    constexpr NAME##4(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {} \
    NANOLM_COPIED_AS(NAME##4, BITS)                                           \
  };                                                                          \
  NANOLM_INLINE NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

NANOLM_VECTOR1_AND_3(float, float)
NANOLM_VECTOR1_AND_3(int, int)
NANOLM_VECTOR1_AND_3(unsigned, uint)
NANOLM_VECTOR2(float, float, Bits8)
NANOLM_VECTOR2(int, int, Bits8)
NANOLM_VECTOR2(unsigned, uint, Bits8)
NANOLM_VECTOR2(double, double, Bits16)
NANOLM_VECTOR2(long long, longlong, Bits16)
NANOLM_VECTOR4(float, float, Bits16)
NANOLM_VECTOR4(int, int, Bits16)
NANOLM_VECTOR4(unsigned, uint, Bits16)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
};

using cudaStream_t = struct NanolmStream*;
using cudaEvent_t = struct NanolmEvent*;
