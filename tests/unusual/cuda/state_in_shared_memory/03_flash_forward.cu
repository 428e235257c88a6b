// Right, in an unusual style: a block is one warp with 16 queries, and row_max and row_sum lie in shared memory, a lane
// for each row to update them. What the lanes of a warp hand to each other by memory needs __syncwarp(), as what
// threads of a block do needs __syncthreads(); here the warp is the block, and there is no other barrier.
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kLanes = 32, kBlockQ = 16, kBlockK = kLanes;
constexpr int kMaxHeadDim = 128, kStride = kMaxHeadDim + 1, kColumns = kMaxHeadDim / kLanes;  // of one lane
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

struct State {
  float row_max[kBlockQ], row_sum[kBlockQ], rescale[kBlockQ];
};

__device__ int lane() { return static_cast<int>(threadIdx.x); }

__device__ void load(const float* matrix, int rows, int head_dim, float (*tile)[kStride]) {
  for (int r = 0; r < rows; ++r)
    for (int h = lane(); h < head_dim; h += kLanes) tile[r][h] = matrix[r * head_dim + h];
}

// A lane's row of scores, -inf where it does not see the key, becomes weights.
__device__ void update(float (&S)[kBlockK + 1], State& state) {
  float new_max = state.row_max[lane()], sum = 0;
  for (int j = 0; j < kBlockK; ++j) new_max = fmaxf(new_max, S[j]);
  const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
  for (int j = 0; j < kBlockK; ++j) sum += S[j] = expf(S[j] - shift);
  state.rescale[lane()] = expf(state.row_max[lane()] - shift);
  state.row_sum[lane()] = state.row_sum[lane()] * state.rescale[lane()] + sum;
  state.row_max[lane()] = new_max;
}

// How many keys row q of its head sees.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  return s.causal ? max(std::int64_t{0}, min(s.seqlen_k, q + s.seqlen_k - s.seqlen_q + 1)) : s.seqlen_k;
}

__global__ void __launch_bounds__(kLanes) warp_kernel(ForwardArgs<float> args, std::int64_t q_blocks) {
  __shared__ float Q_smem[kBlockQ][kStride];
  __shared__ float KV_smem[kBlockK][kStride];
  __shared__ float S_smem[kBlockQ][kBlockK + 1];
  __shared__ State state;
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t head = blockIdx.x / q_blocks, first_q = blockIdx.x % q_blocks * kBlockQ;
  const std::int64_t row = head * s.seqlen_q + first_q;
  const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * head_dim;
  const int rows = static_cast<int>(min(std::int64_t{kBlockQ}, s.seqlen_q - first_q));
  if (lane() < rows) state.row_max[lane()] = kMinusInf, state.row_sum[lane()] = 0;
  load(args.Q + row * head_dim, rows, head_dim, Q_smem);
  float O[kBlockQ][kColumns] = {};
  for (std::int64_t first = 0; first < keys_seen(s, first_q + rows - 1); first += kBlockK) {
    const int keys = static_cast<int>(min(std::int64_t{kBlockK}, s.seqlen_k - first));
    load(args.K + kv + first * head_dim, keys, head_dim, KV_smem);
    __syncwarp();
    for (int r = 0; r < rows; ++r) {
      float dot = kMinusInf;
      if (first + lane() < keys_seen(s, first_q + r)) {
        dot = 0;
        for (int h = 0; h < head_dim; ++h) dot = fmaf(Q_smem[r][h], KV_smem[lane()][h], dot);
        dot *= s.scale;
      }
      S_smem[r][lane()] = dot;
    }
    __syncwarp();  // the scores are there, K is used up
    if (lane() < rows) update(S_smem[lane()], state);
    load(args.V + kv + first * head_dim, keys, head_dim, KV_smem);
    __syncwarp();
    for (int r = 0; r < rows; ++r) {
      const int seen = static_cast<int>(min(std::int64_t{keys}, keys_seen(s, first_q + r) - first));
      for (int c = 0; c < kColumns; ++c) {
        O[r][c] *= state.rescale[r];
        for (int j = 0; j < seen && lane() + c * kLanes < head_dim; ++j)
          O[r][c] = fmaf(S_smem[r][j], KV_smem[j][lane() + c * kLanes], O[r][c]);
      }
    }
    __syncwarp();  // weights and V are used up
  }
  __syncwarp();  // where there was no tile
  for (int r = 0; r < rows; ++r) {
    const float factor = state.row_sum[r] == 0.0f ? 0.0f : 1.0f / state.row_sum[r];
    for (int c = 0; c < kColumns; ++c)
      if (lane() + c * kLanes < head_dim) args.O[(row + r) * head_dim + lane() + c * kLanes] = O[r][c] * factor;
    if (lane() == r) args.lse[row + r] = state.row_max[r] + logf(state.row_sum[r]);
  }
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t q_blocks = block_count(args.shape.seqlen_q, kBlockQ);
  const std::int64_t blocks = args.shape.batch * args.shape.q_heads * q_blocks;
  if (blocks == 0) return;
  warp_kernel<<<static_cast<unsigned>(blocks), kLanes, 0, args.stream>>>(args, q_blocks);
  CUDA_CHECK(cudaGetLastError());
}

bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= kMaxHeadDim; }

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "state_in_shared_memory/03_flash_forward";
  r.idea = "The warp is the block, and __syncwarp the only barrier";
  r.forward = forward;
  r.supports = supports;
  return r;
}();

}  // namespace nanolm::cuda
