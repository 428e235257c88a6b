// Right, in an unusual style: a block for each row, and the tree reduction of older code: by halves in shared memory
// with a barrier between, the last 64 values by one warp alone. A warp's lanes no longer run in step (compute
// capability 7.0), so that part needs __syncwarp() between each read and the next write; volatile does not order.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr int kThreads = 128;

struct Max {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  static __device__ float of(float a, float b) { return a + b; }
};

// The block's values into one, which every thread gets.
template <class Operation>
__device__ float reduce(float value, volatile float* shared) {
  const int i = static_cast<int>(threadIdx.x);
  __syncthreads();  // what shared held before has been read
  shared[i] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 32; half /= 2) {
    if (i < half) shared[i] = Operation::of(shared[i], shared[i + half]);
    __syncthreads();
  }
  if (i < 32) {
    float mine = Operation::of(shared[i], shared[i + 32]);
    for (int half = 16; half > 0; half /= 2) {
      __syncwarp();
      shared[i] = mine;
      __syncwarp();
      mine = Operation::of(mine, shared[i ^ half]);
    }
    __syncwarp();
    if (i == 0) shared[0] = mine;
  }
  __syncthreads();
  return shared[0];
}

__global__ void row_kernel(ForwardArgs<float> args, std::int64_t rows) {
  __shared__ volatile float shared[kThreads];
  const AttentionShape& s = args.shape;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t head = row / s.seqlen_q, q = row % s.seqlen_q;
    const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * s.head_dim;
    std::int64_t keys = s.seqlen_k;
    if (s.causal) keys = max(std::int64_t{0}, min(keys, q + s.seqlen_k - s.seqlen_q + 1));
    float* const S = static_cast<float*>(args.workspace) + row * s.seqlen_k;

    float row_max = kMinusInf, row_sum = 0;
    for (std::int64_t j = threadIdx.x; j < keys; j += kThreads) {
      float dot = 0;
      for (std::int64_t h = 0; h < s.head_dim; ++h)
        dot = fmaf(args.Q[row * s.head_dim + h], args.K[kv + j * s.head_dim + h], dot);
      S[j] = s.scale * dot;
      row_max = fmaxf(row_max, S[j]);
    }
    row_max = reduce<Max>(row_max, shared);
    const float shift = row_max == kMinusInf ? 0.0f : row_max;  // -inf - (-inf) is NaN
    for (std::int64_t j = threadIdx.x; j < keys; j += kThreads) {
      S[j] = expf(S[j] - shift);
      row_sum += S[j];
    }
    row_sum = reduce<Sum>(row_sum, shared);  // its barriers also show each thread's S to all

    const float factor = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;
    for (std::int64_t h = threadIdx.x; h < s.head_dim; h += kThreads) {
      float sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) sum = fmaf(S[j], args.V[kv + j * s.head_dim + h], sum);
      args.O[row * s.head_dim + h] = sum * factor;
    }
    if (threadIdx.x == 0) args.lse[row] = row_max + logf(row_sum);
  }
}

void forward(const ForwardArgs<float>& args) {
  check_rung(naive_attention, args.shape);
  const std::int64_t rows = lse_size(args.shape);
  if (rows == 0) return;
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(rows, 0x7fffffff));
  row_kernel<<<grid, kThreads, 0, args.stream>>>(args, rows);
  CUDA_CHECK(cudaGetLastError());
}

std::int64_t workspace_bytes(const AttentionShape& shape) {
  return checked_product("workspace", {4, scores_size(shape)});
}

}  // namespace

const Rung naive_attention = [] {
  Rung r;
  r.name = "volatile_reduction/02_naive_attention";
  r.idea = "A block for each row, reductions by volatile shared memory";
  r.forward = forward;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
