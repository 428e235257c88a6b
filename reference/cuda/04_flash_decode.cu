// Decode: one query a sequence against a long cache, cut into splits (notes/cuda/04_flash_decode.md).
//
// What it adds to 03: the keys of one head are shared out to many blocks, and their results merged by m and d as in
// lessons 03 and 07. Only the query heads of one kv head reuse a key, so one thread has all of them; the next keys come
// by cp.async while it computes, into slots of shared memory that no other thread reads: they need no barrier.
//
// Budget for bf16, head_dim 128 and 4 query heads a kv head. A key and its value are 512 bytes and 4 * 2 * 128 = 1024
// multiply-adds. An H200 reads 4.3 TB/s, 8.4e9 keys a second, which take 8.6e12 of its 32.6e12 multiply-adds. To keep
// 4.3 TB/s coming at 800 ns a load, 3.4 MB must be on their way, 26 KB an SM: 512 threads have 8 pieces of 16 bytes
// each, 64 KB.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/cuda/ptx.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;  // log2(e)
constexpr int kMaxHeadDim = 256;
constexpr int kWarp = 32, kWarps = 4, kThreads = kWarp * kWarps;

// kLanes threads have a key, each kVectors pieces of 16 bytes of it, kLanes pieces apart: neighbours load neighbours.
template <class Element, int head_dim, int group>
struct Tile {
  using T = Element;
  // head_dim is the shape's, rounded up: what lies behind is zeros. kGroup query heads of a kv head at a time.
  static constexpr int kHeadDim = head_dim, kGroup = group;
  static constexpr int kPerVector = 16 / sizeof(T);
  static constexpr int kLanes = kHeadDim / kPerVector < kWarp ? kHeadDim / kPerVector : kWarp;
  static constexpr int kVectors = kHeadDim / (kPerVector * kLanes), kElements = kVectors * kPerVector;
  static constexpr int kKeys = kThreads / kLanes;           // of a block at a time
  static constexpr int kAhead = 4 / kVectors;               // keys of a thread that come together
  static constexpr int kBlocksPerSm = kGroup <= 4 ? 4 : 2;  // so many have their Q and O in an SM's registers
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ int key() { return static_cast<int>(threadIdx.x) / kLanes; }
  // The kPairs scores of a step, of kGroup queries and kAhead keys, are shared out to the kLanes threads: each owns
  // kOwn of one query, side by side, and kShare own the same.
  static constexpr int kPairs = kGroup * kAhead;
  static constexpr int kOwn = kPairs > kLanes ? kPairs / kLanes : 1, kShare = kPairs > kLanes ? 1 : kLanes / kPairs;
  static constexpr int kOwners = kShare * kAhead / kOwn;  // threads that own a score of one query
  static __device__ int first_pair() { return lane() / kShare * kOwn; }
  static __device__ int column(int e) { return (e / kPerVector * kLanes + lane()) * kPerVector + e % kPerVector; }
};

// Pieces of K and V in shared memory: kStages steps of kAhead keys, [step][K or V][piece][thread].
constexpr int kPieces = 4, kStages = 3;
using Step = uint4[2][kPieces][kThreads];
using Slots = Step[kStages];

// The running state of kGroup query heads over the keys that this thread has seen. m and d are those of the query whose
// scores it owns, m before it is scaled, d over its own scores alone.
template <class Tile>
struct State {
  float row_max, row_sum, O[Tile::kGroup][Tile::kElements];
};

