// Lesson 10 and this machine's peak as C functions, for scripts/compare_torch.py.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>

#include "nanolm/fast_attention.h"

namespace nanolm {
extern const double multiply_add_step_flop_native;
float multiply_add_native(std::int64_t steps);

namespace {
AttentionShape shape_of(const std::int64_t* sizes, float scale, int causal) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], scale, causal != 0};
}
template <class T>
std::span<T> of(T* data, std::int64_t size) {
  return {data, static_cast<std::size_t>(size)};
}
template <class Function>
int reported(const Function& call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
}  // namespace
}  // namespace nanolm

extern "C" {

// sizes: batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim. 0: done; 1: refused, and standard error says why.
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
  static volatile float sink;
  sink = nanolm::multiply_add_native(steps);
  return nanolm::multiply_add_step_flop_native * static_cast<double>(steps);
}

// Floats in a vector of lesson 10's instructions.
int nanolm_lanes() { return static_cast<int>(nanolm::multiply_add_step_flop_native / 24); }

}  // extern "C"
