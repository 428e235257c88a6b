// Right, in an unusual style: a thread computes a whole row, alone. One kernel, no shared memory, no barrier, no
// shuffle; the row of scores lies in main memory and only its own thread reads it again.
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr int kThreads = 64;
constexpr int kColumns = 16;  // of a row of O that are summed in registers at a time

struct Row {
  const float *Q, *K, *V;
  float *S, *O;
  std::int64_t keys, head_dim;  // the keys that the row sees
};

// Leaves the scaled scores in S; returns the largest.
__device__ float scores(const Row& row, float scale) {
  float row_max = kMinusInf;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    float dot = 0;
    for (std::int64_t h = 0; h < row.head_dim; ++h) dot = fmaf(row.Q[h], row.K[j * row.head_dim + h], dot);
    row.S[j] = scale * dot;
    row_max = fmaxf(row_max, scale * dot);
  }
  return row_max;
}

// S becomes exp(S - row_max); returns their sum.
__device__ float exponentials(const Row& row, float row_max) {
  const float shift = row_max == kMinusInf ? 0.0f : row_max;  // -inf - (-inf) is NaN
  float row_sum = 0;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    row.S[j] = expf(row.S[j] - shift);
    row_sum += row.S[j];
  }
  return row_sum;
}

__device__ void weighted_values(const Row& row, float factor) {
  for (std::int64_t first = 0; first < row.head_dim; first += kColumns) {
    float sum[kColumns] = {};
    for (std::int64_t j = 0; j < row.keys; ++j) {
      const float p = row.S[j];
      for (int c = 0; c < kColumns; ++c)
        if (first + c < row.head_dim) sum[c] = fmaf(p, row.V[j * row.head_dim + first + c], sum[c]);
    }
    for (int c = 0; c < kColumns; ++c)
      if (first + c < row.head_dim) row.O[first + c] = sum[c] * factor;
  }
}

__global__ void row_kernel(ForwardArgs<float> args) {
  const AttentionShape& s = args.shape;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;  // of all rows of all heads
  if (i >= s.batch * s.q_heads * s.seqlen_q) return;
  const std::int64_t head = i / s.seqlen_q, q = i % s.seqlen_q;
  const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * s.head_dim;
  std::int64_t keys = s.seqlen_k;
  if (s.causal) keys = max(std::int64_t{0}, min(keys, q + s.seqlen_k - s.seqlen_q + 1));
  float* const S = static_cast<float*>(args.workspace) + i * s.seqlen_k;
  const Row row{args.Q + i * s.head_dim, args.K + kv, args.V + kv, S, args.O + i * s.head_dim, keys, s.head_dim};
  const float row_max = scores(row, s.scale), row_sum = exponentials(row, row_max);
  weighted_values(row, row_sum == 0.0f ? 0.0f : 1.0f / row_sum);
  args.lse[i] = row_max + logf(row_sum);
}

void forward(const ForwardArgs<float>& args) {
  check_rung(naive_attention, args.shape);
  const std::int64_t blocks = block_count(lse_size(args.shape), kThreads);
  if (blocks == 0) return;
  row_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, args.stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

std::int64_t workspace_bytes(const AttentionShape& shape) {
  return checked_product("workspace", {4, scores_size(shape)});
}

}  // namespace

const Rung naive_attention = [] {
  Rung r;
  r.name = "a_thread_a_row/02_naive_attention";
  r.idea = "A thread computes a whole row";
  r.forward = forward;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
