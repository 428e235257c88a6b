// What could be called a race or unwritten memory and is neither, and races that are easily missed:
// tests/emulator/trials_test.cpp runs each with the checker on.
#include <cuda_bf16.h>

#include <cstring>

#include "kernels.h"
#include "nanolm/cuda/ptx.h"

namespace nanolm::emulated {

namespace {

struct Three {
  float x, y, z;
};
struct Padded {
  float value;
  char flag;  // three bytes of padding behind it
  int count;
};
union Word {
  float as_float;
  unsigned as_bits;
  unsigned char as_bytes[4];
};

__global__ void legal_kernel(Legal what, float* memory) {
  __shared__ float tile[64];
  __shared__ int counter;
  __shared__ Padded padded[64];
  __shared__ __nv_bfloat16 narrow[64];
  __shared__ volatile float fickle[64];
  __shared__ __align__(16) float four[64];
  const int i = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x), other = 63 - i;
  float got = 0;
  if (what == Legal::kTileReusedInALoop)
    for (int round = 0; round < 3; ++round) {
      tile[i] = static_cast<float>(round);
      __syncthreads();
      got += tile[other];
      __syncthreads();
    }
  if (what == Legal::kEarlyReturn) {
    if (i >= 40) return;
    tile[i] = 1;
    __syncthreads();
    got = tile[39 - i];
  }
  if (what == Legal::kCountOrders) {
    tile[i] = 1;
    if (__syncthreads_count(i < 7) == 7) got = tile[other];
  }
  if (what == Legal::kAtomicsThenRead) {
    if (i == 0) counter = 0;
    __syncthreads();
    atomicAdd(&counter, 1);
    __syncthreads();
    got = static_cast<float>(counter);
  }
  if (what == Legal::kInPlace) memory[64 * block + i] = 2 * memory[64 * block + i];
  if (what == Legal::kOwnWrites) {
    tile[i] = 1;
    tile[i] += 1;
    got = tile[i];
  }
  if (what == Legal::kBytesOfOneWord) reinterpret_cast<unsigned char*>(memory)[2 * i + block] = 1;
  if (what == Legal::kHalvesOfOneWord) {
    narrow[i] = __float2bfloat16(1.0f);
    __syncthreads();
    got = __bfloat162float(narrow[other]);
  }
  if (what == Legal::kVolatile) {
    fickle[i] = 1;
    __syncwarp();
    got = fickle[i ^ 1];
  }
  if (what == Legal::kUnion) {
    Word word;
    word.as_float = memory[64 * block + i];
    word.as_bytes[3] = 0;
    memory[64 * block + i] = word.as_float;
  }
  if (what == Legal::kTwelveBytes && i < 20) {
    reinterpret_cast<Three*>(tile)[i] = reinterpret_cast<const Three*>(memory)[i];
    __syncthreads();
    got = reinterpret_cast<const Three*>(tile)[19 - i].z;
  }
  if (what == Legal::kMemcpy) {
    memcpy(tile + i, memory + i, sizeof(float));
    __syncthreads();
    memcpy(&got, tile + other, sizeof(float));
  }
  if (what == Legal::kPadding) {
    padded[i].value = 1, padded[i].flag = 2, padded[i].count = 3;
    __syncthreads();
    const Padded copy = padded[other];
    got = copy.value + static_cast<float>(copy.flag + copy.count);
  }
  if (what == Legal::kAsyncTwoBuffers) {
    // Each thread copies and reads its own 4 floats, so that no barrier is needed.
    if (i < 16) {
      cuda::cp_async_16(four + 4 * i, memory + 4 * i);
      cuda::cp_async_commit();
      cuda::cp_async_wait<0>();
      got = four[4 * i + 3];
    }
  }
  if (what == Legal::kSharedReadByAll) {
    if (i == 0) tile[0] = 5;
    __syncthreads();
    got = tile[0];
    __syncthreads();
    if (i == 33) tile[0] = 6;
    __syncthreads();
    got += tile[0];
  }
  if (got < -1 || isinf(got)) memory[255] = got;
}

__global__ void illegal_kernel(Illegal what, float* memory) {
  __shared__ __align__(16) float tile[64];
  __shared__ unsigned short halves[64];
  const int i = static_cast<int>(threadIdx.x);
  float got = 0;
  if (what == Illegal::kAsyncIntoWhatIsRead) {
    tile[i] = 1;
    __syncthreads();
    got = tile[63 - i];
    if (i < 16) cuda::cp_async_16(tile + 4 * i, memory + 4 * i);  // a barrier is missing in front of it
    cuda::cp_async_commit();
    __syncthreads();
    cuda::cp_async_wait<0>();
  }
  if (what == Illegal::kAsyncReadByOthers && i < 32) {
    cuda::cp_async_16(tile + 4 * (i % 16), memory + 4 * (i % 16));
    cuda::cp_async_commit();
  }
  if (what == Illegal::kHalfBesideAnother) {
    if (i < 2) halves[i] = 1;
    if (i == 40) got = halves[0];
  }
  if (what == Illegal::kReaderOfAnotherWarp) {
    if (i == 0) tile[0] = 1;
    __syncthreads();
    if (i < 8 || i == 40) got = tile[0];
    __syncwarp();
    if (i == 0) tile[0] = 2;
  }
  if (what == Illegal::kMemcpy) {
    memcpy(tile + i, memory + i, sizeof(float));
    memcpy(&got, tile + (63 - i), sizeof(float));
  }
  if (what == Illegal::kLargeMemcpy && i == 0) memcpy(tile, memory + 200, sizeof tile);
  if (got < -1) memory[255] = got;
}

}  // namespace

void legal(Legal what, float* memory) { legal_kernel<<<2, 64>>>(what, memory); }
void illegal(Illegal what, float* memory) { illegal_kernel<<<2, 64>>>(what, memory); }

}  // namespace nanolm::emulated
