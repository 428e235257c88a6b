// Right, in an unusual style: K passes through shared memory transposed, in rows of 33 floats. A warp writes a column
// of the tile and reads a row; with 32 floats a row a column would lie in one bank, with 33 it lies in 32.
// Blocks of 32 x 8 threads, each with four elements of a tile of 32 x 32, as in the transposition of CUDA's samples.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr int kTile = 32, kRows = 8, kEach = kTile / kRows;
using Tile = float[kTile][kTile + 1];

__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  if (!s.causal) return s.seqlen_k;
  return max(std::int64_t{0}, min(s.seqlen_k, q + s.seqlen_k - s.seqlen_q + 1));
}
__host__ __device__ std::int64_t tiles(std::int64_t length) { return (length + kTile - 1) / kTile; }

// tile[r][c], or tile[c][r], is element (row + r, column + c) of a [rows, columns] matrix, 0 outside.
template <bool transposed>
__device__ void load(const float* matrix, std::int64_t rows, std::int64_t columns, std::int64_t row,
                     std::int64_t column, Tile& tile) {
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += kRows) {
    const int c = static_cast<int>(threadIdx.x);
    const bool inside = row + r < rows && column + c < columns;
    (transposed ? tile[c][r] : tile[r][c]) = inside ? matrix[(row + r) * columns + column + c] : 0.0f;
  }
}

__global__ void scores_kernel(ForwardArgs<float> args) {
  __shared__ Tile Q_smem;
  __shared__ Tile K_smem;  // transposed: [h][key]
  const AttentionShape& s = args.shape;
  const std::int64_t across = tiles(s.seqlen_k), down = tiles(s.seqlen_q), head = blockIdx.x / across / down;
  const std::int64_t first_q = blockIdx.x / across % down * kTile, first_k = blockIdx.x % across * kTile;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  float dot[kEach] = {};
  for (std::int64_t h = 0; h < s.head_dim; h += kTile) {
    load<false>(args.Q + head * s.seqlen_q * s.head_dim, s.seqlen_q, s.head_dim, first_q, h, Q_smem);
    const std::int64_t kv_head = head / (s.q_heads / s.kv_heads);
    load<true>(args.K + kv_head * s.seqlen_k * s.head_dim, s.seqlen_k, s.head_dim, first_k, h, K_smem);
    __syncthreads();
    for (int i = 0; i < kEach; ++i)
      for (int k = 0; k < kTile; ++k) dot[i] = fmaf(Q_smem[y + i * kRows][k], K_smem[k][x], dot[i]);
    __syncthreads();
  }
  float* const S = static_cast<float*>(args.workspace) + head * s.seqlen_q * s.seqlen_k;
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t q = first_q + y + i * kRows, key = first_k + x;
    if (q < s.seqlen_q && key < s.seqlen_k) S[q * s.seqlen_k + key] = s.scale * dot[i];
  }
}

// A warp for each row: weights and, a lane for each column, their sum of values.
__global__ void row_kernel(ForwardArgs<float> args) {
  const AttentionShape& s = args.shape;
  const std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.y;
  if (row >= s.batch * s.q_heads * s.seqlen_q) return;
  const std::int64_t head = row / s.seqlen_q, keys = keys_seen(s, row % s.seqlen_q);
  const float* const V = args.V + head / (s.q_heads / s.kv_heads) * s.seqlen_k * s.head_dim;
  float* const S = static_cast<float*>(args.workspace) + row * s.seqlen_k;
  float row_max = kMinusInf, row_sum = 0;
  for (std::int64_t j = threadIdx.x; j < keys; j += kTile) row_max = fmaxf(row_max, S[j]);
  for (int lanes = 1; lanes < kTile; lanes *= 2) row_max = fmaxf(row_max, __shfl_xor_sync(~0u, row_max, lanes));
  const float shift = row_max == kMinusInf ? 0.0f : row_max;  // -inf - (-inf) is NaN
  for (std::int64_t j = threadIdx.x; j < keys; j += kTile) {
    S[j] = expf(S[j] - shift);
    row_sum += S[j];
  }
  for (int lanes = 1; lanes < kTile; lanes *= 2) row_sum += __shfl_xor_sync(~0u, row_sum, lanes);
  __syncwarp();  // shows each lane's S to all; a shuffle does not
  for (std::int64_t h = threadIdx.x; h < s.head_dim; h += kTile) {
    float sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) sum = fmaf(S[j], V[j * s.head_dim + h], sum);
    args.O[row * s.head_dim + h] = row_sum == 0.0f ? 0.0f : sum / row_sum;
  }
  if (threadIdx.x == 0) args.lse[row] = row_max + logf(row_sum);
}

void forward(const ForwardArgs<float>& args) {
  check_rung(naive_attention, args.shape);
  const AttentionShape& s = args.shape;
  const std::int64_t heads = s.batch * s.q_heads, rows = heads * s.seqlen_q;
  const std::int64_t blocks = heads * tiles(s.seqlen_q) * tiles(s.seqlen_k);
  if (blocks > 0) scores_kernel<<<static_cast<unsigned>(blocks), dim3(kTile, kRows), 0, args.stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
  const auto row_blocks = static_cast<unsigned>(block_count(rows, kRows));
  if (rows > 0) row_kernel<<<row_blocks, dim3(kTile, kRows), 0, args.stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

std::int64_t workspace_bytes(const AttentionShape& shape) {
  return checked_product("workspace", {4, scores_size(shape)});
}

}  // namespace

const Rung naive_attention = [] {
  Rung r;
  r.name = "transposed_tiles/02_naive_attention";
  r.idea = "K transposed in padded shared memory";
  r.forward = forward;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
