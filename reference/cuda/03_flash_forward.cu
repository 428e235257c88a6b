// FlashAttention forward: a tile of scores lives in registers and never reaches main memory
// (notes/cuda/03_flash_forward.md).
//
// What it adds to 02: one kernel instead of three, the online softmax of lesson 03, and tiles in shared memory, each
// read by many threads. A block has 64 queries; K and V pass through one buffer, a tile at a time.
//
// Budget. Each thread keeps 8 rows: 8 x 8 scores, then 8 x 8 elements of O (head_dim 64). Four steps of either product
// take 8 + 8 loads of a float4 from shared memory and 8 * 8 * 4 = 256 multiply-adds, 16 a load. An SM does 4 * 32
// multiply-adds a clock and moves 128 bytes, so a warp's 256 take 64 clocks and its 16 loads 32 (halves of the warp
// that share addresses) to 64. One row a thread would make 0.8 multiply-adds a load, and the loads would take 20 times
// as long as the arithmetic.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;  // log2(e)

// Sizes of a block's work. Thread (x, y) has the rows y + i * kThreadsY, of each the keys x + j * kThreadsX of a tile
// and the columns 4 * (x + c * kThreadsX) to + 3 of O. So neighbours in a warp read neighbours in shared memory.
template <int head_dim, int block_k>
struct Tile {
  static constexpr int kHeadDim = head_dim;  // the shape's, rounded up: what lies behind is zeros
  static constexpr int kBlockQ = 64;
  static constexpr int kBlockK = block_k;
  static constexpr int kRows = 8;
  static constexpr int kThreadsX = kHeadDim / 8;  // threads that share a row, neighbours in one warp
  static constexpr int kThreadsY = kBlockQ / kRows;
  static constexpr int kThreads = kThreadsX * kThreadsY;
  static constexpr int kKeys = kBlockK / kThreadsX;
  static constexpr int kColumns = kHeadDim / 4 / kThreadsX;  // of four elements each
  // Padding moves each row by four banks, and a row of P by kThreadsX.
  static constexpr int kStride = kHeadDim + 4;
  static constexpr int kStrideP = kBlockK + kThreadsX;
  static constexpr int kSharedBytes = 4 * ((kBlockQ + kBlockK) * kStride + kBlockQ * kStrideP);
};

// The running state of a thread's rows: m of the scores before they are scaled, d and o as in lesson 03.
template <class T>
struct State {
  float row_max[T::kRows], row_sum[T::kRows];
  float4 O[T::kRows][T::kColumns];
};

template <class T>
__device__ int thread_x() {
  return static_cast<int>(threadIdx.x) % T::kThreadsX;
}
template <class T>
__device__ int row_of(int i) {
  return static_cast<int>(threadIdx.x) / T::kThreadsX + i * T::kThreadsY;
}
template <class T>
__device__ int column_of(int c) {
  return 4 * (thread_x<T>() + c * T::kThreadsX);
}
// Where the i-th of a thread's loads lies in a tile; neighbours load neighbours.
struct Place {
  int row, column;
};
template <class T, int elements>
__device__ Place place_of(int i) {
  const int at = elements * (static_cast<int>(threadIdx.x) + i * T::kThreads);
  return {at / T::kHeadDim, at % T::kHeadDim};
}
__device__ const float4& float4_at(const float* address) { return *reinterpret_cast<const float4*>(address); }
__device__ float element(const float4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
// o + p * v
__device__ float4 multiply_add(float p, const float4& v, const float4& o) {
  return make_float4(fmaf(p, v.x, o.x), fmaf(p, v.y, o.y), fmaf(p, v.z, o.z), fmaf(p, v.w, o.w));
}

// The maximum and the sum over the threads that share a row.
template <class T>
__device__ float max_of_row(float value) {
  for (int mask = 1; mask < T::kThreadsX; mask *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, mask));
  return value;
}
template <class T>
__device__ float sum_of_row(float value) {
  for (int mask = 1; mask < T::kThreadsX; mask *= 2) value += __shfl_xor_sync(~0u, value, mask);
  return value;
}

