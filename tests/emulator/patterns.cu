#include <cuda_runtime.h>

#include "patterns.h"

namespace nanolm::emulated {
namespace {

__device__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }

__global__ void pattern_kernel(Pattern what, float* memory) {
  __shared__ __align__(16) float tile[32 * 33];
  const int lane = static_cast<int>(threadIdx.x);
  float got = 0;
  if (what == Pattern::kNeighbours) got = memory[lane];
  if (what == Pattern::kFromTheSecond) got = memory[1 + lane];
  if (what == Pattern::kEverySecond) got = memory[2 * lane];
  if (what == Pattern::kEveryEighth) got = memory[8 * lane];
  if (what == Pattern::kOneElement) got = memory[5];
  if (what == Pattern::kFours) got = sum(reinterpret_cast<const float4*>(memory)[lane]);
  if (what == Pattern::kHalf && lane < 16) got = memory[lane];
  if (what == Pattern::kTwice)
    for (int i = 0; i < 64; i += 32) got += memory[i + lane];
  if (what == Pattern::kTail)
    for (int i = lane; i < 40; i += 32) got += memory[i];
  if (what == Pattern::kDiverged)
    for (int i = 0; i < 2; ++i) {
      if (i == 1 || lane % 2 == 0) got += memory[32 * i + lane];
      __syncwarp();
    }
  if (what == Pattern::kStore) memory[2 * lane] = 1;
  if (what == Pattern::kAtomic) atomicAdd(memory + lane / 16, 1.0f);

  if (what == Pattern::kSharedNeighbours) got = tile[lane];
  if (what == Pattern::kSharedEverySecond) got = tile[2 * lane];
  if (what == Pattern::kSharedColumn) got = tile[32 * lane];
  if (what == Pattern::kSharedPaddedColumn) got = tile[33 * lane];
  if (what == Pattern::kSharedOneElement) got = tile[lane / 32];
  if (what == Pattern::kSharedFours) got = sum(reinterpret_cast<const float4*>(tile)[lane]);
  if (what == Pattern::kSharedFoursColumn) got = sum(reinterpret_cast<const float4*>(tile)[8 * lane]);
  if (what == Pattern::kSharedEights) got = static_cast<float>(reinterpret_cast<const double*>(tile)[lane]);
  if (got == 12345.678f) memory[0] = got;  // never, but the compiler cannot know
}

__global__ void barrier_kernel(float* memory) {
  __shared__ float tile[64];
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = memory[threadIdx.x];
    __syncthreads();
  }
}

}  // namespace

void pattern(Pattern what, float* memory) { pattern_kernel<<<1, 32>>>(what, memory); }
void three_barriers(int blocks, float* memory) { barrier_kernel<<<blocks, 64>>>(memory); }

}  // namespace nanolm::emulated
