// Right, in an unusual style: one kernel for whole float4s, and a second launch for the up to three elements behind
// them. Where x or y does not start at a multiple of 16 bytes the second one takes all of them.
#include <algorithm>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kThreads = 128;

struct Chain {
  int operations;
  float multiply[kMaxOperations];
  float add[kMaxOperations];
};

__device__ float apply(const Chain& chain, float value) {
  for (int k = 0; k < chain.operations; ++k) value = fmaf(value, chain.multiply[k], chain.add[k]);
  return value;
}

__global__ void fours_kernel(const float4* x, float4* y, std::int64_t fours, Chain chain) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= fours) return;
  const float4 v = x[i];
  y[i] = make_float4(apply(chain, v.x), apply(chain, v.y), apply(chain, v.z), apply(chain, v.w));
}

__global__ void tail_kernel(const float* x, float* y, std::int64_t count, Chain chain) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) y[i] = apply(chain, x[i]);
}

bool is_aligned(const float* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

void launch(const ElementwiseArgs& args, const float* x, const Chain& chain) {
  const auto blocks = [](std::int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); };
  const std::int64_t fours = is_aligned(x) && is_aligned(args.y) ? args.count / 4 : 0, tail = args.count - 4 * fours;
  if (fours > 0) {
    fours_kernel<<<blocks(fours), kThreads, 0, args.stream>>>(reinterpret_cast<const float4*>(x),
                                                              reinterpret_cast<float4*>(args.y), fours, chain);
    CUDA_CHECK(cudaGetLastError());
  }
  if (tail > 0) {
    tail_kernel<<<blocks(tail), kThreads, 0, args.stream>>>(x + 4 * fours, args.y + 4 * fours, tail, chain);
    CUDA_CHECK(cudaGetLastError());
  }
}

void chain(const ElementwiseArgs& args) {
  check_elementwise(args);
  for (int k = 0; k < args.operations; ++k)
    launch(args, k == 0 ? args.x : args.y, {1, {args.multiply[k]}, {args.add[k]}});
}

void fused(const ElementwiseArgs& args) {
  check_elementwise(args);
  Chain all{args.operations, {}, {}};
  std::copy_n(args.multiply, kMaxOperations, all.multiply);
  std::copy_n(args.add, kMaxOperations, all.add);
  launch(args, args.x, all);
}

}  // namespace

const Rung fused_elementwise = [] {
  Rung r;
  r.name = "float4_and_a_tail_kernel/01_fused_elementwise";
  r.idea = "A launch for the vectors, a launch for the rest";
  r.chain = chain;
  r.fused = fused;
  return r;
}();

}  // namespace nanolm::cuda