// K and V are [batch * kv_heads, seqlen_k, head_dim]: the first index for query head `head` of [batch * q_heads].
__device__ std::int64_t kv_head(const AttentionShape& s, std::int64_t head) {
  std::int64_t group = 1;  // query heads that share a kv head
  group = s.q_heads / s.kv_heads;
  return head / group;
}

// How many tiles of keys the query block that begins with row first_q visits.
template <class T>
__device__ std::int64_t visible_tiles(const AttentionShape& s, std::int64_t first_q) {
  std::int64_t keys = s.seqlen_k;
  const std::int64_t last_q = min(first_q + T::kBlockQ, s.seqlen_q) - 1;  // sees the most keys
  if (s.causal) keys = max(min(keys, last_q + s.seqlen_k - s.seqlen_q + 1), std::int64_t{0});
  return (keys + T::kBlockK - 1) / T::kBlockK;
}

// How many of the tile's keys row q sees: the first ones, 0 to kBlockK. The tile begins with key first_k.
template <class T>
__device__ int keys_seen(const AttentionShape& s, std::int64_t q, std::int64_t first_k) {
  std::int64_t keys = T::kBlockK;
  // The end of the sequence:
  keys = min(keys, s.seqlen_k - first_k);
  // and the diagonal:
  if (s.causal) keys = max(min(keys, q + s.seqlen_k - s.seqlen_q - first_k + 1), std::int64_t{0});
  return static_cast<int>(keys);
}

// Copies the first `rows` rows of a [rows, head_dim] matrix into a tile of block_rows rows. What lies behind them and
// behind head_dim becomes zeros.
template <class T, int block_rows>
__device__ void load_tile(const float* matrix, int rows, int head_dim, float* tile) {
  if (head_dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % sizeof(float4) == 0) {
    constexpr int kLoads = block_rows * T::kHeadDim / 4 / T::kThreads;
    float4 loaded[kLoads];  // all are on their way before the first is stored
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const Place at = place_of<T, 4>(i);
      loaded[i] = make_float4(0, 0, 0, 0);
      if (at.row < rows && at.column < head_dim) loaded[i] = float4_at(matrix + at.row * head_dim + at.column);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const Place at = place_of<T, 4>(i);
      *reinterpret_cast<float4*>(tile + at.row * T::kStride + at.column) = loaded[i];
    }
  } else {  // a float4 would be misaligned
    for (int i = 0; i < block_rows * T::kHeadDim / T::kThreads; ++i) {
      const Place at = place_of<T, 1>(i);
      float loaded = 0;
      if (at.row < rows && at.column < head_dim) loaded = matrix[at.row * head_dim + at.column];
      tile[at.row * T::kStride + at.column] = loaded;
    }
  }
}

// S = Q K^T for the thread's rows and keys.
template <class T>
__device__ void tile_scores(const float* Q_smem, const float* K_smem, int head_dim, float (&S)[T::kRows][T::kKeys]) {
  for (int h = 0; h < head_dim; h += 4) {
    float4 K[T::kKeys];
#pragma unroll
    for (int j = 0; j < T::kKeys; ++j) K[j] = float4_at(K_smem + (thread_x<T>() + j * T::kThreadsX) * T::kStride + h);
#pragma unroll
    for (int i = 0; i < T::kRows; ++i) {
      const float4 Q = float4_at(Q_smem + row_of<T>(i) * T::kStride + h);
#pragma unroll
      for (int j = 0; j < T::kKeys; ++j)
        S[i][j] = fmaf(Q.w, K[j].w, fmaf(Q.z, K[j].z, fmaf(Q.y, K[j].y, fmaf(Q.x, K[j].x, S[i][j]))));
    }
  }
}

