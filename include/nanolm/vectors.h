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

namespace nanolm {

#if defined(__AVX512F__)
inline constexpr std::int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kLanes = 8;
#else
inline constexpr std::int64_t kLanes = 4;  // SSE2, NEON
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
  friend Floats max(Floats a, Floats b) { return Floats(a.lanes_ > b.lanes_ ? a.lanes_ : b.lanes_); }
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
    float total = 0;
    for (int i = 0; i < kLanes; ++i) total += x.lanes_[i];
    return total;
  }
  friend float largest(Floats x) {
    float most = x.lanes_[0];
    for (int i = 1; i < kLanes; ++i) most = most > x.lanes_[i] ? most : x.lanes_[i];
    return most;
  }

 private:
  explicit Floats(Lanes lanes) : lanes_(lanes) {}
  Lanes lanes_;
};

// to[j * to_row + i] = from[i * from_row + j] for i and j from 0 to 3: 4 loads, 8 shuffles and 4 stores in place of 32
// moves.
inline void transpose_4x4(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  typedef float Four __attribute__((vector_size(16)));
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
#define NANOLM_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else  // g++ 11
  typedef std::int32_t Indices __attribute__((vector_size(16)));
#define NANOLM_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, Indices{i, j, k, l})
#endif
  Four rows[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&rows[i], from + i * from_row, sizeof rows[i]);
  const Four a = NANOLM_SHUFFLE(rows[0], rows[2], 0, 4, 1, 5), b = NANOLM_SHUFFLE(rows[1], rows[3], 0, 4, 1, 5);
  const Four c = NANOLM_SHUFFLE(rows[0], rows[2], 2, 6, 3, 7), d = NANOLM_SHUFFLE(rows[1], rows[3], 2, 6, 3, 7);
  const Four columns[4] = {NANOLM_SHUFFLE(a, b, 0, 4, 1, 5), NANOLM_SHUFFLE(a, b, 2, 6, 3, 7),
                           NANOLM_SHUFFLE(c, d, 0, 4, 1, 5), NANOLM_SHUFFLE(c, d, 2, 6, 3, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_row, &columns[i], sizeof columns[i]);
#undef NANOLM_SHUFFLE
}

}  // namespace nanolm
