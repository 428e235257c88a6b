// Right, in an unusual style: while a tile of K and V is worked on, the next one is on its way by cp.async into a
// second buffer. Four neighbouring lanes share a row: each has every fourth column of it, and they add up a score by
// shuffles.
//
// A copy is seen by its own thread behind cp_async_wait, by the others behind a barrier after that. A buffer is filled
// again behind the barrier that ends the work on it.
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/cuda/ptx.h"

namespace nanolm::cuda {

namespace {
constexpr int kBlockQ = 32, kBlockK = 16, kLanesPerRow = 4, kThreads = kBlockQ * kLanesPerRow;
constexpr int kMaxHeadDim = 128, kColumns = kMaxHeadDim / kLanesPerRow;  // of one lane
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// A tile of [keys, head_dim]. cp.async needs both addresses to be multiples of 16; else the thread copies itself.
__device__ void fetch(const float* matrix, int keys, int head_dim, float* tile) {
  const int size = keys * head_dim;
  if (head_dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0)
    for (int at = 4 * static_cast<int>(threadIdx.x); at < size; at += 4 * kThreads) cp_async_16(tile + at, matrix + at);
  else
    for (int at = static_cast<int>(threadIdx.x); at < size; at += kThreads) tile[at] = matrix[at];
}

struct State {
  float row_max = kMinusInf, row_sum = 0, O[kColumns] = {};
};

// Folds one key into the row of four lanes. All lanes of the warp come here, those whose row does not see the key too:
// the shuffles need them.
__device__ void update(State& state, const float* Q, const float* K, const float* V, bool seen, int head_dim,
                       float scale) {
  const int lane = static_cast<int>(threadIdx.x) % kLanesPerRow;
  float score = 0;
  for (int c = 0; c < kColumns; ++c)
    if (lane + c * kLanesPerRow < head_dim) score = fmaf(Q[c], K[lane + c * kLanesPerRow], score);
  for (int lanes = 1; lanes < kLanesPerRow; lanes *= 2) score += __shfl_xor_sync(~0u, score, lanes);
  if (!seen) return;
  score *= scale;
  const float new_max = fmaxf(state.row_max, score), shift = new_max == kMinusInf ? 0.0f : new_max;
  const float rescale = expf(state.row_max - shift), p = expf(score - shift);
  state.row_max = new_max;
  state.row_sum = state.row_sum * rescale + p;
  for (int c = 0; c < kColumns; ++c)
    if (lane + c * kLanesPerRow < head_dim) state.O[c] = fmaf(p, V[lane + c * kLanesPerRow], state.O[c] * rescale);
}

// How many keys row q of its head sees.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  return s.causal ? max(std::int64_t{0}, min(s.seqlen_k, q + s.seqlen_k - s.seqlen_q + 1)) : s.seqlen_k;
}

__global__ void __launch_bounds__(kThreads) buffered_kernel(ForwardArgs<float> args, std::int64_t q_blocks) {
  __shared__ __align__(16) float K_smem[2][kBlockK * kMaxHeadDim];
  __shared__ __align__(16) float V_smem[2][kBlockK * kMaxHeadDim];
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim), lane = static_cast<int>(threadIdx.x) % kLanesPerRow;
  const std::int64_t head = blockIdx.x / q_blocks, first_q = blockIdx.x % q_blocks * kBlockQ;
  const std::int64_t q = first_q + threadIdx.x / kLanesPerRow, row = head * s.seqlen_q + q;
  const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * head_dim;
  const bool exists = q < s.seqlen_q;
  const auto keys_of = [&](std::int64_t tile) {
    return static_cast<int>(min(std::int64_t{kBlockK}, s.seqlen_k - tile * kBlockK));
  };
  const auto fetch_tile = [&](std::int64_t tile) {
    const std::int64_t from = kv + tile * kBlockK * head_dim;
    fetch(args.K + from, keys_of(tile), head_dim, K_smem[tile % 2]);
    fetch(args.V + from, keys_of(tile), head_dim, V_smem[tile % 2]);
  };

  State state;
  float Q[kColumns] = {};
  for (int c = 0; c < kColumns; ++c)
    if (exists && lane + c * kLanesPerRow < head_dim) Q[c] = args.Q[row * head_dim + lane + c * kLanesPerRow];
  const std::int64_t seen = exists ? keys_seen(s, q) : 0;
  const std::int64_t visited = keys_seen(s, min(first_q + kBlockQ, s.seqlen_q) - 1);
  const std::int64_t tiles = (visited + kBlockK - 1) / kBlockK;
  if (tiles > 0) fetch_tile(0);
  cp_async_commit();
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch_tile(tile + 1);
    cp_async_commit();  // behind the last tile an empty group, so that it is always the latest but one that is awaited
    cp_async_wait<1>();
    __syncthreads();
    for (int j = 0; j < keys_of(tile); ++j)
      update(state, Q, K_smem[tile % 2] + j * head_dim, V_smem[tile % 2] + j * head_dim, tile * kBlockK + j < seen,
             head_dim, s.scale);
    __syncthreads();
  }
  if (!exists) return;
  const float factor = state.row_sum == 0.0f ? 0.0f : 1.0f / state.row_sum;
  for (int c = 0; c < kColumns; ++c)
    if (lane + c * kLanesPerRow < head_dim) args.O[row * head_dim + lane + c * kLanesPerRow] = state.O[c] * factor;
  if (lane == 0) args.lse[row] = state.row_max + logf(state.row_sum);
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t q_blocks = block_count(args.shape.seqlen_q, kBlockQ);
  const std::int64_t blocks = args.shape.batch * args.shape.q_heads * q_blocks;
  if (blocks == 0) return;
  buffered_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, args.stream>>>(args, q_blocks);
  CUDA_CHECK(cudaGetLastError());
}

bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= kMaxHeadDim; }

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "double_buffered/03_flash_forward";
  r.idea = "The next tile is on its way while one is worked on";
  r.forward = forward;
  r.supports = supports;
  return r;
}();

}  // namespace nanolm::cuda
