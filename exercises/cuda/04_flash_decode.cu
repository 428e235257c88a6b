// Decode: one query a sequence against a long cache, cut into splits (notes/cuda/04_flash_decode.md).
//
// What it adds to 03: the keys of one head are shared out to many blocks, and their results merged by lse as in lesson
// 07. Only the query heads of one kv head reuse a key, so one thread has all of them, and the cache goes from main
// memory into registers: threads have nothing to share.
//
// Budget for bf16, head_dim 128 and 4 query heads a kv head. A key and its value are 512 bytes and 4 * 2 * 128 = 1024
// multiply-adds. An H200 reads 4.3 TB/s, 8.4e9 keys a second, which take 8.6e12 of its 32.6e12 multiply-adds. To keep
// 4.3 TB/s coming at 800 ns a load, 3.4 MB must be on their way, 26 KB an SM: 512 threads with 4 loads of 16 bytes
// each.
#include <algorithm>
#include <cstring>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;  // log2(e)
constexpr int kWarp = 32, kWarps = 4, kThreads = kWarp * kWarps;
constexpr int kAhead = 4;  // keys of a thread whose loads are on their way together

// So many blocks have their Q, O and rows in an SM's registers.
__host__ __device__ constexpr int blocks_per_sm(std::int64_t group) { return group <= 4 ? 4 : 2; }

// kLanes threads have a key, each kVectors pieces of 16 bytes of it, kLanes pieces apart: neighbours load neighbours.
template <class Element, int head_dim, int group>
struct Tile {
  using T = Element;
  // head_dim is the shape's, rounded up: what lies behind is zeros. kGroup query heads of a kv head at a time.
  static constexpr int kHeadDim = head_dim, kGroup = group;
  static constexpr int kPerVector = 16 / sizeof(T);
  static constexpr int kLanes = kHeadDim / kPerVector < kWarp ? kHeadDim / kPerVector : kWarp;
  static constexpr int kVectors = kHeadDim / (kPerVector * kLanes), kElements = kVectors * kPerVector;
  static constexpr int kKeys = kThreads / kLanes;  // of a block at a time
  static constexpr int kBlocksPerSm = kVectors > 1 ? 2 : blocks_per_sm(kGroup);
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ int key() { return static_cast<int>(threadIdx.x) / kLanes; }
  static __device__ int column(int e) { return (e / kPerVector * kLanes + lane()) * kPerVector + e % kPerVector; }
};

// What a thread has of a row of K or V, as it lies in memory.
template <class Tile>
struct Row {
  uint4 pieces[Tile::kVectors];
};

// The running state of kGroup query heads, over the keys that this thread has seen; m before it is scaled.
template <class Tile>
struct State {
  float row_max[Tile::kGroup], row_sum[Tile::kGroup], O[Tile::kGroup][Tile::kElements];
};

// The results of all splits: O divided by its own sum, [rows, splits, head_dim], and lse, [rows, splits].
struct Parts {
  int splits;
  float* O;
  float* lse;
};

__device__ void store(float x, float* to) { *to = x; }
__device__ void store(float x, bf16* to) { *to = __float2bfloat16(x); }

__device__ void unpack(uint4 piece, float (&to)[4]) {
  to[0] = __uint_as_float(piece.x), to[1] = __uint_as_float(piece.y);
  to[2] = __uint_as_float(piece.z), to[3] = __uint_as_float(piece.w);
}
// A bf16 is the upper half of a float; of two in a word the first is the lower.
__device__ void unpack(uint4 piece, float (&to)[8]) {
  const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}
template <class Tile>
__device__ void unpack_row(const Row<Tile>& row, float (&to)[Tile::kElements]) {
  for (int v = 0; v < Tile::kVectors; ++v) {
    float piece[Tile::kPerVector];
    unpack(row.pieces[v], piece);
    for (int e = 0; e < Tile::kPerVector; ++e) to[v * Tile::kPerVector + e] = piece[e];
  }
}

// This thread's part of a row of head_dim elements; zeros where the row does not exist. `whole`: head_dim is kHeadDim
// and the row begins at a multiple of 16 bytes.
template <class Tile, bool whole>
__device__ Row<Tile> load_row(const typename Tile::T* row, int head_dim, bool exists) {
  using T = typename Tile::T;
  Row<Tile> loaded;
  for (int v = 0; v < Tile::kVectors; ++v) {
    const int first = Tile::column(v * Tile::kPerVector);
    loaded.pieces[v] = make_uint4(0, 0, 0, 0);
    if constexpr (whole) {
      if (exists) loaded.pieces[v] = *reinterpret_cast<const uint4*>(row + first);
    } else {
      T elements[Tile::kPerVector];
      for (int e = 0; e < Tile::kPerVector; ++e)
        elements[e] = exists && first + e < head_dim ? row[first + e] : T(0.0f);
      memcpy(&loaded.pieces[v], elements, 16);
    }
  }
  return loaded;
}