// The states of all splits: O not divided by d, [rows, splits, head_dim], and m and d, [rows, splits, 2]. By m and d
// they merge exactly; in lse = scale * m + ln d, rounded, a large score drowns ln d.
struct Parts {
  int splits;
  float* O;
  float2* max_and_sum;
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

// Of what this thread has of row number `row` of a [.., head_dim] matrix the v-th piece; zeros where the row does not
// exist. `whole`: head_dim is kHeadDim and rows begin at multiples of 16 bytes.
template <class Tile, bool whole>
__device__ uint4 piece_of(const typename Tile::T* matrix, std::int64_t row, int head_dim, bool exists, int v) {
  const int first = Tile::column(v * Tile::kPerVector);
  if constexpr (whole) {
    return exists ? *reinterpret_cast<const uint4*>(matrix + row * head_dim + first) : uint4{};
  } else {
    alignas(16) typename Tile::T elements[Tile::kPerVector] = {};
    const int count = exists ? head_dim - first : 0;
    for (int e = 0; e < Tile::kPerVector; ++e)
      if (e < count) elements[e] = matrix[row * head_dim + first + e];
    return *reinterpret_cast<const uint4*>(elements);
  }
}
// All pieces, to slots that are kThreads apart. Where rows are whole they arrive with the group of cp.async.
template <class Tile, bool whole>
__device__ void load_row(const typename Tile::T* matrix, std::int64_t row, int head_dim, bool exists, uint4* slots) {
  for (int v = 0; v < Tile::kVectors; ++v) {
    if constexpr (whole) {
      const std::int64_t first = row * head_dim + Tile::column(v * Tile::kPerVector);
      cp_async_16(&slots[v * kThreads], matrix + (exists ? first : 0), exists ? 16 : 0);
    } else {
      slots[v * kThreads] = piece_of<Tile, whole>(matrix, row, head_dim, exists, v);
    }
  }
}
template <class Tile>
__device__ void unpack_row(const uint4* pieces, float (&to)[Tile::kElements], int apart = 1) {
  for (int v = 0; v < Tile::kVectors; ++v) {
    float piece[Tile::kPerVector] = {};
    unpack(pieces[v * apart], piece);
    for (int e = 0; e < Tile::kPerVector; ++e) to[v * Tile::kPerVector + e] = piece[e];
  }
}

// Sums of the kPairs values over the kLanes threads of a key; a thread gets those that it owns. Each exchange sends
// half of the values away and adds the other half, so that all of them take kPairs - 1 shuffles and not kPairs *
// log2(kLanes).
template <class Tile>
__device__ void sums_of_lanes(float (&values)[Tile::kPairs]) {
  int lanes = Tile::kLanes / 2;  // how far away the other thread is
  for (int half = Tile::kPairs / 2; half >= Tile::kOwn; half /= 2, lanes /= 2) {
    const bool upper = Tile::lane() & lanes;
    for (int i = 0; i < half; ++i) {
      const float sent = upper ? values[i] : values[i + half], kept = upper ? values[i + half] : values[i];
      values[i] = kept + __shfl_xor_sync(~0u, sent, lanes);
    }
  }
  for (; lanes > 0; lanes /= 2) values[0] += __shfl_xor_sync(~0u, values[0], lanes);
}

// S = Q K^T of a step's keys, not yet scaled, shared out to the threads. S is 0 before.
template <class Tile>
__device__ void step_scores(const float (&Q)[Tile::kGroup][Tile::kElements], const Step& step,
                            float (&S)[Tile::kPairs]) {
  for (int j = 0; j < Tile::kAhead; ++j) {
    float K[Tile::kElements];
    unpack_row<Tile>(&step[0][j * Tile::kVectors][threadIdx.x], K, kThreads);
    for (int g = 0; g < Tile::kGroup; ++g)
      for (int e = 0; e < Tile::kElements; ++e) S[g * Tile::kAhead + j] = fmaf(Q[g][e], K[e], S[g * Tile::kAhead + j]);
  }
  sums_of_lanes<Tile>(S);
}

// Folds the scores that the thread owns into m and d, rescales O, and puts the weights in the scores' place. Of its
// kAhead keys the first `keys` exist. As in rung 03 the maximum is subtracted before the product with scale_log2, so
// that the largest weight is 1 whatever the scores.
template <class Tile>
__device__ void update(int keys, float scale_log2, float (&S)[Tile::kPairs], State<Tile>& state) {
  float new_max = state.row_max;
  for (int i = 0; i < Tile::kOwn; ++i) {
    if ((Tile::first_pair() + i) % Tile::kAhead >= keys) S[i] = kMinusInf;
    new_max = fmaxf(new_max, S[i]);
  }
  for (int lanes = Tile::kShare; lanes < Tile::kOwners; lanes *= 2)
    new_max = fmaxf(new_max, __shfl_xor_sync(~0u, new_max, lanes));
  const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
  const float rescale = exp2f((state.row_max - shift) * scale_log2);
  const bool moved = new_max > state.row_max;  // seldom, after a few keys
  state.row_max = new_max;
  state.row_sum *= rescale;
  for (int i = 0; i < Tile::kOwn; ++i) {
    S[i] = exp2f((S[i] - shift) * scale_log2);
    state.row_sum += S[i];
  }
  if (!__any_sync(~0u, moved)) return;
  for (int g = 0; g < Tile::kGroup; ++g) {
    const float factor = __shfl_sync(~0u, rescale, g * Tile::kOwners, Tile::kLanes);
    for (int e = 0; e < Tile::kElements; ++e) state.O[g][e] *= factor;
  }
}

// O += P V. The weight of a pair comes from the thread that owns it.
template <class Tile>
__device__ void add_values(const float (&P)[Tile::kPairs], const Step& step, State<Tile>& state) {
  for (int j = 0; j < Tile::kAhead; ++j) {
    float V[Tile::kElements];
    unpack_row<Tile>(&step[1][j * Tile::kVectors][threadIdx.x], V, kThreads);
    for (int g = 0; g < Tile::kGroup; ++g) {
      const int pair = g * Tile::kAhead + j, owner = pair / Tile::kOwn * Tile::kShare;
      const float weight = __shfl_sync(~0u, P[pair % Tile::kOwn], owner, Tile::kLanes);
      for (int e = 0; e < Tile::kElements; ++e) state.O[g][e] = fmaf(weight, V[e], state.O[g][e]);
    }
  }
}

// Begins to load a step: kAhead times kKeys keys from number `first` on, as far as they are in front of `last`.
template <class Tile, bool whole>
__device__ void load_step(const typename Tile::T* K, const typename Tile::T* V, int head_dim, std::int64_t first,
                          std::int64_t last, Step& step) {
  for (int j = 0; j < Tile::kAhead; ++j) {
    const std::int64_t key = first + Tile::key() + j * Tile::kKeys;
    load_row<Tile, whole>(K, key, head_dim, key < last, &step[0][j * Tile::kVectors][threadIdx.x]);
    load_row<Tile, whole>(V, key, head_dim, key < last, &step[1][j * Tile::kVectors][threadIdx.x]);
  }
  cp_async_commit();
}

// Begins to load the first steps of keys first to last - 1 of one kv head.
template <class Tile, bool whole>
__device__ void begin_keys(const typename Tile::T* K, const typename Tile::T* V, int head_dim, std::int64_t first,
                           std::int64_t last, Slots& slots) {
  constexpr int kStep = Tile::kAhead * Tile::kKeys;
  for (int i = 0; i < kStages - 1; ++i) load_step<Tile, whole>(K, V, head_dim, first + i * kStep, last, slots[i]);
}

// Those keys. While a step is computed the next kStages - 1 are on their way.
template <class Tile, bool whole>
__device__ void visit_keys(const float (&Q)[Tile::kGroup][Tile::kElements], const typename Tile::T* K,
                           const typename Tile::T* V, int head_dim, std::int64_t first, std::int64_t last,
                           float scale_log2, Slots& slots, State<Tile>& state) {
  constexpr int kStep = Tile::kAhead * Tile::kKeys;
  for (int now = 0; first < last; first += kStep, now = (now + 1) % kStages) {
    load_step<Tile, whole>(K, V, head_dim, first + (kStages - 1) * kStep, last, slots[(now + kStages - 1) % kStages]);
    cp_async_wait<kStages - 1>();
    const std::int64_t left = last - first - Tile::key();  // from this thread's first key on
    const int keys = static_cast<int>(min(std::int64_t{Tile::kAhead}, (left + Tile::kKeys - 1) / Tile::kKeys));
    float S[Tile::kPairs] = {};
    step_scores<Tile>(Q, slots[now], S);
    update<Tile>(keys, scale_log2, S, state);
    add_values<Tile>(S, slots[now], state);
  }
  cp_async_wait<0>();
}

// m, d and O of kGroup query heads, over more and more of the block's keys.
template <class Tile>
struct Rows {
  float max[Tile::kGroup], sum[Tile::kGroup], O[Tile::kGroup][Tile::kElements];
};

// Over the keys of the kLanes threads: d is summed over the threads that own scores of the query.
template <class Tile>
__device__ void merge_lanes(State<Tile>& state, Rows<Tile>& rows) {
  for (int lanes = Tile::kShare; lanes < Tile::kOwners; lanes *= 2)
    state.row_sum += __shfl_xor_sync(~0u, state.row_sum, lanes);
  for (int g = 0; g < Tile::kGroup; ++g) {
    rows.max[g] = __shfl_sync(~0u, state.row_max, g * Tile::kOwners, Tile::kLanes);
    rows.sum[g] = __shfl_sync(~0u, state.row_sum, g * Tile::kOwners, Tile::kLanes);
    for (int e = 0; e < Tile::kElements; ++e) rows.O[g][e] = state.O[g][e];
  }
}

// Over the warp's keys: threads kLanes, 2 kLanes, ... apart have the same columns.
template <class Tile>
__device__ void merge_warp(float scale_log2, Rows<Tile>& rows) {
  for (int g = 0; g < Tile::kGroup; ++g) {
    const float own_max = rows.max[g];
    for (int lanes = Tile::kLanes; lanes < kWarp; lanes *= 2)
      rows.max[g] = fmaxf(rows.max[g], __shfl_xor_sync(~0u, rows.max[g], lanes));
    const float shift = rows.max[g] == kMinusInf ? 0.0f : rows.max[g];
    const float factor = exp2f((own_max - shift) * scale_log2);
    rows.sum[g] *= factor;
    for (int e = 0; e < Tile::kElements; ++e) rows.O[g][e] *= factor;
    for (int lanes = Tile::kLanes; lanes < kWarp; lanes *= 2) {
      rows.sum[g] += __shfl_xor_sync(~0u, rows.sum[g], lanes);
      for (int e = 0; e < Tile::kElements; ++e) rows.O[g][e] += __shfl_xor_sync(~0u, rows.O[g][e], lanes);
    }
  }
}

// What the warps have, in shared memory. Element e of a warp's threads lies in neighbouring banks.
template <class Tile>
struct Warps {
  float max[kWarps][Tile::kGroup], sum[kWarps][Tile::kGroup];
  float O[kWarps][Tile::kGroup][Tile::kElements][Tile::kLanes];
};

// Over the block's keys.
template <class Tile>
__device__ void merge_block(float scale_log2, Warps<Tile>& warps, Rows<Tile>& rows) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int g = 0; g < Tile::kGroup && lane < Tile::kLanes; ++g) {
    if (lane == 0) warps.max[warp][g] = rows.max[g], warps.sum[warp][g] = rows.sum[g];
    for (int e = 0; e < Tile::kElements; ++e) warps.O[warp][g][e][lane] = rows.O[g][e];
  }
  __syncthreads();
  for (int g = 0; g < Tile::kGroup; ++g) {
    for (int w = 0; w < kWarps; ++w) rows.max[g] = fmaxf(rows.max[g], warps.max[w][g]);
    const float shift = rows.max[g] == kMinusInf ? 0.0f : rows.max[g];
    rows.sum[g] = 0;
    for (int e = 0; e < Tile::kElements; ++e) rows.O[g][e] = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float factor = exp2f((warps.max[w][g] - shift) * scale_log2);
      rows.sum[g] = fmaf(warps.sum[w][g], factor, rows.sum[g]);
      for (int e = 0; e < Tile::kElements; ++e)
        rows.O[g][e] = fmaf(warps.O[w][g][e][Tile::lane()], factor, rows.O[g][e]);
    }
  }
}

