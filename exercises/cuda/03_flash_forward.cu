// FlashAttention forward: a tile of scores never leaves the registers (notes/cuda/03_flash_forward.md).
//
// What it adds to 02: one kernel instead of three, the online softmax of lesson 03, and 8 x 8 elements a thread. A
// block has 128 queries; K and V pass through one buffer in shared memory, a tile at a time.
//
// Budget for head_dim 64: a thread keeps 8 x 8 scores, then 8 x 8 elements of O. Four steps of either product take
// 8 + 8 loads of a float4 from shared memory and 8 * 8 * 4 = 256 multiply-adds, 16 a load. An SM does 128 multiply-adds
// a clock and moves 128 bytes, so a warp's 256 take 64 clocks and its 16 loads 32 (lanes share addresses) to 64. With
// one score a thread it would be 2 multiply-adds a load, and the loads would take 4 to 8 times as long as they.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;  // log2(e)

// Sizes of a block's work. Thread (x, y) has the rows y + i * kThreadsY, of a tile the keys x + j * kThreadsX, and of O
// groups of four columns, kThreadsX groups apart: neighbours in a warp read neighbours in shared memory.
template <int head_dim, int block_q, int block_k>
struct Tile {
  // head_dim is the shape's, rounded up: what lies behind is zeros.
  static constexpr int kHeadDim = head_dim, kBlockQ = block_q, kBlockK = block_k;
  static constexpr int kThreadsX = head_dim < 64 ? 8 : head_dim / 8;  // they share their rows and are in one warp
  static constexpr int kRows = 8, kKeys = kBlockK / kThreadsX, kColumns = kHeadDim / kThreadsX;  // of one thread
  static constexpr int kThreadsY = kBlockQ / kRows, kThreads = kThreadsX * kThreadsY;
  static constexpr int kStride = kHeadDim + 4, kStrideP = kBlockK + kThreadsX;  // rows begin in different banks
  static constexpr int kSharedBytes = 4 * ((kBlockQ + kBlockK) * kStride + kBlockQ * kStrideP);
  static __device__ int row(int i) { return static_cast<int>(threadIdx.x) / kThreadsX + i * kThreadsY; }
  static __device__ int key(int j) { return static_cast<int>(threadIdx.x) % kThreadsX + j * kThreadsX; }
  static __device__ int column(int c) { return 4 * key(c / 4) + c % 4; }
};

// The running state of a thread's rows: m of the scores before they are scaled, d and o as in lesson 03.
template <class T>
struct State {
  float row_max[T::kRows], row_sum[T::kRows], O[T::kRows][T::kColumns];
};

// Four neighbours in shared memory by one instruction.
[[maybe_unused]] __device__ void load4(const float* from, float* to) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Copies a [rows, head_dim] matrix into a tile of block_rows rows, zeros behind it; a Vector (float4, float) at a time.
template <class T, int block_rows, class Vector>
__device__ void copy_tile(const float* matrix, int rows, int head_dim, float* tile) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
#pragma unroll 8  // eight loads are on their way before the first is stored
  for (int i = 0; i < block_rows * T::kHeadDim / (kWidth * T::kThreads); ++i) {
    // TODO: step 2: copy the thread's i-th Vector, or zeros where the matrix has none. About 5 lines.
    // end
  }
}
template <class T, int block_rows>
__device__ void load_tile(const float* matrix, int rows, int head_dim, float* tile) {
  if (head_dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % sizeof(float4) == 0)
    copy_tile<T, block_rows, float4>(matrix, rows, head_dim, tile);
  else
    copy_tile<T, block_rows, float>(matrix, rows, head_dim, tile);
}

