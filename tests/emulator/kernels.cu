// What the tests of the emulator run: plain CUDA, rewritten and compiled as a rung is.
#include "kernels.h"
#include "nanolm/cuda/ptx.h"
#include "nanolm/todo.h"

namespace nanolm::emulated {

namespace {

template <int floats>
__global__ void too_much_static(float* out) {
  __shared__ float big[floats];
  big[threadIdx.x] = 1;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void act_kernel(Act what, float* memory, const float* other) {
  __shared__ float shared[8];
  extern __shared__ float dynamic[];
  const int i = static_cast<int>(threadIdx.x);
  const bool first = i == 0;
  if (what == Act::kBehindTheEnd && first) memory[kLanes + 2] = 1;
  if (what == Act::kInFrontOfTheBeginning && first) memory[0] = memory[-3];
  if (what == Act::kFreed && first) memory[0] = other[1];
  if (what == Act::kNullPointer && first) memory[0] = other[0];
  if (what == Act::kHostMemory && first) memory[0] = other[0];
  if (what == Act::kSharedBehindTheEnd && first) shared[i + 8] = 1;
  if (what == Act::kSharedDynamicBehindTheEnd && first) dynamic[i + 4] = 1;
  if (what == Act::kMisalignedFloat4 && first) *reinterpret_cast<float4*>(memory + 1) = make_float4(1, 2, 3, 4);
  if (what == Act::kBarrierAndSyncwarp && i >= 16) __syncthreads();
  if (what == Act::kBarrierAndSyncwarp && i < 16) __syncwarp();
  if (what == Act::kTwoBarriers && i >= 40) __syncthreads();
  if (what == Act::kTwoBarriers && i < 40) __syncthreads();
  if (what == Act::kMaskWithoutTheCaller && i < 32) __shfl_xor_sync(0xffff, i, 1);
  if (what == Act::kTwoWarpFunctions && i < 16) __ballot_sync(0xffffffffu, 1);
  if (what == Act::kTwoWarpFunctions && i >= 16 && i < 32) __shfl_sync(0xffffffffu, i, 1);
  if (what == Act::kLaneThatExited && i == 5) return;
  if (what == Act::kLaneThatExited && i < 32) memory[i] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  if (what == Act::kAtomicBehindTheEnd && first) atomicAdd(memory + kLanes, 1.0f);
  if (what == Act::kThrow && i == 7) todo();
  if (what == Act::kExitBeforeBarrier && i >= 32) return;
  if (what == Act::kExitBeforeBarrier) __syncthreads();
  if (what == Act::kExitBeforeBarrier) memory[i] = 1;
}

__global__ void race_kernel(Race what, float* memory) {
  __shared__ float tile[64];
  __shared__ float square[8][8];
  __shared__ unsigned char bytes[64];
  const int i = static_cast<int>(threadIdx.x);
  float got = 0;
  if (what == Race::kBlocksApart) memory[64 * blockIdx.x + i] = 1;
  if (what == Race::kWriteThenRead || what == Race::kBarrierBetween) {
    tile[i] = 1;  // kWriteThenRead, first
    if (what == Race::kBarrierBetween) __syncthreads();
    got = tile[63 - i];  // kWriteThenRead, then
  }
  if (what == Race::kReadThenWrite) {
    tile[i] = 1;
    __syncthreads();
    got = tile[(i + 32) % 64];  // kReadThenWrite, first
    tile[i] = got;              // kReadThenWrite, then
  }
  if (what == Race::kTwoWriters) tile[i % 32] = 1;
  if (what == Race::kOneElement && i % 32 == 5) square[3][i % 8] = 1;
  if (what == Race::kShuffleBetween || what == Race::kSyncwarpBetween || what == Race::kInOneWarp) {
    tile[i] = 1;
    if (what == Race::kSyncwarpBetween) __syncwarp();
    if (what == Race::kShuffleBetween) got = __shfl_xor_sync(0xffffffffu, got, 1);
    got = tile[i ^ 1];  // in one warp
  }
  if (what == Race::kTwoRaces) {
    tile[i % 32] = 1;
    square[0][i % 8] = 1;
  }
  if (what == Race::kTwoBlocks) memory[i] = 1;
  if (what == Race::kAtomics) atomicAdd(memory, 1.0f);
  if (what == Race::kNeighbours) bytes[i] = 1;
  if (what == Race::kUnwrittenShared) got = tile[i];
  if (what == Race::kUnwrittenGlobal) got = memory[128 + i];
  if (got < -1) memory[255] = got;
}

__global__ void index_kernel(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  out[i] = static_cast<int>(i);
}

template <int block>
__global__ void reverse_kernel(const float* in, float* out, int n) {
  __shared__ float tile[block];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tile[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  const float mirrored = tile[block - 1 - threadIdx.x];
  if (i < n) out[i] = mirrored;
}

__global__ void warp_kernel(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = __shfl_sync(0xffffffffu, i, 3);
  out[32 + i] = __shfl_sync(0xffffffffu, i, 1, 8);
  out[64 + i] = __shfl_up_sync(0xffffffffu, i, 2);
  out[96 + i] = __shfl_down_sync(0xffffffffu, i, 2, 16);
  out[128 + i] = __shfl_xor_sync(0xffffffffu, i, 5);
  const unsigned half = i < 16 ? 0x0000ffffu : 0xffff0000u;
  out[160 + i] = __shfl_xor_sync(half, i, 1);  // each half for itself, at one line
  double wide = i + 0.5;
  out[192 + i] = static_cast<int>(2 * __shfl_down_sync(0xffffffffu, wide, 1));
  int sum = i;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  out[224 + i] = sum;
}

__global__ void vote_kernel(unsigned* out) {
  const int i = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(i % 3 == 0), all = __syncthreads_and(i < 96), none = __syncthreads_or(i > 100);
  if (i >= 32) return;
  const unsigned ballot = __ballot_sync(0xffffffffu, i % 2);
  const int any = __any_sync(0xffffffffu, i == 31), every = __all_sync(0xffffffffu, i < 31);
  if (i > 0) return;
  out[0] = static_cast<unsigned>(count), out[1] = all != 0, out[2] = none != 0;
  out[3] = ballot, out[4] = any != 0, out[5] = every != 0;
}

__global__ void sum_kernel(const float* in, float* total, int n) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x))
    atomicAdd(total, in[i]);
}

__global__ void first_thread_kernel(float* out, bool with_barrier) {
  __shared__ float said;
  if (threadIdx.x == 0) said = 7;
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = said;
}

__global__ void unwritten_kernel(float* out) {
  __shared__ float tile[2][32];
  out[blockIdx.x * 32 + threadIdx.x] = tile[1][threadIdx.x];
  tile[1][threadIdx.x] = 5;
}

__global__ void layout_kernel(std::uint64_t* out) {
  __shared__ char first[5];
  __shared__ __align__(16) float second[3];
  extern __shared__ float4 dynamic[];
  out[0] = reinterpret_cast<std::uint64_t>(first);
  out[1] = reinterpret_cast<std::uint64_t>(second);
  out[2] = reinterpret_cast<std::uint64_t>(dynamic);
}

__global__ void copy_kernel(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }

__global__ void async_kernel(const float* in, float* out, bool wait) {
  __shared__ __align__(16) float tile[2][64];
  const int i = 4 * static_cast<int>(threadIdx.x);
  cuda::cp_async_16(&tile[0][i], in + i);
  cuda::cp_async_commit();
  cuda::cp_async_16(&tile[1][i], in + 64 + i, i < 32 ? 16 : 8);
  cuda::cp_async_commit();
  if (wait) cuda::cp_async_wait<1>();
  for (int k = 0; k < 4; ++k) out[i + k] = tile[0][i + k];
  if (wait) cuda::cp_async_wait<0>();
  for (int k = 0; k < 4; ++k) out[64 + i + k] = tile[1][i + k];
}

__global__ void dynamic_kernel() {
  extern __shared__ float memory[];
  memory[threadIdx.x] = 1;
}

__constant__ float table[4] = {2, 3, 5, 7};
__global__ void constant_kernel(float* out) { out[threadIdx.x] = table[threadIdx.x]; }

__device__ float descend(volatile float* above, int depth) {
  volatile float here[256];
  here[0] = above[0] + 1;
  return depth == 0 ? here[0] : descend(here, depth - 1) + here[0];
}
__global__ void deep_kernel(float* out, int depth) {
  volatile float start[1] = {0};
  out[0] = descend(start, depth);
}

}  // namespace