// lse = scale * m + ln d, by one thread of the row. Gives the factor of O, 1 / d. A row without keys: 0 and -inf.
__device__ float finish(float max, float sum, float scale, bool writes, float* lse) {
  if (writes) *lse = max * scale + logf(sum);
  return sum == 0.0f ? 0.0f : 1.0f / sum;
}

// A row's result, where there is one split, or its state, where there are more.
template <class Tile>
__device__ void store_row(const DecodeArgs<typename Tile::T>& args, const Parts& parts, std::int64_t row, int split,
                          float max, float sum, const float (&O)[Tile::kElements]) {
  const int head_dim = static_cast<int>(args.shape.head_dim);
  const std::int64_t part = row * parts.splits + split;
  const bool first = Tile::lane() == 0, done = parts.splits == 1;
  const float factor = done ? finish(max, sum, args.shape.scale, first, args.lse + row) : 1;
  if (!done && first) parts.max_and_sum[part] = make_float2(max, sum);
  for (int e = 0; e < Tile::kElements; ++e) {
    if (Tile::column(e) >= head_dim) continue;
    if (done)
      store(O[e] * factor, args.O + row * head_dim + Tile::column(e));
    else
      parts.O[part * head_dim + Tile::column(e)] = O[e];
  }
}

// Where split number `split` begins: sizes differ by at most one.
__device__ std::int64_t split_begin(std::int64_t keys, int splits, int split) {
  std::int64_t begin = keys / splits * split;
  begin += min(keys % splits, std::int64_t{split});
  return begin;
}