// The sum over the threads that have a key together; each gets it.
template <class Tile>
__device__ float sum_of_lanes(float value) {
  for (int lanes = 1; lanes < Tile::kLanes; lanes *= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

// Folds kAhead keys and their values into the state, those that exist. As in rung 03 the maximum is subtracted before
// the product with scale_log2, so that the largest weight is 1 whatever the scores.
template <class Tile>
__device__ void update(const float (&Q)[Tile::kGroup][Tile::kElements], const Row<Tile> (&K)[kAhead],
                       const Row<Tile> (&V)[kAhead], int keys, float scale_log2, State<Tile>& state) {
  float S[Tile::kGroup][kAhead] = {};
  for (int j = 0; j < kAhead; ++j) {
    float k[Tile::kElements];
    unpack_row(K[j], k);
    for (int g = 0; g < Tile::kGroup; ++g) {
      for (int e = 0; e < Tile::kElements; ++e) S[g][j] = fmaf(Q[g][e], k[e], S[g][j]);
      S[g][j] = sum_of_lanes<Tile>(S[g][j]);
    }
  }
  for (int g = 0; g < Tile::kGroup; ++g) {
    float new_max = state.row_max[g];
    for (int j = 0; j < kAhead; ++j) {
      if (j >= keys) S[g][j] = kMinusInf;
      new_max = fmaxf(new_max, S[g][j]);
    }
    const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
    const float rescale = exp2f((state.row_max[g] - shift) * scale_log2);
    state.row_max[g] = new_max;
    state.row_sum[g] *= rescale;
    for (int e = 0; e < Tile::kElements; ++e) state.O[g][e] *= rescale;
    for (int j = 0; j < kAhead; ++j) {
      S[g][j] = exp2f((S[g][j] - shift) * scale_log2);
      state.row_sum[g] += S[g][j];
    }
  }
  for (int j = 0; j < kAhead; ++j) {
    float v[Tile::kElements];
    unpack_row(V[j], v);
    for (int g = 0; g < Tile::kGroup; ++g)
      for (int e = 0; e < Tile::kElements; ++e) state.O[g][e] = fmaf(S[g][j], v[e], state.O[g][e]);
  }
}

// Keys first to last - 1 of one kv head: kKeys of them at a time, kAhead times.
template <class Tile, bool whole>
__device__ void visit_keys(const float (&Q)[Tile::kGroup][Tile::kElements], const typename Tile::T* K,
                           const typename Tile::T* V, int head_dim, std::int64_t first, std::int64_t last,
                           float scale_log2, State<Tile>& state) {
  for (std::int64_t begin = first; begin < last; begin += kAhead * Tile::kKeys) {
    Row<Tile> K_rows[kAhead], V_rows[kAhead];
    const std::int64_t key = begin + Tile::key();
    int keys = 0;
    for (int j = 0; j < kAhead; ++j) {
      const bool exists = key + j * Tile::kKeys < last;
      K_rows[j] = load_row<Tile, whole>(K + (key + j * Tile::kKeys) * head_dim, head_dim, exists);
      V_rows[j] = load_row<Tile, whole>(V + (key + j * Tile::kKeys) * head_dim, head_dim, exists);
      keys += exists;
    }
    update<Tile>(Q, K_rows, V_rows, keys, scale_log2, state);
  }
}

// Merges the states of the block's keys: those of a warp by shuffles, then those of the warps through shared memory.
template <class Tile>
__device__ void merge_block(float scale_log2, State<Tile>& state) {
  __shared__ float maxima[kWarps][Tile::kGroup], sums[kWarps][Tile::kGroup];
  __shared__ float O_smem[kWarps][Tile::kGroup][Tile::kHeadDim];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int g = 0; g < Tile::kGroup; ++g) {
    float max = state.row_max[g];
    for (int lanes = Tile::kLanes; lanes < kWarp; lanes *= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, lanes));
    const float shift = max == kMinusInf ? 0.0f : max;
    const float factor = exp2f((state.row_max[g] - shift) * scale_log2);
    state.row_max[g] = max;
    state.row_sum[g] *= factor;
    for (int lanes = Tile::kLanes; lanes < kWarp; lanes *= 2)
      state.row_sum[g] += __shfl_xor_sync(~0u, state.row_sum[g], lanes);
    for (int e = 0; e < Tile::kElements; ++e) {
      state.O[g][e] *= factor;
      for (int lanes = Tile::kLanes; lanes < kWarp; lanes *= 2)
        state.O[g][e] += __shfl_xor_sync(~0u, state.O[g][e], lanes);
      if (lane < Tile::kLanes) O_smem[warp][g][Tile::column(e)] = state.O[g][e];
    }
    if (lane == 0) maxima[warp][g] = state.row_max[g], sums[warp][g] = state.row_sum[g];
  }
  __syncthreads();
  for (int g = 0; g < Tile::kGroup; ++g) {
    float max = kMinusInf;
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, maxima[w][g]);
    const float shift = max == kMinusInf ? 0.0f : max;
    state.row_max[g] = max;
    state.row_sum[g] = 0;
    for (int e = 0; e < Tile::kElements; ++e) state.O[g][e] = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float factor = exp2f((maxima[w][g] - shift) * scale_log2);
      state.row_sum[g] = fmaf(sums[w][g], factor, state.row_sum[g]);
      for (int e = 0; e < Tile::kElements; ++e)
        state.O[g][e] = fmaf(O_smem[w][g][Tile::column(e)], factor, state.O[g][e]);
    }
  }
  __syncthreads();  // the arrays are used again by the block's next piece of work
}