// Folds a tile of scores into m and d, rescales O, and leaves exp(scale * (S - m)) in shared memory.
// 2^x is what the hardware computes, so scale_log2 is scale * log2(e). The maximum is subtracted before the product:
// as one multiply-add, S * scale_log2 - (m * scale_log2 rounded), the largest weight would not be 1 for large scores.
template <class T>
__device__ void update(const float (&S)[T::kRows][T::kKeys], float scale_log2, State<T>& state, float* P_smem) {
  for (int i = 0; i < T::kRows; ++i) {
    // TODO: step 3: fold row i of the tile into m, d and O, and store its weights in P. About 15 lines.
    // end
  }
}

// O += P V. In a tile that is cut a row takes only the keys it sees: the others' values may be NaN, and 0 * NaN is NaN.
template <class T, bool cut>
__device__ void add_values(const float* P_smem, const float* V_smem, const int (&seen)[T::kRows], State<T>& state) {
  // TODO: step 3: add weights times values to O. About 10 lines.
  // end
}

// S = Q K^T for the thread's rows and keys, not yet scaled. S is 0 before.
template <class T>
__device__ void tile_scores(const float* Q_smem, const float* K_smem, int head_dim, float (&S)[T::kRows][T::kKeys]) {
  // TODO: step 4: add up the products of the rows of Q and K, four elements at a time. About 9 lines.
  // end
}

// Hides the keys that row i does not see; it sees the first seen[i] of the tile.
template <class T>
__device__ void mask_scores(const int (&seen)[T::kRows], float (&S)[T::kRows][T::kKeys]) {
  // TODO: step 5: set the scores of keys that row i does not see to minus infinity. About 3 lines.
  // end
}

// Row q sees the first keys_seen of the keys.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  std::int64_t keys = s.seqlen_k;
  // TODO: step 6: with the causal mask count the keys up to the diagonal. About 1 line.
  // end
  return keys;
}

// How many of the keys the query block that begins with row first_q visits, if need be to the end of a tile.
template <class T>
__device__ std::int64_t keys_visited(const AttentionShape& s, std::int64_t first_q) {
  std::int64_t keys = s.seqlen_k;
  // TODO: step 7: visit no more keys than some row of the block sees. About 1 line.
  // end
  return keys;
}

// The kv head, of [batch * kv_heads], that query head `head` of [batch * q_heads] reads.
__device__ std::int64_t kv_head(const AttentionShape& s, std::int64_t head) {
  std::int64_t group = s.q_heads;  // query heads that share a kv head
  // TODO: step 8: count the query heads that share a kv head. About 1 line.
  // end
  return head / group;
}