// What a block computes: a split of the keys of a kv head, for `rows` of its query heads, at most kGroup, from row
// first_row of [batch * q_heads] on.
struct Work {
  int split;
  std::int64_t kv_head, first_row;  // kv_head of [batch * kv_heads]
  int rows;
};
template <class Tile>
__device__ Work work_of(const AttentionShape& s, int splits, std::int64_t number) {
  const std::int64_t chunks = (s.q_heads / s.kv_heads + Tile::kGroup - 1) / Tile::kGroup;
  [[maybe_unused]] const std::int64_t chunk = number / splits % chunks;  // of the query heads of a kv head
  const std::int64_t kv_head = number / splits / chunks;
  Work work{static_cast<int>(number % splits), kv_head, kv_head, 1};
  const std::int64_t group = s.q_heads / s.kv_heads;
  work.first_row = kv_head * group + chunk * Tile::kGroup;
  work.rows = static_cast<int>(min(std::int64_t{Tile::kGroup}, group - chunk * Tile::kGroup));
  return work;
}

template <class Tile, bool whole>
__global__ void __launch_bounds__(kThreads, Tile::kBlocksPerSm)
    decode_kernel(DecodeArgs<typename Tile::T> args, Parts parts, std::int64_t works) {
  static_assert(sizeof(Warps<Tile>) <= sizeof(Slots), "it lies over the slots");
  extern __shared__ __align__(16) float memory[];
  Slots& slots = *reinterpret_cast<Slots*>(memory);
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const float scale_log2 = s.scale * kLog2E;
  for (std::int64_t number = blockIdx.x; number < works; number += gridDim.x) {
    const Work work = work_of<Tile>(s, parts.splits, number);
    const std::int64_t cache = work.kv_head * s.seqlen_k * head_dim;
    const std::int64_t first = split_begin(s.seqlen_k, parts.splits, work.split);
    const std::int64_t last = split_begin(s.seqlen_k, parts.splits, work.split + 1);
    uint4 pieces[Tile::kGroup][Tile::kVectors];  // of Q, on their way together, and with the first keys
    for (int g = 0; g < Tile::kGroup; ++g)
      for (int v = 0; v < Tile::kVectors; ++v)
        pieces[g][v] = piece_of<Tile, whole>(args.Q, work.first_row + g, head_dim, g < work.rows, v);
    begin_keys<Tile, whole>(args.K + cache, args.V + cache, head_dim, first, last, slots);
    float Q[Tile::kGroup][Tile::kElements];
    for (int g = 0; g < Tile::kGroup; ++g) unpack_row<Tile>(pieces[g], Q[g]);
    State<Tile> state{kMinusInf, 0, {}};
    visit_keys<Tile, whole>(Q, args.K + cache, args.V + cache, head_dim, first, last, scale_log2, slots, state);
    Rows<Tile> rows;
    merge_lanes<Tile>(state, rows);
    merge_warp<Tile>(scale_log2, rows);
    __syncthreads();  // the slots are used up
    merge_block<Tile>(scale_log2, *reinterpret_cast<Warps<Tile>*>(memory), rows);
    __syncthreads();                // the memory is used again by the block's next piece of work
    if (Tile::key() > 0) continue;  // the threads of one key have the result
    for (int g = 0; g < Tile::kGroup; ++g)
      if (g < work.rows)
        store_row<Tile>(args, parts, work.first_row + g, work.split, rows.max[g], rows.sum[g], rows.O[g]);
  }
}

