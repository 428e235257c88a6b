// Attention as three kernels, with the S x S scores in main memory between them (notes/cuda/02_naive_attention.md).
//
// What it adds to 01: shared memory, in which the threads of a block exchange what they loaded, and shuffles, by which
// the threads of a warp do. The two products are the tiled product that every CUDA course begins with; each thread
// computes one element.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr int kTile = 16;  // a block of the products computes 16 x 16 elements
constexpr int kWarp = 32;  // the softmax has a warp for each row
constexpr int kWarpsPerBlock = 8;

__host__ __device__ std::int64_t tiles(std::int64_t length) { return (length + kTile - 1) / kTile; }

// Row i of a query head sees the first keys_seen of the keys.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t i) {
  if (!s.causal) return s.seqlen_k;
  return max(std::int64_t{0}, min(s.seqlen_k, i + s.seqlen_k - s.seqlen_q + 1));
}

// Which tile of which head a block computes: blocks count on through the tiles of a row, its rows, and the heads.
struct Place {
  std::int64_t head, first_row, first_column;
};
__device__ Place place(std::int64_t block, std::int64_t rows, std::int64_t columns) {
  const std::int64_t across = tiles(columns), down = tiles(rows);
  return {block / across / down, block / across % down * kTile, block % across * kTile};
}

// The matrix of the kv head that query head `head` of [batch * q_heads] reads.
__device__ const float* kv_matrix(const float* matrices, const AttentionShape& s, std::int64_t head) {
  return matrices + head / (s.q_heads / s.kv_heads) * s.seqlen_k * s.head_dim;
}

// Element (row, column) of a [rows, columns] matrix, 0 outside.
[[maybe_unused]] __device__ float element(const float* matrix, std::int64_t row, std::int64_t column, std::int64_t rows,
                                          std::int64_t columns) {
  return row < rows && column < columns ? matrix[row * columns + column] : 0.0f;
}

// The product of row `first_q + y` of Q and row `first_k + x` of K, for thread (x, y). The sum over head_dim goes in
// steps of kTile; for each the block loads a tile of Q and one of K, so what is loaded once serves 16 threads.
__device__ float dot_product(const AttentionShape& s, const float* Q, std::int64_t first_q, const float* K,
                             std::int64_t first_k, float (&Q_smem)[kTile][kTile], float (&K_smem)[kTile][kTile + 1]) {
  float dot = 0;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (std::int64_t h = 0; h < s.head_dim; h += kTile) {
    Q_smem[y][x] = element(Q, first_q + y, h + x, s.seqlen_q, s.head_dim);
    K_smem[y][x] = element(K, first_k + y, h + x, s.seqlen_k, s.head_dim);
    __syncthreads();
    for (int k = 0; k < kTile; ++k) dot = fmaf(Q_smem[y][k], K_smem[x][k], dot);
    __syncthreads();
  }
  return dot;
}

// S = scale * Q K^T, and -inf where the mask hides.
[[maybe_unused]] __global__ void scores_kernel(AttentionShape s, const float* Q, const float* K, float* S,
                                               std::int64_t blocks) {
  __shared__ float Q_smem[kTile][kTile];
  __shared__ float K_smem[kTile][kTile + 1];  // read by columns: with 16 a row, all would lie in two banks
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place at = place(block, s.seqlen_q, s.seqlen_k);
    const float dot = dot_product(s, Q + at.head * s.seqlen_q * s.head_dim, at.first_row, kv_matrix(K, s, at.head),
                                  at.first_column, Q_smem, K_smem);
    const std::int64_t row = at.first_row + threadIdx.y, column = at.first_column + threadIdx.x;
    if (row < s.seqlen_q && column < s.seqlen_k)
      S[(at.head * s.seqlen_q + row) * s.seqlen_k + column] = column < keys_seen(s, row) ? s.scale * dot : kMinusInf;
  }
}