// Split number `split` of length keys: sizes differ by at most one.
__device__ std::int64_t split_begin(std::int64_t keys, int splits, int split) {
  return keys / splits * split + min(keys % splits, std::int64_t{split});
}

// A block computes one split of up to kGroup query heads of one kv head.
template <class Tile, bool whole>
__global__ void __launch_bounds__(kThreads, Tile::kBlocksPerSm)
    decode_kernel(DecodeArgs<typename Tile::T> args, Parts parts) {
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t group = s.q_heads / s.kv_heads, chunks = (group + Tile::kGroup - 1) / Tile::kGroup;
  const float scale_log2 = s.scale * kLog2E;
  for (std::int64_t work = blockIdx.x; work < s.batch * s.kv_heads * chunks * parts.splits; work += gridDim.x) {
    const int split = static_cast<int>(work % parts.splits);
    const std::int64_t chunk = work / parts.splits % chunks, kv_head = work / parts.splits / chunks;
    const std::int64_t first_row = kv_head * group + chunk * Tile::kGroup;
    const int rows = static_cast<int>(min(std::int64_t{Tile::kGroup}, group - chunk * Tile::kGroup));
    float Q[Tile::kGroup][Tile::kElements];
    State<Tile> state{};
    for (int g = 0; g < Tile::kGroup; ++g) {
      unpack_row(load_row<Tile, whole>(args.Q + (first_row + g) * head_dim, head_dim, g < rows), Q[g]);
      state.row_max[g] = kMinusInf;
    }
    visit_keys<Tile, whole>(Q, args.K + kv_head * s.seqlen_k * head_dim, args.V + kv_head * s.seqlen_k * head_dim,
                            head_dim, split_begin(s.seqlen_k, parts.splits, split),
                            split_begin(s.seqlen_k, parts.splits, split + 1), scale_log2, state);
    merge_block<Tile>(scale_log2, state);
    if (Tile::key() > 0) continue;  // the threads of one key have the result
    for (int g = 0; g < Tile::kGroup; ++g) {
      if (g >= rows) continue;
      const std::int64_t part = (first_row + g) * parts.splits + split;
      const float factor = state.row_sum[g] == 0.0f ? 0.0f : 1.0f / state.row_sum[g];
      const float lse = state.row_max[g] * s.scale + logf(state.row_sum[g]);
      if (Tile::lane() == 0) (parts.splits == 1 ? args.lse : parts.lse)[part] = lse;
      for (int e = 0; e < Tile::kElements; ++e) {
        if (Tile::column(e) >= head_dim) continue;
        if (parts.splits == 1)
          store(state.O[g][e] * factor, args.O + part * head_dim + Tile::column(e));
        else
          parts.O[part * head_dim + Tile::column(e)] = state.O[g][e] * factor;
      }
    }
  }
}