// O and lse of a row from the states of its splits, a block for each row: a warp has every kWarps-th split, of which a
// lane has every 32nd column. A split without keys has m = -inf, d = 0.
template <class T, int kHeadDim>
__global__ void __launch_bounds__(kThreads) combine_kernel(DecodeArgs<T> args, Parts parts, std::int64_t rows) {
  constexpr int kColumns = kHeadDim / kWarp;
  __shared__ float O_smem[kWarps][kHeadDim];
  __shared__ float sum_smem[kWarps];
  const int head_dim = static_cast<int>(args.shape.head_dim);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  [[maybe_unused]] const float scale_log2 = args.shape.scale * kLog2E;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float max = kMinusInf, sum = 0, O[kColumns] = {};
    const float2* max_and_sum = parts.max_and_sum + row * parts.splits;
    for (int p = lane; p < parts.splits; p += kWarp) max = fmaxf(max, max_and_sum[p].x);
    for (int lanes = 1; lanes < kWarp; lanes *= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, lanes));
    const float shift = max == kMinusInf ? 0.0f : max;
    for (int first = warp; first < parts.splits; first += kThreads) {  // 32 of the warp's splits, kWarps apart
      const int splits = min(kWarp, (parts.splits - first + kWarps - 1) / kWarps);
      const float2 own = lane < splits ? max_and_sum[first + lane * kWarps] : make_float2(kMinusInf, 0);
      const float weight = exp2f((own.x - shift) * scale_log2);
      sum = fmaf(own.y, weight, sum);
      const float* O_part = parts.O + (row * parts.splits + first) * head_dim + lane;
#pragma unroll(16 / kColumns)  // 16 loads on their way
      for (int p = 0; p < splits; ++p) {
        const float factor = __shfl_sync(~0u, weight, p);
        for (int c = 0; c < kColumns; ++c)
          if (lane + c * kWarp < head_dim) O[c] = fmaf(factor, O_part[p * kWarps * head_dim + c * kWarp], O[c]);
      }
    }
    for (int lanes = 1; lanes < kWarp; lanes *= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (lane == 0) sum_smem[warp] = sum;
    for (int c = 0; c < kColumns; ++c) O_smem[warp][lane + c * kWarp] = O[c];
    __syncthreads();
    sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sum_smem[w];
    const float factor = finish(max, sum, args.shape.scale, threadIdx.x == 0, args.lse + row);
    for (int column = static_cast<int>(threadIdx.x); column < head_dim; column += kThreads) {
      float total = 0;
      for (int w = 0; w < kWarps; ++w) total += O_smem[w][column];
      store(total * factor, args.O + row * head_dim + column);
    }
    __syncthreads();  // the next row's sums go to the same places
  }
}

