// The fastest multiply-adds that these flags reach: independent sums, so that neither latency nor memory limits them.
// Compiled three times, as multiply_add_vector, multiply_add_scalar and, with lesson 10's instructions,
// multiply_add_native (bench/CMakeLists.txt).
#include <cstdint>

namespace nanolm {

#if defined(MULTIPLY_ADD_SCALAR)
constexpr int kLanes = 1;
using Register = float;
#else
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
// A loop over floats would do for g++; clang leaves its sums in memory.
using Register = float __attribute__((vector_size(kLanes * sizeof(float))));
#endif

// Twelve registers of sums hide the latency of a multiplication and an addition, and fit beside two constants in 16.
// They have names: an array of them ends up in memory with some compilers. They start from different values: equal sums
// may be computed once.
constexpr int kRegisters = 12;
extern const double multiply_add_step_flop = 2.0 * kRegisters * kLanes;

// The factors keep the sums finite: x <- x / 2 + 1 tends to 2.
float multiply_add(std::int64_t steps) {
  const Register half = Register{} + 0.5f, one = Register{} + 1.0f;
  Register a = Register{}, b = a + 1.0f, c = a + 2.0f, d = a + 3.0f, e = a + 4.0f, f = a + 5.0f;
  Register g = a + 6.0f, h = a + 7.0f, i = a + 8.0f, j = a + 9.0f, k = a + 10.0f, l = a + 11.0f;
  for (std::int64_t step = 0; step < steps; ++step) {
    a = a * half + one, b = b * half + one, c = c * half + one, d = d * half + one;
    e = e * half + one, f = f * half + one, g = g * half + one, h = h * half + one;
    i = i * half + one, j = j * half + one, k = k * half + one, l = l * half + one;
  }
  const Register total = a + b + c + d + e + f + g + h + i + j + k + l;
  return reinterpret_cast<const float&>(total);  // any lane: the result only has to be used
}

}  // namespace nanolm