// Hides the keys that a row does not see.
template <class T>
__device__ void mask_scores(const AttentionShape& s, std::int64_t first_q, std::int64_t first_k, int (&seen)[T::kRows],
                            float (&S)[T::kRows][T::kKeys]) {
#pragma unroll
  for (int i = 0; i < T::kRows; ++i) {
    seen[i] = keys_seen<T>(s, first_q + row_of<T>(i), first_k);
#pragma unroll
    for (int j = 0; j < T::kKeys; ++j)
      if (thread_x<T>() + j * T::kThreadsX >= seen[i]) S[i][j] = kMinusInf;
  }
}

// Folds a tile of scores into m and d, rescales O, and leaves exp(scale * (S - m)) in shared memory.
// 2^x is what the hardware computes, so scale_log2 is scale * log2(e). The maximum is subtracted before the product:
// as one multiply-add, S * scale_log2 - (m * scale_log2 rounded), the largest weight would not be 1 for large scores.
template <class T>
__device__ void update(const float (&S)[T::kRows][T::kKeys], float scale_log2, State<T>& state, float* P_smem) {
#pragma unroll
  for (int i = 0; i < T::kRows; ++i) {
    float new_max = S[i][0];
#pragma unroll
    for (int j = 1; j < T::kKeys; ++j) new_max = fmaxf(new_max, S[i][j]);
    new_max = fmaxf(state.row_max[i], max_of_row<T>(new_max));
    const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
    const float rescale = exp2f((state.row_max[i] - shift) * scale_log2);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < T::kKeys; ++j) {
      const float p = exp2f((S[i][j] - shift) * scale_log2);
      P_smem[row_of<T>(i) * T::kStrideP + thread_x<T>() + j * T::kThreadsX] = p;
      sum += p;
    }
    state.row_max[i] = new_max;
    state.row_sum[i] = state.row_sum[i] * rescale + sum_of_row<T>(sum);
#pragma unroll
    for (int c = 0; c < T::kColumns; ++c) state.O[i][c] = multiply_add(rescale, state.O[i][c], make_float4(0, 0, 0, 0));
  }
}

// O += P V. In a tile that is cut a row takes only the keys it sees: the others' values may be NaN, and 0 * NaN is NaN.
template <class T, bool cut>
__device__ void add_values(const float* P_smem, const float* V_smem, int keys, const int (&seen)[T::kRows],
                           State<T>& state) {
  for (int j = 0; j < keys; j += 4) {
    float4 P[T::kRows];
#pragma unroll
    for (int i = 0; i < T::kRows; ++i) P[i] = float4_at(P_smem + row_of<T>(i) * T::kStrideP + j);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int c = 0; c < T::kColumns; ++c) {
        const float4 V = float4_at(V_smem + (j + k) * T::kStride + column_of<T>(c));
#pragma unroll
        for (int i = 0; i < T::kRows; ++i)
          if (!cut || j + k < seen[i]) state.O[i][c] = multiply_add(element(P[i], k), V, state.O[i][c]);
      }
  }
}

// O = o / d and lse = m + ln d, to the rows that exist. A row without keys: 0 and -inf.
template <class T>
__device__ void store(const State<T>& state, int rows, int head_dim, float scale, float* O, float* lse) {
#pragma unroll
  for (int i = 0; i < T::kRows; ++i) {
    const int row = row_of<T>(i);
    if (row >= rows) continue;
    const float factor = state.row_sum[i] == 0.0f ? 0.0f : 1.0f / state.row_sum[i];
    if (thread_x<T>() == 0) lse[row] = state.row_max[i] * scale + logf(state.row_sum[i]);
#pragma unroll
    for (int c = 0; c < T::kColumns; ++c)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (column_of<T>(c) + k < head_dim)
          O[row * head_dim + column_of<T>(c) + k] = element(state.O[i][c], k) * factor;
  }
}