// The fewest splits that fill the device's multiprocessors nearly as well as any number does. A wave is what runs at
// the same time; what is left of the last one idles.
int choose_splits(std::int64_t blocks_of_a_split, std::int64_t keys, std::int64_t wave) {
  [[maybe_unused]] const std::int64_t most = std::clamp<std::int64_t>(keys / 128, 1, 256);
  [[maybe_unused]] const auto filled = [&](std::int64_t splits) {
    const std::int64_t blocks = blocks_of_a_split * splits;
    return static_cast<double>(blocks) / static_cast<double>(block_count(blocks, wave) * wave);
  };
  std::int64_t chosen = 1;
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) best = std::max(best, filled(splits));
  while (filled(chosen) < 0.95 * best) ++chosen;
  return static_cast<int>(chosen);
}

int splits_of(const AttentionShape& s, int wanted) {
  if (wanted > 0) return wanted;
  const std::int64_t group = s.q_heads / s.kv_heads, blocks = s.batch * s.kv_heads * block_count(group, 8);
  return choose_splits(std::max<std::int64_t>(1, blocks), s.seqlen_k, 2 * current_device().sms);
}

template <class Tile, bool whole>
void launch(const DecodeArgs<typename Tile::T>& args, int splits) {
  using T = typename Tile::T;
  const AttentionShape& s = args.shape;
  const std::int64_t rows = s.batch * s.q_heads;
  if (rows == 0) return;
  float* const workspace = static_cast<float*>(args.workspace);
  [[maybe_unused]] const Parts parts{splits, workspace + 2 * rows * splits, reinterpret_cast<float2*>(workspace)};
  [[maybe_unused]] const std::int64_t works =
      s.batch * s.kv_heads * block_count(s.q_heads / s.kv_heads, Tile::kGroup) * splits;
  [[maybe_unused]] const auto grid = [](std::int64_t blocks) {
    return static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  };
  // Compiled, launched or not.
  [[maybe_unused]] const auto kernel = decode_kernel<Tile, whole>;
  [[maybe_unused]] const auto combine = combine_kernel<T, Tile::kHeadDim>;
  decode_kernel<Tile, whole><<<grid(works), kThreads, sizeof(Slots), args.stream>>>(args, parts, works);
  CUDA_CHECK(cudaGetLastError());
  if (splits == 1) return;
  combine_kernel<T, Tile::kHeadDim><<<grid(rows), kThreads, 0, args.stream>>>(args, parts, rows);
  CUDA_CHECK(cudaGetLastError());
}

