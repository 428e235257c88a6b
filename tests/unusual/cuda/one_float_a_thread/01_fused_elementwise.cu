// Right, in an unusual style: a grid as large as the device strides over the array, one float at a time. Neighbours in
// a warp take neighbours in memory, so no thread needs a vector, and no alignment matters.
#include <algorithm>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 8;  // 2048 threads, all that an SM holds

struct Chain {
  int operations;
  float multiply[kMaxOperations];
  float add[kMaxOperations];
};

__global__ void chain_kernel(const float* x, float* y, std::int64_t count, Chain chain) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    float value = x[i];
    for (int k = 0; k < chain.operations; ++k) value = fmaf(value, chain.multiply[k], chain.add[k]);
    y[i] = value;
  }
}

void launch(const ElementwiseArgs& args, const float* x, int first, int operations) {
  if (args.count == 0) return;
  Chain chain{operations, {}, {}};
  std::copy_n(args.multiply + first, operations, chain.multiply);
  std::copy_n(args.add + first, operations, chain.add);
  const std::int64_t needed = (args.count + kThreads - 1) / kThreads;
  const std::int64_t blocks = std::min<std::int64_t>(needed, std::int64_t{kBlocksPerSm} * current_device().sms);
  chain_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, args.stream>>>(x, args.y, args.count, chain);
  CUDA_CHECK(cudaGetLastError());
}

void chain(const ElementwiseArgs& args) {
  check_elementwise(args);
  for (int k = 0; k < args.operations; ++k) launch(args, k == 0 ? args.x : args.y, k, 1);
}

void fused(const ElementwiseArgs& args) {
  check_elementwise(args);
  launch(args, args.x, 0, args.operations);
}

}  // namespace

const Rung fused_elementwise = [] {
  Rung r;
  r.name = "one_float_a_thread/01_fused_elementwise";
  r.idea = "A grid-stride loop";
  r.chain = chain;
  r.fused = fused;
  return r;
}();

}  // namespace nanolm::cuda