// The mask ~0u says that every lane takes part.
[[maybe_unused]] __device__ float warp_max(float value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  return value;
}
[[maybe_unused]] __device__ float warp_sum(float value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

// Softmax of a row of scores in place, and its lse. A warp passes over the row three times: maximum, sum, quotient.
__device__ void softmax_row(float* scores, std::int64_t keys, float* lse) {
  const int lane = static_cast<int>(threadIdx.x);
  float row_max = kMinusInf, row_sum = 0;
  for (std::int64_t j = lane; j < keys; j += kWarp) row_max = fmaxf(row_max, scores[j]);
  row_max = warp_max(row_max);
  const float shift = row_max == kMinusInf ? 0.0f : row_max;  // -inf - (-inf) is NaN
  for (std::int64_t j = lane; j < keys; j += kWarp) row_sum += expf(scores[j] - shift);
  row_sum = warp_sum(row_sum);
  const float factor = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;
  for (std::int64_t j = lane; j < keys; j += kWarp) scores[j] = expf(scores[j] - shift) * factor;
  if (lane == 0) *lse = row_max + logf(row_sum);  // empty: -inf + ln 0 = -inf
}

[[maybe_unused]] __global__ void __launch_bounds__(kWarp* kWarpsPerBlock)
    softmax_kernel(AttentionShape s, float* S, float* lse, std::int64_t rows) {
  for (std::int64_t row = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.y; row < rows;
       row += std::int64_t{gridDim.x} * kWarpsPerBlock)
    softmax_row(S + row * s.seqlen_k, s.seqlen_k, lse + row);
}

// The sum over keys of P[first_q + y, key] * V[key, first_h + x], for thread (x, y), tile by tile. A key that the row
// does not see is left out, not multiplied by its weight of 0: its value may be NaN, and 0 * NaN is NaN.
__device__ float sum_of_values(const AttentionShape& s, const float* P, std::int64_t first_q, const float* V,
                               std::int64_t first_h, float (&P_smem)[kTile][kTile], float (&V_smem)[kTile][kTile]) {
  float sum = 0;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t seen = keys_seen(s, first_q + y);
  for (std::int64_t j = 0; j < s.seqlen_k; j += kTile) {
    P_smem[y][x] = element(P, first_q + y, j + x, s.seqlen_q, s.seqlen_k);
    V_smem[y][x] = element(V, j + y, first_h + x, s.seqlen_k, s.head_dim);
    __syncthreads();
    for (int k = 0; k < kTile; ++k)
      if (j + k < seen) sum = fmaf(P_smem[y][k], V_smem[k][x], sum);
    __syncthreads();
  }
  return sum;
}

// O = P V.
[[maybe_unused]] __global__ void values_kernel(AttentionShape s, const float* P, const float* V, float* O,
                                               std::int64_t blocks) {
  __shared__ float P_smem[kTile][kTile];
  __shared__ float V_smem[kTile][kTile];
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place at = place(block, s.seqlen_q, s.head_dim);
    const float sum = sum_of_values(s, P + at.head * s.seqlen_q * s.seqlen_k, at.first_row, kv_matrix(V, s, at.head),
                                    at.first_column, P_smem, V_smem);
    const std::int64_t row = at.first_row + threadIdx.y, column = at.first_column + threadIdx.x;
    if (row < s.seqlen_q && column < s.head_dim) O[(at.head * s.seqlen_q + row) * s.head_dim + column] = sum;
  }
}

void forward(const ForwardArgs<float>& args) {
  check_rung(naive_attention, args.shape);
  const AttentionShape& s = args.shape;
  const std::int64_t heads = s.batch * s.q_heads, rows = heads * s.seqlen_q;
  if (rows == 0) return;
  float* S = static_cast<float*>(args.workspace);
  const auto grid = [](std::int64_t blocks) {
    return static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  };
  const dim3 tile(kTile, kTile), warps(kWarp, kWarpsPerBlock);
  const std::int64_t score_tiles = heads * tiles(s.seqlen_q) * tiles(s.seqlen_k);
  if (score_tiles > 0) {
    scores_kernel<<<grid(score_tiles), tile, 0, args.stream>>>(s, args.Q, args.K, S, score_tiles);
    CUDA_CHECK(cudaGetLastError());
  }
  softmax_kernel<<<grid((rows + kWarpsPerBlock - 1) / kWarpsPerBlock), warps, 0, args.stream>>>(s, S, args.lse, rows);
  CUDA_CHECK(cudaGetLastError());
  const std::int64_t value_tiles = heads * tiles(s.seqlen_q) * tiles(s.head_dim);
  values_kernel<<<grid(value_tiles), tile, 0, args.stream>>>(s, S, args.V, args.O, value_tiles);
  CUDA_CHECK(cudaGetLastError());
}

std::int64_t workspace_bytes(const AttentionShape& shape) {
  return checked_product("workspace", {4, scores_size(shape)});
}

}  // namespace

const Rung naive_attention = [] {
  Rung r;
  r.name = "cuda/02_naive_attention";
  r.idea = "Scores, softmax and values as three kernels, with the S x S matrix in main memory";
  r.forward = forward;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