template <class Tile>
void launch_for_pointers(const DecodeArgs<typename Tile::T>& args, int splits) {
  const auto is_aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  const bool whole =
      args.shape.head_dim == Tile::kHeadDim && is_aligned(args.Q) && is_aligned(args.K) && is_aligned(args.V);
  whole ? launch<Tile, true>(args, splits) : launch<Tile, false>(args, splits);
}
template <class T, int group>
void launch_for_head_dim(const DecodeArgs<T>& args, int splits) {
  if (args.shape.head_dim <= 64) return launch_for_pointers<Tile<T, 64, group>>(args, splits);
  if (args.shape.head_dim <= 128) return launch_for_pointers<Tile<T, 128, group>>(args, splits);
  launch_for_pointers<Tile<T, kMaxHeadDim, group>>(args, splits);
}
template <class T>
void decode(const DecodeArgs<T>& args) {
  check_rung(flash_decode, args.shape);
  check_decode(args.shape, args.splits);
  const int splits = splits_of(args.shape, args.splits);
  if (args.shape.q_heads / args.shape.kv_heads <= 4) return launch_for_head_dim<T, 4>(args, splits);
  launch_for_head_dim<T, 8>(args, splits);
}

bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= kMaxHeadDim; }

// O, m and d of each split.
std::int64_t decode_workspace_bytes(const AttentionShape& s, int wanted) {
  const int splits = splits_of(s, wanted);
  return splits == 1 ? 0 : checked_product("workspace", {4, splits, s.batch, s.q_heads, s.head_dim + 2});
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