// O = o / d and lse = m + ln d, to the rows that exist. A row without keys: 0 and -inf.
template <class T>
__device__ void store(const State<T>& state, int rows, int head_dim, float scale, float* O, float* lse) {
  for (int i = 0; i < T::kRows; ++i) {
    if (T::row(i) >= rows) continue;
    const float factor = state.row_sum[i] == 0.0f ? 0.0f : 1.0f / state.row_sum[i];
    if (T::key(0) == 0) lse[T::row(i)] = state.row_max[i] * scale + logf(state.row_sum[i]);
    for (int c = 0; c < T::kColumns; ++c)
      if (T::column(c) < head_dim) O[T::row(i) * head_dim + T::column(c)] = state.O[i][c] * factor;
  }
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1) flash_kernel(ForwardArgs<float> args) {
  extern __shared__ __align__(16) float shared[];
  float* Q_smem = shared;
  float* KV_smem = Q_smem + T::kBlockQ * T::kStride;
  float* P_smem = KV_smem + T::kBlockK * T::kStride;
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t q_blocks = (s.seqlen_q + T::kBlockQ - 1) / T::kBlockQ;
  for (std::int64_t work = blockIdx.x; work < s.batch * s.q_heads * q_blocks; work += gridDim.x) {
    // The last query block of a head first: with the causal mask it takes longest.
    const std::int64_t head = work / q_blocks, first_q = (q_blocks - 1 - work % q_blocks) * T::kBlockQ;
    const std::int64_t first_row = head * s.seqlen_q + first_q;
    const int rows = static_cast<int>(min(std::int64_t{T::kBlockQ}, s.seqlen_q - first_q));
    load_tile<T, T::kBlockQ>(args.Q + first_row * head_dim, rows, head_dim, Q_smem);
    State<T> state{};
    for (float& row_max : state.row_max) row_max = kMinusInf;
    for (std::int64_t first_k = 0; first_k < keys_visited<T>(s, first_q); first_k += T::kBlockK) {
      const int keys = static_cast<int>(min(std::int64_t{T::kBlockK}, s.seqlen_k - first_k));
      const std::int64_t first_key = (kv_head(s, head) * s.seqlen_k + first_k) * head_dim;
      load_tile<T, T::kBlockK>(args.K + first_key, keys, head_dim, KV_smem);
      __syncthreads();
      float S[T::kRows][T::kKeys] = {};
      tile_scores<T>(Q_smem, KV_smem, head_dim, S);
      int seen[T::kRows];  // of this tile's keys, by each row: the first seen[i]
      for (int i = 0; i < T::kRows; ++i) seen[i] = static_cast<int>(keys_seen(s, first_q + T::row(i)) - first_k);
      const bool cut = keys_seen(s, first_q) < first_k + T::kBlockK;  // the first row sees the fewest keys
      if (cut) mask_scores<T>(seen, S);
      update<T>(S, s.scale * kLog2E, state, P_smem);
      __syncthreads();  // K is used up
      load_tile<T, T::kBlockK>(args.V + first_key, keys, head_dim, KV_smem);
      __syncthreads();
      if (cut)
        add_values<T, true>(P_smem, KV_smem, seen, state);
      else
        add_values<T, false>(P_smem, KV_smem, seen, state);
      __syncthreads();  // V is used up
    }
    store<T>(state, rows, head_dim, s.scale, args.O + first_row * head_dim, args.lse + first_row);
  }
}

template <class T>
void launch(const ForwardArgs<float>& args) {
  const std::int64_t blocks = args.shape.batch * args.shape.q_heads * block_count(args.shape.seqlen_q, T::kBlockQ);
  if (blocks == 0) return;
  static_assert(T::kSharedBytes <= 227 * 1024, "more shared memory than any device gives a block");
  [[maybe_unused]] const auto kernel = flash_kernel<T>;
  // TODO: step 1: launch the kernel with its shared memory and check the launch. About 4 lines.
  // end
}

// The largest tile that fits: a T4 has 64 KiB a block, an RTX 4090 99, an A100 163, an H100 227.
template <class Large, class Small>
void launch_larger(const ForwardArgs<float>& args) {
  current_device().shared_bytes_per_block >= Large::kSharedBytes ? launch<Large>(args) : launch<Small>(args);
}

void forward(const ForwardArgs<float>& args) {
  todo();  // delete this line when you begin
  check_rung(flash_forward, args.shape);
  if (args.shape.head_dim <= 32) return launch<Tile<32, 128, 64>>(args);
  if (args.shape.head_dim <= 64) return launch_larger<Tile<64, 128, 64>, Tile<64, 64, 32>>(args);
  if (args.shape.head_dim <= 128) return launch_larger<Tile<128, 128, 64>, Tile<128, 64, 32>>(args);
  launch<Tile<256, 64, 64>>(args);
}

bool supports(const AttentionShape& shape, const Device& device) {
  if (shape.head_dim <= 128) return device.shared_bytes_per_block >= Tile<128, 64, 32>::kSharedBytes;
  return shape.head_dim <= 256 && device.shared_bytes_per_block >= Tile<256, 64, 64>::kSharedBytes;
}

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "cuda/03_flash_forward";
  r.idea = "FlashAttention: tiles in shared memory, the scores never leave the chip";
  r.forward = forward;
  r.supports = supports;
  return r;
}();

}  // namespace nanolm::cuda
