// Given to lesson 10: a vector of floats, as wide as the instructions that the lesson is compiled for.
//
// It wraps the vector types of GCC and Clang: arithmetic, comparisons and `?:` go lane by lane, and without vector
// instructions the compiler makes scalar code of them. Which instructions there are is a flag of the build,
// NANOLM_VECTOR_FLAGS in CMakeLists.txt.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

// A lesson's micro-kernel has to be compiled into its callers: else its sums travel through memory.
#define NANOLM_INLINE [[gnu::always_inline]] inline

// Before a loop: four rounds become one, so that its end is foreseen more often.
#if defined(__clang__)
#define NANOLM_UNROLL _Pragma("unroll 4")
#else
#define NANOLM_UNROLL _Pragma("GCC unroll 4")
#endif

namespace nanolm {

#if defined(__AVX512F__)
inline constexpr std::int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kLanes = 8;
#else
inline constexpr std::int64_t kLanes = 4;  // SSE2, NEON
#endif

// Four floats, and the same in another order.
typedef float Four __attribute__((vector_size(16)));
#if defined(__clang__)
#define NANOLM_SHUFFLE(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#else
typedef std::int32_t FourIndices __attribute__((vector_size(16)));
#define NANOLM_SHUFFLE(x, ...) __builtin_shuffle(x, FourIndices{__VA_ARGS__})
#endif

class Floats {
  typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
  typedef std::int32_t Integers __attribute__((vector_size(kLanes * sizeof(float))));

 public:
  Floats() = default;
  explicit Floats(float x) : lanes_(x - Lanes{}) {}  // x in each lane
  static Floats load(const float* from) {
    Floats v;
    std::memcpy(&v.lanes_, from, sizeof v.lanes_);
    return v;
  }
  void store(float* to) const { std::memcpy(to, &lanes_, sizeof lanes_); }

  friend Floats operator+(Floats a, Floats b) { return Floats(a.lanes_ + b.lanes_); }
  friend Floats operator-(Floats a, Floats b) { return Floats(a.lanes_ - b.lanes_); }
  friend Floats operator*(Floats a, Floats b) { return Floats(a.lanes_ * b.lanes_); }
  // a b + c, rounded once where the processor can.
  friend Floats multiply_add(Floats a, Floats b, Floats c) { return Floats(a.lanes_ * b.lanes_ + c.lanes_); }
  // The larger one; b where a is NaN.
  friend Floats max(Floats a, Floats b) {
#if defined(__SSE2__)
    asm("" : "+x"(a.lanes_));  // hides a constant: with one g++ 12 makes two instructions of what is one, maxps
#endif
    return Floats(a.lanes_ > b.lanes_ ? a.lanes_ : b.lanes_);
  }
  // Lanes 0 to count - 1 of x, and -inf in the others.
  friend Floats first_lanes(Floats x, std::int64_t count) {
    Integers number{};
    for (int i = 0; i < kLanes; ++i) number[i] = i;
    const auto end = static_cast<std::int32_t>(count < 0 ? 0 : count < kLanes ? count : kLanes);
    return Floats(number < end + Integers{} ? x.lanes_ : -std::numeric_limits<float>::infinity() - Lanes{});
  }
  // 2^n where a lane holds 1.5 * 2^23 + 127 + n, n from -127 to 127: its lowest bits are 127 + n, which is how a float
  // stores the exponent n, from bit 23 on. -127 stands for 0.
  friend Floats power_of_two(Floats x) {
    Integers bits;
    std::memcpy(&bits, &x.lanes_, sizeof bits);
    bits <<= 23;
    std::memcpy(&x.lanes_, &bits, sizeof bits);
    return x;
  }
  friend float sum(Floats x) {
    return fold(x, [](Four a, Four b) { return a + b; });
  }
  friend float largest(Floats x) {
    return fold(x, [](Four a, Four b) { return a > b ? a : b; });
  }

 private:
  explicit Floats(Lanes lanes) : lanes_(lanes) {}
  // Combines halves, until one lane is left: log2(kLanes) steps wait for one another, where lane by lane kLanes would.
  template <class Combine>
  static float fold(const Floats& x, const Combine& combine) {
    Four parts[kLanes / 4];
    std::memcpy(parts, &x.lanes_, sizeof parts);
    for (int half = kLanes / 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) parts[i] = combine(parts[i], parts[i + half]);
    const Four pairs = combine(parts[0], NANOLM_SHUFFLE(parts[0], 2, 3, 0, 1));
    return combine(pairs, NANOLM_SHUFFLE(pairs, 1, 0, 3, 2))[0];
  }
  Lanes lanes_;
};

}  // namespace nanolm
