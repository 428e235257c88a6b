// Lesson 10 and this machine's peak as C functions, for scripts/compare_torch.py.
#include <atomic>

#include "c_call.h"
#include "nanolm/fast_attention.h"
#include "nanolm/threads.h"

namespace nanolm {
extern const double multiply_add_step_flop_native;
float multiply_add_native(std::int64_t steps);
}  // namespace nanolm

extern "C" {

int nanolm_fast_attention(const std::int64_t* sizes, float scale, int causal, int threads, const float* Q,
                          const float* K, const float* V, float* O, float* lse) {
  using namespace nanolm;
  const AttentionShape s = shape_of(sizes, scale, causal);
  return reported([&] {
    fast_attention(s, threads, of(Q, q_size(s)), of(K, kv_size(s)), of(V, kv_size(s)), of(O, q_size(s)),
                   of(lse, lse_size(s)));
  });
}

int nanolm_fast_decode(const std::int64_t* sizes, float scale, int causal, int threads, const float* Q, const float* K,
                       const float* V, float* O, float* lse) {
  using namespace nanolm;
  const AttentionShape s = shape_of(sizes, scale, causal);
  return reported([&] {
    fast_decode(s, threads, of(Q, q_size(s)), of(K, kv_size(s)), of(V, kv_size(s)), of(O, q_size(s)),
                of(lse, lse_size(s)));
  });
}

int nanolm_fast_backward(const std::int64_t* sizes, float scale, int causal, int threads, const float* Q,
                         const float* K, const float* V, const float* O, const float* dO, const float* lse, float* dQ,
                         float* dK, float* dV) {
  using namespace nanolm;
  const AttentionShape s = shape_of(sizes, scale, causal);
  const std::int64_t q = q_size(s), kv = kv_size(s);
  return reported([&] {
    fast_backward(s, threads, of(Q, q), of(K, kv), of(V, kv), of(O, q), of(dO, q), of(lse, lse_size(s)), of(dQ, q),
                  of(dK, kv), of(dV, kv));
  });
}

// Reads so many floats, each thread its part.
void nanolm_read(const float* data, std::int64_t count, int threads) {
  static std::atomic<float> sink;
  nanolm::run_on_threads(threads, [&](int thread) {
    float sum = 0;
    const float *first = data + count / threads * thread, *last = first + count / threads;
#pragma omp simd reduction(+ : sum)
    for (const float* x = first; x < last; ++x) sum += *x;
    sink = sum;
  });
}

// FLOP of so many steps of multiply-adds, which are done.
double nanolm_multiply_adds(std::int64_t steps) {
  [[maybe_unused]] static volatile float sink;
  sink = nanolm::multiply_add_native(steps);
  return nanolm::multiply_add_step_flop_native * static_cast<double>(steps);
}

// Floats in a vector of lesson 10's instructions.
int nanolm_lanes() { return static_cast<int>(nanolm::multiply_add_step_flop_native / 24); }

}  // extern "C"
