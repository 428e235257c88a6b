// Right, in an unusual style: a warp owns a chunk of 256 neighbouring elements, of which each lane keeps eight in
// registers. The last chunk is cut, and nothing but its end is tested.
#include <algorithm>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kLanes = 32;
constexpr int kWarpsPerBlock = 4;
constexpr int kElementsPerLane = 8;
constexpr int kChunk = kLanes * kElementsPerLane;

struct Chain {
  int operations;
  float multiply[kMaxOperations];
  float add[kMaxOperations];
};

__global__ void __launch_bounds__(kLanes* kWarpsPerBlock)
    chunk_kernel(const float* x, float* y, std::int64_t count, Chain chain) {
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kWarpsPerBlock + warp) * kChunk + lane;
  float values[kElementsPerLane];
#pragma unroll
  for (int i = 0; i < kElementsPerLane; ++i) values[i] = first + i * kLanes < count ? x[first + i * kLanes] : 0.0f;
  for (int k = 0; k < chain.operations; ++k)
#pragma unroll
    for (float& value : values) value = fmaf(value, chain.multiply[k], chain.add[k]);
#pragma unroll
  for (int i = 0; i < kElementsPerLane; ++i)
    if (first + i * kLanes < count) y[first + i * kLanes] = values[i];
}

void launch(const ElementwiseArgs& args, const float* x, const Chain& chain) {
  if (args.count == 0) return;
  const std::int64_t blocks = (args.count + kWarpsPerBlock * kChunk - 1) / (kWarpsPerBlock * kChunk);
  chunk_kernel<<<static_cast<unsigned>(blocks), kLanes * kWarpsPerBlock, 0, args.stream>>>(x, args.y, args.count,
                                                                                           chain);
  CUDA_CHECK(cudaGetLastError());
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
  r.name = "a_warp_a_chunk/01_fused_elementwise";
  r.idea = "A warp for each 256 elements";
  r.chain = chain;
  r.fused = fused;
  return r;
}();

}  // namespace nanolm::cuda