template <class T>
__global__ void __launch_bounds__(T::kThreads) flash_forward_kernel(ForwardArgs<float> args) {
  extern __shared__ float4 shared[];
  float* Q_smem = reinterpret_cast<float*>(shared);
  float* KV_smem = Q_smem + T::kBlockQ * T::kStride;
  float* P_smem = KV_smem + T::kBlockK * T::kStride;
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t q_blocks = (s.seqlen_q + T::kBlockQ - 1) / T::kBlockQ;
  for (std::int64_t work = blockIdx.x; work < s.batch * s.q_heads * q_blocks; work += gridDim.x) {
    // The last query block of a head first: with the causal mask it takes longest.
    const std::int64_t head = work / q_blocks, first_q = (q_blocks - 1 - work % q_blocks) * T::kBlockQ;
    const std::int64_t first_row = head * s.seqlen_q + first_q;
    const float* K = args.K + kv_head(s, head) * s.seqlen_k * head_dim;
    const float* V = args.V + kv_head(s, head) * s.seqlen_k * head_dim;
    const int rows = static_cast<int>(min(std::int64_t{T::kBlockQ}, s.seqlen_q - first_q));
    load_tile<T, T::kBlockQ>(args.Q + first_row * head_dim, rows, head_dim, Q_smem);
    State<T> state;
#pragma unroll
    for (int i = 0; i < T::kRows; ++i) {
      state.row_max[i] = kMinusInf;
      state.row_sum[i] = 0;
#pragma unroll
      for (int c = 0; c < T::kColumns; ++c) state.O[i][c] = make_float4(0, 0, 0, 0);
    }
    const std::int64_t tiles = visible_tiles<T>(s, first_q);
    for (std::int64_t first_k = 0; first_k < tiles * T::kBlockK; first_k += T::kBlockK) {
      const int keys = static_cast<int>(min(std::int64_t{T::kBlockK}, s.seqlen_k - first_k));
      load_tile<T, T::kBlockK>(K + first_k * head_dim, keys, head_dim, KV_smem);
      __syncthreads();
      float S[T::kRows][T::kKeys] = {};
      tile_scores<T>(Q_smem, KV_smem, head_dim, S);
      const bool cut = keys_seen<T>(s, first_q, first_k) < T::kBlockK;  // the first row sees the fewest keys
      int seen[T::kRows] = {};
      if (cut) mask_scores<T>(s, first_q, first_k, seen, S);
      update<T>(S, s.scale * kLog2E, state, P_smem);
      __syncthreads();  // K is used up
      load_tile<T, T::kBlockK>(V + first_k * head_dim, keys, head_dim, KV_smem);
      __syncthreads();
      if (cut)
        add_values<T, true>(P_smem, KV_smem, keys, seen, state);
      else
        add_values<T, false>(P_smem, KV_smem, keys, seen, state);
      __syncthreads();  // V is used up
    }
    store<T>(state, rows, head_dim, s.scale, args.O + first_row * head_dim, args.lse + first_row);
  }
}

template <class T>
void launch(const ForwardArgs<float>& args) {
  const std::int64_t blocks = args.shape.batch * args.shape.q_heads * block_count(args.shape.seqlen_q, T::kBlockQ);
  if (blocks == 0) return;
  CUDA_CHECK(
      cudaFuncSetAttribute(flash_forward_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes));
  const unsigned grid = static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  flash_forward_kernel<T><<<grid, T::kThreads, T::kSharedBytes, args.stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t head_dim = args.shape.head_dim;
  if (head_dim <= 32) return launch<Tile<32, 32>>(args);
  if (head_dim <= 64) return launch<Tile<64, 64>>(args);
  if (head_dim > 128) return launch<Tile<256, 64>>(args);
  if (current_device().shared_bytes_per_block >= Tile<128, 64>::kSharedBytes) return launch<Tile<128, 64>>(args);
  launch<Tile<128, 32>>(args);  // a T4 has 64 KiB
}

bool supports(const AttentionShape& shape, const Device& device) {
  if (shape.head_dim <= 128) return device.shared_bytes_per_block >= Tile<128, 32>::kSharedBytes;
  return shape.head_dim <= 256 && device.shared_bytes_per_block >= Tile<256, 64>::kSharedBytes;
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