// O and lse of a row from those of its splits, a block for each row. A split without keys has lse = -inf: weight 0.
template <class T>
__global__ void __launch_bounds__(kThreads) combine_kernel(DecodeArgs<T> args, Parts parts, std::int64_t rows) {
  const int head_dim = static_cast<int>(args.shape.head_dim);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* lse = parts.lse + row * parts.splits;
    float max = kMinusInf, sum = 0;
    for (int p = 0; p < parts.splits; ++p) max = fmaxf(max, lse[p]);
    const float shift = max == kMinusInf ? 0.0f : max;
    for (int p = 0; p < parts.splits; ++p) sum += expf(lse[p] - shift);
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    if (threadIdx.x == 0) args.lse[row] = max + logf(sum);
    for (int column = static_cast<int>(threadIdx.x); column < head_dim; column += kThreads) {
      float O = 0;
      for (int p = 0; p < parts.splits; ++p)
        O = fmaf(expf(lse[p] - shift), parts.O[(row * parts.splits + p) * head_dim + column], O);
      store(O * factor, args.O + row * head_dim + column);
    }
  }
}

// The fewest splits that fill the device's multiprocessors nearly as well as any number does. A wave is what runs at
// the same time; what is left of the last one idles.
int choose_splits(std::int64_t blocks_of_a_split, std::int64_t keys, std::int64_t wave) {
  const std::int64_t most = std::clamp<std::int64_t>(keys / 256, 1, 128);
  const auto filled = [&](std::int64_t splits) {
    const std::int64_t blocks = blocks_of_a_split * splits;
    return static_cast<double>(blocks) / static_cast<double>(block_count(blocks, wave) * wave);
  };
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) best = std::max(best, filled(splits));
  for (std::int64_t splits = 1; splits <= most; ++splits)
    if (filled(splits) >= 0.9 * best) return static_cast<int>(splits);
  return 1;
}

int splits_of(const AttentionShape& s, int wanted) {
  if (wanted > 0) return wanted;
  const std::int64_t group = s.q_heads / s.kv_heads, blocks = s.batch * s.kv_heads * block_count(group, 8);
  return choose_splits(std::max<std::int64_t>(1, blocks), s.seqlen_k, current_device().sms * blocks_per_sm(group));
}

template <class Tile>
void launch(const DecodeArgs<typename Tile::T>& args, int splits) {
  using T = typename Tile::T;
  const AttentionShape& s = args.shape;
  const std::int64_t rows = s.batch * s.q_heads, group = s.q_heads / s.kv_heads;
  if (rows == 0) return;
  float* const workspace = static_cast<float*>(args.workspace);
  const Parts parts{splits, workspace, workspace + rows * splits * s.head_dim};
  const auto grid = [](std::int64_t blocks) {
    return static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  };
  const bool whole = s.head_dim == Tile::kHeadDim &&
                     (reinterpret_cast<std::uintptr_t>(args.Q) | reinterpret_cast<std::uintptr_t>(args.K) |
                      reinterpret_cast<std::uintptr_t>(args.V)) %
                             16 ==
                         0;
  const auto kernel = whole ? decode_kernel<Tile, true> : decode_kernel<Tile, false>;
  const std::int64_t blocks = s.batch * s.kv_heads * block_count(group, Tile::kGroup) * splits;
  kernel<<<grid(blocks), kThreads, 0, args.stream>>>(args, parts);
  CUDA_CHECK(cudaGetLastError());
  if (splits == 1) return;
  combine_kernel<T><<<grid(rows), kThreads, 0, args.stream>>>(args, parts, rows);
  CUDA_CHECK(cudaGetLastError());
}

template <class T, int group>
void launch_for_head_dim(const DecodeArgs<T>& args, int splits) {
  if (args.shape.head_dim <= 64) return launch<Tile<T, 64, group>>(args, splits);
  if (args.shape.head_dim <= 128) return launch<Tile<T, 128, group>>(args, splits);
  launch<Tile<T, 256, group>>(args, splits);
}
template <class T>
void decode(const DecodeArgs<T>& args) {
  check_rung(flash_decode, args.shape);
  check_decode(args.shape, args.splits);
  const int splits = splits_of(args.shape, args.splits);
  if (args.shape.q_heads / args.shape.kv_heads <= 4) return launch_for_head_dim<T, 4>(args, splits);
  launch_for_head_dim<T, 8>(args, splits);
}

bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= 256; }

// O and lse of each split.
std::int64_t decode_workspace_bytes(const AttentionShape& s, int wanted) {
  const int splits = splits_of(s, wanted);
  return splits == 1 ? 0 : checked_product("workspace", {4, splits, s.batch, s.q_heads, s.head_dim + 1});
}

}  // namespace

const Rung flash_decode = [] {
  Rung r;
  r.name = "cuda/04_flash_decode";
  r.idea = "One query against a long cache: the keys shared out to all multiprocessors, the results merged";
  r.decode = decode<float>;
  r.decode_bf16 = decode<bf16>;
  r.supports = supports;
  r.decode_workspace_bytes = decode_workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
