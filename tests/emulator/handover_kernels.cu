// Blocks and threads that meet by atomics and fences, rightly and wrongly: what tests/emulator/handovers_test.cpp runs.
#include "kernels.h"

namespace nanolm::emulated {

namespace {

constexpr unsigned kBlocks = 4, kThreads = 64;

__device__ float sum_of(const float* values, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];  // taken over
  return sum;
}

// Each block writes 64 values; the one that is last to count itself adds up all of them.
__global__ void last_block_kernel(Handover what, float* values, int* done, float* sum) {
  __shared__ bool is_last;
  const bool first = threadIdx.x == 0;
  float& mine = values[blockIdx.x * kThreads + threadIdx.x];
  if (what == Handover::kFenceInFront) __threadfence();
  mine = 1;  // handed over
  if (what == Handover::kAllFence || what == Handover::kNoBarrier) __threadfence();
  if (what == Handover::kBlockFence) __threadfence_block();
  if (what != Handover::kNoBarrier) __syncthreads();
  if (what == Handover::kOneFences && first) __threadfence();
  if (what == Handover::kWritesBehindTheFence && first) __threadfence(), mine = 1;  // handed over
  int* const counter = done + (what == Handover::kOtherAddress ? blockIdx.x : 0);
  if (first) is_last = atomicAdd(counter, 1) == static_cast<int>(kBlocks) - 1;
  if (what == Handover::kOtherAddress && first) is_last = blockIdx.x > 0;
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x == 1) *sum = sum_of(values, kBlocks * kThreads);
  if (first && what != Handover::kOtherAddress) *done = 0;  // for the next launch
}

// Blocks 0 and 1 meet at a counter, 2 and 3 at another, the last of each two at a third.
__global__ void tree_kernel(float* values, int* done, float* sum) {
  if (threadIdx.x > 0) return;
  values[blockIdx.x] = 64;
  __threadfence();
  if (atomicAdd(done + blockIdx.x / 2, 1) == 0) return;
  __threadfence();
  if (atomicAdd(done + 2, 1) == 0) return;
  *sum = sum_of(values, kBlocks);
}

// The warps meet without a barrier; lane 0 counts what all lanes of its warp wrote.
__global__ void last_warp_kernel(Handover what, float* values, int* done, float* sum) {
  __shared__ int done_smem;
  __shared__ float values_smem[kThreads];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool within = what == Handover::kWarpsOfABlock || what == Handover::kWarpsOfABlockNoFence;
  if (threadIdx.x == 0) done_smem = 0;
  __syncthreads();
  if (within && blockIdx.x > 0) return;
  float* const all = within ? values_smem : values;
  all[(within ? 0 : blockIdx.x * kThreads) + threadIdx.x] = within ? 4 : 1;  // handed over
  __syncwarp();
  int before = 0;
  if (lane == 0) {
    if (what == Handover::kWarpsOfABlock) __threadfence_block();
    if (what == Handover::kWarps) __threadfence();
    before = within ? atomicAdd(&done_smem, 1) : atomicAdd(done, 1);
  }
  const int warps = static_cast<int>(kThreads / 32 * (within ? 1 : kBlocks));
  if (lane == 0 && before == warps - 1) *sum = sum_of(all, warps * 32);
}

// A thread counts itself, whatever its block.
__global__ void last_thread_kernel(float* values, int* done, float* sum) {
  values[blockIdx.x * kThreads + threadIdx.x] = 1;
  __threadfence();
  if (atomicAdd(done, 1) == kBlocks * kThreads - 1) *sum = sum_of(values, kBlocks * kThreads);
}

}  // namespace

void hand_over(Handover what, float* values, int* done, float* sum) {
  switch (what) {
    case Handover::kTree:
      return tree_kernel<<<kBlocks, kThreads>>>(values, done, sum);
    case Handover::kThreads:
      return last_thread_kernel<<<kBlocks, kThreads>>>(values, done, sum);
    case Handover::kWarps:
    case Handover::kWarpsNoFence:
    case Handover::kWarpsOfABlock:
    case Handover::kWarpsOfABlockNoFence:
      return last_warp_kernel<<<kBlocks, kThreads>>>(what, values, done, sum);
    default:
      last_block_kernel<<<kBlocks, kThreads>>>(what, values, done, sum);
  }
}

}  // namespace nanolm::emulated
