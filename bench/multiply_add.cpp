// The fastest multiply-adds that these flags reach: independent sums, so that neither latency nor memory limits them.
// Compiled twice, as multiply_add_vector and multiply_add_scalar (bench/CMakeLists.txt).
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
constexpr int kRegisters = 12;
extern const double multiply_add_step_flop = 2.0 * kRegisters * kLanes;

// The factors keep the sums finite: x <- x / 2 + 1 tends to 2.
float multiply_add(std::int64_t steps) {
  Register sums[kRegisters];
  const Register half = Register{} + 0.5f, one = Register{} + 1.0f;
  for (int i = 0; i < kRegisters; ++i) sums[i] = Register{} + static_cast<float>(i);
  for (std::int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < kRegisters; ++i) sums[i] = sums[i] * half + one;
  Register total = sums[0];
  for (int i = 1; i < kRegisters; ++i) total += sums[i];
  return reinterpret_cast<const float&>(total);  // any lane: the result only has to be used
}

}  // namespace nanolm