void act(Act what, float* memory, const float* other) {
  if (what == Act::kTooMuchStatic) {
    too_much_static<12289><<<1, 1>>>(memory);
  } else {
    act_kernel<<<1, kLanes, 16>>>(what, memory, other);
  }
}

void indices(int* out, dim3 grid, dim3 block) { index_kernel<<<grid, block>>>(out); }
void race(Race what, float* memory) { race_kernel<<<2, 64>>>(what, memory); }
void reverse(const float* in, float* out, int n) { reverse_kernel<128><<<(n + 127) / 128, 128>>>(in, out, n); }
void warp_functions(int* out) { warp_kernel<<<1, 32>>>(out); }
void votes(unsigned* out) { vote_kernel<<<1, 96>>>(out); }
void sums(const float* in, float* total, int n) { sum_kernel<<<20, 64>>>(in, total, n); }
void first_thread_writes(float* out, bool with_barrier) { first_thread_kernel<<<1, 96>>>(out, with_barrier); }
void unwritten(float* out) { unwritten_kernel<<<2, 32>>>(out); }
void shared_layout(std::uint64_t* out) { layout_kernel<<<1, 1, 64>>>(out); }
void copies_of_float4(const float4* in, float4* out) { copy_kernel<<<1, 8>>>(in, out); }
void async_copies(const float* in, float* out, bool wait) { async_kernel<<<1, 16>>>(in, out, wait); }
void too_much_dynamic(std::size_t bytes, bool opt_in) {
  if (opt_in)
    cudaFuncSetAttribute(dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  dynamic_kernel<<<1, 32, bytes>>>();
}
void constants(float* out) { constant_kernel<<<1, 4>>>(out); }
void bad_launch(dim3 grid, dim3 block) { dynamic_kernel<<<grid, block, 128>>>(); }
void deep(float* out, int depth) { deep_kernel<<<1, 1>>>(out, depth); }

}  // namespace nanolm::emulated
