// Right, in an unusual style: a block is one warp with 96 queries, and a lane has three of them for itself: no shuffle,
// no scores in shared memory. Tiles of 24 keys, K and V in two buffers, so two barriers a tile. A lane's rows of O lie
// in shared memory too, where no other lane touches them.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kThreads = 32, kRows = 3, kBlockQ = kThreads * kRows, kBlockK = 24;
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// Rows of an odd number of floats: the same column of 32 rows lies in 32 banks.
__host__ __device__ int stride(std::int64_t head_dim) { return static_cast<int>(head_dim) | 1; }
int shared_bytes(const AttentionShape& s) { return 4 * (2 * kBlockQ + 2 * kBlockK) * stride(s.head_dim); }

__device__ void load(const float* matrix, int rows, int head_dim, float* tile) {
  for (int at = static_cast<int>(threadIdx.x); at < rows * head_dim; at += kThreads)
    tile[at / head_dim * stride(head_dim) + at % head_dim] = matrix[at];
}

struct Row {
  float row_max, row_sum;
  float* O;
};

// Folds the first `seen` keys of a tile into a row.
__device__ void update(Row& row, const float* Q, const float* K_smem, const float* V_smem, int seen,
                       const AttentionShape& s) {
  const int head_dim = static_cast<int>(s.head_dim);
  float S[kBlockK], new_max = row.row_max;
  for (int j = 0; j < seen; ++j) {
    S[j] = 0;
    for (int h = 0; h < head_dim; ++h) S[j] = fmaf(Q[h], K_smem[j * stride(head_dim) + h], S[j]);
    S[j] *= s.scale;
    new_max = fmaxf(new_max, S[j]);
  }
  const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
  const float rescale = expf(row.row_max - shift);
  row.row_sum *= rescale;
  row.row_max = new_max;
  for (int j = 0; j < seen; ++j) row.row_sum += S[j] = expf(S[j] - shift);
  for (int h = 0; h < head_dim; ++h) {
    float sum = row.O[h] * rescale;
    for (int j = 0; j < seen; ++j) sum = fmaf(S[j], V_smem[j * stride(head_dim) + h], sum);
    row.O[h] = sum;
  }
}

// How many keys row q of its head sees.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  return s.causal ? max(std::int64_t{0}, min(s.seqlen_k, q + s.seqlen_k - s.seqlen_q + 1)) : s.seqlen_k;
}

__global__ void __launch_bounds__(kThreads) rows_kernel(ForwardArgs<float> args, std::int64_t q_blocks) {
  extern __shared__ float shared[];
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim), first = static_cast<int>(threadIdx.x);
  float *const Q_smem = shared, *const O_smem = Q_smem + kBlockQ * stride(head_dim);
  float *const K_smem = O_smem + kBlockQ * stride(head_dim), *const V_smem = K_smem + kBlockK * stride(head_dim);
  const std::int64_t head = blockIdx.x / q_blocks, first_q = blockIdx.x % q_blocks * kBlockQ;
  const std::int64_t first_row = head * s.seqlen_q + first_q;
  const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * head_dim;
  const int rows = static_cast<int>(min(std::int64_t{kBlockQ}, s.seqlen_q - first_q));

  load(args.Q + first_row * head_dim, rows, head_dim, Q_smem);
  Row row[kRows];
  for (int r = 0; r < kRows; ++r) {
    row[r] = {kMinusInf, 0, O_smem + (first + r * kThreads) * stride(head_dim)};
    for (int h = 0; h < head_dim; ++h) row[r].O[h] = 0;
  }
  const std::int64_t visited = keys_seen(s, first_q + rows - 1);
  for (std::int64_t first_k = 0; first_k < visited; first_k += kBlockK) {
    const int keys = static_cast<int>(min(std::int64_t{kBlockK}, s.seqlen_k - first_k));
    load(args.K + kv + first_k * head_dim, keys, head_dim, K_smem);
    load(args.V + kv + first_k * head_dim, keys, head_dim, V_smem);
    __syncthreads();
    for (int r = 0, q = first; r < kRows && q < rows; ++r, q += kThreads) {
      const int seen = static_cast<int>(min(std::int64_t{keys}, keys_seen(s, first_q + q) - first_k));
      if (seen > 0) update(row[r], Q_smem + q * stride(head_dim), K_smem, V_smem, seen, s);
    }
    __syncthreads();
  }
  for (int r = 0, q = first; r < kRows && q < rows; ++r, q += kThreads) {
    const float factor = row[r].row_sum == 0.0f ? 0.0f : 1.0f / row[r].row_sum;
    for (int h = 0; h < head_dim; ++h) args.O[(first_row + q) * head_dim + h] = row[r].O[h] * factor;
    args.lse[first_row + q] = row[r].row_max + logf(row[r].row_sum);
  }
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t q_blocks = block_count(args.shape.seqlen_q, kBlockQ);
  const std::int64_t blocks = args.shape.batch * args.shape.q_heads * q_blocks;
  if (blocks == 0) return;
  const int bytes = shared_bytes(args.shape);
  CUDA_CHECK(cudaFuncSetAttribute(rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  rows_kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<std::size_t>(bytes), args.stream>>>(args,
                                                                                                         q_blocks);
  CUDA_CHECK(cudaGetLastError());
}

bool supports(const AttentionShape& shape, const Device& device) {
  return shape.head_dim <= 256 && shared_bytes(shape) <= device.shared_bytes_per_block;
}

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "rows_of_a_thread/03_flash_forward";
  r.idea = "A thread has whole rows; K and V in two buffers";
  r.forward = forward;
  r.supports = supports;
  return r;
}();

}  // namespace nanolm::cuda
