// Attention backward: tiles of P and dS are computed again from lse (notes/cuda/05_flash_backward.md).
//
// What it adds to 03 and lesson 06: dK and dV sum over queries, dQ sums over keys, and no block can own both sums. So
// there are two kernels, and each computes S and dP: a block of the first owns a tile of keys and visits the queries, a
// block of the second owns a tile of queries and visits the keys. 7 products of tiles instead of 5, no atomics, and the
// same bits in every run.
//
// Budget for head_dim 64: a block of 256 threads owns 128 rows and visits 64 at a time; a thread has 8 x 4 pairs, and
// 8 x 4 elements of each gradient. Four steps of a product take 8 + 4 loads of a float4 from shared memory and
// 8 * 4 * 4 = 128 multiply-adds. A warp's 128 take 32 clocks of an SM, its 12 loads 24 (lanes share addresses) to 48.
// Rung 03 has 8 x 8 and 16 multiply-adds a load; here a second gradient needs the registers.
#include <algorithm>
#include <limits>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
[[maybe_unused]] constexpr float kLog2E = 1.44269504f;  // log2(e)

// Sizes of a block's work: it owns kOwn rows, queries or keys, and visits the others kVisited at a time. Thread (x, y)
// has the own rows y + i * kThreadsY, the visited rows x + j * kThreadsX, and of the gradient of its own rows groups of
// four columns, kThreadsX groups apart.
template <int head_dim, int own, int visited>
struct Tile {
  // head_dim is the shape's, rounded up: what lies behind is zeros.
  static constexpr int kHeadDim = head_dim, kOwn = own, kVisited = visited;
  static constexpr int kThreadsX = head_dim < 64 ? 8 : 16, kThreadsY = 16, kThreads = kThreadsX * kThreadsY;
  static constexpr int kRows = kOwn / kThreadsY, kOthers = kVisited / kThreadsX, kColumns = kHeadDim / kThreadsX;
  static constexpr int kStride = kHeadDim + 4, kStrideW = kVisited + kThreadsX;  // rows begin in different banks
  static __device__ int own_row(int i) { return static_cast<int>(threadIdx.x) / kThreadsX + i * kThreadsY; }
  static __device__ int visited_row(int j) { return static_cast<int>(threadIdx.x) % kThreadsX + j * kThreadsX; }
  static __device__ int column(int c) { return 4 * visited_row(c / 4) + c % 4; }
};

// A block's shared memory. Where it owns keys: own is K, V and visited is Q, dO. Where it owns queries: own is Q, dO
// and visited is K, V. So S is own[0] visited[0]^T and dP is own[1] visited[1]^T in both.
template <class T>
struct Shared {
  float own[2][T::kOwn * T::kStride], visited[2][T::kVisited * T::kStride];
  float weights[T::kOwn * T::kStrideW];  // P, then dS
  float lse[T::kOwn], delta[T::kOwn];    // of the queries; -inf where there is none
};
template <class T>
using Pairs = float[T::kRows][T::kOthers];
template <class T>
using Gradient = float[T::kRows][T::kColumns];

// Four neighbours in shared memory by one instruction.
[[maybe_unused]] __device__ void load4(const float* from, float* to) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Copies a [rows, head_dim] matrix into a tile of tile_rows rows, zeros behind it; a Vector (float4, float) at a time.
template <class T, int tile_rows, class Vector>
__device__ void copy_tile(const float* matrix, int rows, int head_dim, float* tile) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
#pragma unroll 8  // eight loads are on their way before the first is stored
  for (int i = 0; i < tile_rows * T::kHeadDim / (kWidth * T::kThreads); ++i) {
    const int at = kWidth * (static_cast<int>(threadIdx.x) + i * T::kThreads);
    const int row = at / T::kHeadDim, column = at % T::kHeadDim;
    Vector loaded{};
    if (row < rows && column < head_dim) loaded = *reinterpret_cast<const Vector*>(matrix + row * head_dim + column);
    *reinterpret_cast<Vector*>(tile + row * T::kStride + column) = loaded;
  }
}
template <class T, int tile_rows>
__device__ void load_tile(const float* matrix, int rows, int head_dim, float* tile) {
  if (head_dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % sizeof(float4) == 0)
    copy_tile<T, tile_rows, float4>(matrix, rows, head_dim, tile);
  else
    copy_tile<T, tile_rows, float>(matrix, rows, head_dim, tile);
}

// lse and delta of a tile of queries, of which `rows` exist.
template <class T, int tile_rows>
__device__ void load_queries(const float* lse, const float* delta, int rows, Shared<T>& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < tile_rows; i += T::kThreads) {
    shared.lse[i] = i < rows ? lse[i] : kMinusInf;
    shared.delta[i] = i < rows ? delta[i] : 0.0f;
  }
}

// Products of the thread's own rows with its visited rows. `products` is 0 before.
template <class T>
__device__ void tile_products(const float* own, const float* visited, int head_dim, Pairs<T>& products) {
  // TODO: step 3: add up the products of the own rows with the visited rows, four elements at a time. About 9 lines.
  // end
}

// Row q sees the first keys_seen of the keys.
__device__ std::int64_t keys_seen(const AttentionShape& s, std::int64_t q) {
  std::int64_t keys = s.seqlen_k;
  // TODO: step 6: with the causal mask count the keys up to the diagonal. About 1 line.
  // end
  return keys;
}

// Turns S into P and dP into dS, which still lacks the factor `scale`. Both are 0 where the query does not see the key:
// the mask hides it, it does not exist, or the query sees no key at all (lse is -inf). True: there is such a pair.
template <class T, bool owns_queries>
__device__ bool weigh(const AttentionShape& s, std::int64_t first_q, std::int64_t first_k, const Shared<T>& shared,
                      Pairs<T>& P, Pairs<T>& dS) {
  constexpr int kQueries = owns_queries ? T::kRows : T::kOthers;
  [[maybe_unused]] int keys[kQueries];  // that the thread's queries see, of those from first_k on
  for (int i = 0; i < kQueries; ++i) {
    const int query = owns_queries ? T::own_row(i) : T::visited_row(i);
    const std::int64_t seen = keys_seen(s, first_q + query) - first_k;
    keys[i] = static_cast<int>(max(std::int64_t{0}, min(std::int64_t{T::kOwn + T::kVisited}, seen)));
  }
  bool hidden = false;
  for (int i = 0; i < T::kRows; ++i)
    for (int j = 0; j < T::kOthers; ++j) {
      const int own = T::own_row(i), visited = T::visited_row(j);
      [[maybe_unused]] const int query = owns_queries ? own : visited, key = owns_queries ? visited : own;
      bool seen = true;
      // TODO: step 5: say whether the query sees the key. About 1 line.
      // end
      float p = 0, ds = 0;  // of a hidden pair
      // TODO: step 2: turn the score of a pair that is seen into its weight. About 1 line.
      // end
      P[i][j] = p;
      // TODO: step 4: turn the dP of a pair that is seen into its dS. About 1 line.
      // end
      dS[i][j] = ds;
      hidden = hidden || !seen;
    }
  return hidden;
}

// P and dS of the block's own rows with those that it visits.
template <class T, bool owns_queries>
__device__ bool tile_weights(const AttentionShape& s, std::int64_t first_q, std::int64_t first_k,
                             const Shared<T>& shared, Pairs<T>& P, Pairs<T>& dS) {
  const int head_dim = static_cast<int>(s.head_dim);
  tile_products<T>(shared.own[0], shared.visited[0], head_dim, P);
  tile_products<T>(shared.own[1], shared.visited[1], head_dim, dS);
  return weigh<T, owns_queries>(s, first_q, first_k, shared, P, dS);
}

template <class T>
__device__ void put_weights(const Pairs<T>& weights, Shared<T>& shared) {
  for (int i = 0; i < T::kRows; ++i)
    for (int j = 0; j < T::kOthers; ++j)
      shared.weights[T::own_row(i) * T::kStrideW + T::visited_row(j)] = weights[i][j];
}

// gradient += weights * rows. Where pairs are hidden, those with the weight 0 are left out: the row may hold NaN, and
// 0 * NaN is NaN.
template <class T, bool hidden>
__device__ void add_rows(const float* weights, const float* rows, Gradient<T>& gradient) {
  // TODO: step 2: add each visited row, times its weight, to the gradients of the own rows. About 10 lines.
  // end
}

// Shares the weights out through shared memory and adds weights * rows. The block's threads agree on `hidden`.
template <class T>
__device__ void add_to(Gradient<T>& gradient, const Pairs<T>& weights, bool hidden, const float* rows,
                       Shared<T>& shared) {
  put_weights<T>(weights, shared);
  if (__syncthreads_or(hidden))
    add_rows<T, true>(shared.weights, rows, gradient);
  else
    add_rows<T, false>(shared.weights, rows, gradient);
  __syncthreads();  // the weights are used up
}

// factor * gradient, to the rows that exist.
template <class T>
__device__ void store(const Gradient<T>& gradient, int rows, int head_dim, float factor, float* to) {
  for (int i = 0; i < T::kRows; ++i)
    for (int c = 0; c < T::kColumns; ++c)
      if (T::own_row(i) < rows && T::column(c) < head_dim)
        to[T::own_row(i) * head_dim + T::column(c)] = gradient[i][c] * factor;
}

// The first query that sees a key of the tile that begins with first_k.
__device__ std::int64_t first_query(const AttentionShape& s, std::int64_t first_k) {
  std::int64_t query = 0;
  // TODO: step 7: begin with the first query that the mask lets see key first_k. About 1 line.
  // end
  return query;
}
// How many of the keys the tile of queries that begins with first_q visits, if need be to the end of a tile.
template <class T>
__device__ std::int64_t keys_visited(const AttentionShape& s, std::int64_t first_q) {
  std::int64_t keys = s.seqlen_k;
  // TODO: step 7: visit no more keys than some query of the tile sees. About 1 line.
  // end
  return keys;
}
// Query heads that share a kv head.
__device__ std::int64_t group_of(const AttentionShape& s) {
  std::int64_t group = 1;
  // TODO: step 8: count the query heads that share a kv head. About 1 line.
  // end
  return group;
}
// How many of the rows from `first` on are in a tile.
__device__ int rows_of(std::int64_t seqlen, std::int64_t first, int tile_rows) {
  return static_cast<int>(min(std::int64_t{tile_rows}, seqlen - first));
}

// A warp has a row.
constexpr int kWarp = 32, kWarps = 8, kDeltaThreads = kWarp * kWarps;
__global__ void __launch_bounds__(kDeltaThreads) delta_kernel(BackwardArgs<float> args, float* delta) {
  const std::int64_t rows = args.shape.batch * args.shape.q_heads * args.shape.seqlen_q;
  [[maybe_unused]] const int head_dim = static_cast<int>(args.shape.head_dim);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; row < rows;
       row += std::int64_t{gridDim.x} * kWarps) {
    float sum = 0;
    // TODO: step 4: add up O * dO of the row, over the lanes of the warp. About 3 lines.
    // end
    if (lane == 0) delta[row] = sum;
  }
}

// dK and dV. A block owns a tile of keys and visits the queries of all query heads that read its kv head.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1) keys_kernel(BackwardArgs<float> args, const float* delta) {
  extern __shared__ __align__(16) float memory[];
  Shared<T>& shared = *reinterpret_cast<Shared<T>*>(memory);
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t k_blocks = (s.seqlen_k + T::kOwn - 1) / T::kOwn;
  for (std::int64_t work = blockIdx.x; work < s.batch * s.kv_heads * k_blocks; work += gridDim.x) {
    // The first keys of a head first: with the causal mask they take longest.
    const std::int64_t kv_head = work / k_blocks, first_k = work % k_blocks * T::kOwn;
    const std::int64_t first_key = (kv_head * s.seqlen_k + first_k) * head_dim;
    const int keys = rows_of(s.seqlen_k, first_k, T::kOwn);
    load_tile<T, T::kOwn>(args.K + first_key, keys, head_dim, shared.own[0]);
    load_tile<T, T::kOwn>(args.V + first_key, keys, head_dim, shared.own[1]);
    Gradient<T> dK = {}, dV = {};
    for (std::int64_t head = kv_head * group_of(s); head < (kv_head + 1) * group_of(s); ++head)
      for (std::int64_t first_q = first_query(s, first_k); first_q < s.seqlen_q; first_q += T::kVisited) {
        const std::int64_t first_row = head * s.seqlen_q + first_q;
        const int rows = rows_of(s.seqlen_q, first_q, T::kVisited);
        load_tile<T, T::kVisited>(args.Q + first_row * head_dim, rows, head_dim, shared.visited[0]);
        load_tile<T, T::kVisited>(args.dO + first_row * head_dim, rows, head_dim, shared.visited[1]);
        load_queries<T, T::kVisited>(args.lse + first_row, delta + first_row, rows, shared);
        __syncthreads();
        Pairs<T> P = {}, dS = {};
        const bool hidden = tile_weights<T, false>(s, first_q, first_k, shared, P, dS);
        add_to<T>(dV, P, hidden, shared.visited[1], shared);
        add_to<T>(dK, dS, hidden, shared.visited[0], shared);
      }
    store<T>(dK, keys, head_dim, s.scale, args.dK + first_key);
    store<T>(dV, keys, head_dim, 1, args.dV + first_key);
  }
}

// dQ. A block owns a tile of queries and visits the keys that they see.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1) queries_kernel(BackwardArgs<float> args, const float* delta) {
  extern __shared__ __align__(16) float memory[];
  Shared<T>& shared = *reinterpret_cast<Shared<T>*>(memory);
  const AttentionShape& s = args.shape;
  const int head_dim = static_cast<int>(s.head_dim);
  const std::int64_t q_blocks = (s.seqlen_q + T::kOwn - 1) / T::kOwn;
  for (std::int64_t work = blockIdx.x; work < s.batch * s.q_heads * q_blocks; work += gridDim.x) {
    // The last queries of a head first: with the causal mask they take longest.
    const std::int64_t head = work / q_blocks, first_q = (q_blocks - 1 - work % q_blocks) * T::kOwn;
    const std::int64_t first_row = head * s.seqlen_q + first_q;
    const int rows = rows_of(s.seqlen_q, first_q, T::kOwn);
    load_tile<T, T::kOwn>(args.Q + first_row * head_dim, rows, head_dim, shared.own[0]);
    load_tile<T, T::kOwn>(args.dO + first_row * head_dim, rows, head_dim, shared.own[1]);
    load_queries<T, T::kOwn>(args.lse + first_row, delta + first_row, rows, shared);
    Gradient<T> dQ = {};
    for (std::int64_t first_k = 0; first_k < keys_visited<T>(s, first_q); first_k += T::kVisited) {
      const std::int64_t first_key = (head / group_of(s) * s.seqlen_k + first_k) * head_dim;
      const int keys = rows_of(s.seqlen_k, first_k, T::kVisited);
      load_tile<T, T::kVisited>(args.K + first_key, keys, head_dim, shared.visited[0]);
      load_tile<T, T::kVisited>(args.V + first_key, keys, head_dim, shared.visited[1]);
      __syncthreads();
      Pairs<T> P = {}, dS = {};
      const bool hidden = tile_weights<T, true>(s, first_q, first_k, shared, P, dS);
      add_to<T>(dQ, dS, hidden, shared.visited[0], shared);
    }
    store<T>(dQ, rows, head_dim, s.scale, args.dQ + first_row * head_dim);
  }
}

template <class T>
void launch(const BackwardArgs<float>& args) {
  const AttentionShape& s = args.shape;
  static_assert(sizeof(Shared<T>) <= 227 * 1024, "more shared memory than any device gives a block");
  static_assert(T::kVisited <= T::kOwn && T::kColumns % 4 == 0, "lse holds either tile; columns come by fours");
  [[maybe_unused]] float* const delta = static_cast<float*>(args.workspace);
  [[maybe_unused]] const std::int64_t rows = s.batch * s.q_heads * s.seqlen_q;
  [[maybe_unused]] const std::int64_t key_tiles = s.batch * s.kv_heads * block_count(s.seqlen_k, T::kOwn);
  [[maybe_unused]] const std::int64_t query_tiles = s.batch * s.q_heads * block_count(s.seqlen_q, T::kOwn);
  // Compiled, launched or not.
  [[maybe_unused]] const auto keys = keys_kernel<T>, queries = queries_kernel<T>;
  [[maybe_unused]] const auto delta_rows = delta_kernel;
  [[maybe_unused]] const auto grid = [](std::int64_t blocks) {
    return static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  };
  constexpr int kSharedBytes = static_cast<int>(sizeof(Shared<T>));
  for (const auto kernel : {keys, queries})
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  // TODO: step 1: launch the three kernels, each only where it has work, and check each launch. About 6 lines.
  // end
}

// The largest tile that fits: a T4 has 64 KiB a block, an RTX 4090 99, an A100 163, an H100 227.
template <class Large, class Small>
void launch_larger(const BackwardArgs<float>& args) {
  const auto bytes = static_cast<std::size_t>(current_device().shared_bytes_per_block);
  bytes >= sizeof(Shared<Large>) ? launch<Large>(args) : launch<Small>(args);
}

void backward(const BackwardArgs<float>& args) {
  todo();  // delete this line when you begin
  check_rung(flash_backward, args.shape);
  if (args.shape.head_dim <= 32) return launch_larger<Tile<32, 128, 32>, Tile<32, 64, 32>>(args);
  if (args.shape.head_dim <= 64) return launch_larger<Tile<64, 128, 64>, Tile<64, 64, 32>>(args);
  if (args.shape.head_dim <= 128) return launch_larger<Tile<128, 64, 64>, Tile<128, 32, 16>>(args);
  launch_larger<Tile<256, 64, 32>, Tile<256, 32, 32>>(args);
}

bool supports(const AttentionShape& shape, const Device& device) {
  const auto bytes = static_cast<std::size_t>(device.shared_bytes_per_block);
  if (shape.head_dim <= 64) return bytes >= sizeof(Shared<Tile<64, 64, 32>>);
  if (shape.head_dim <= 128) return bytes >= sizeof(Shared<Tile<128, 32, 16>>);
  return shape.head_dim <= 256 && bytes >= sizeof(Shared<Tile<256, 32, 32>>);
}

// delta.
std::int64_t workspace_bytes(const AttentionShape& s) {
  return checked_product("workspace", {4, s.batch, s.q_heads, s.seqlen_q});
}

}  // namespace

const Rung flash_backward = [] {
  Rung r;
  r.name = "cuda/05_flash_backward";
  r.idea = "The gradients of attention without atomics: one kernel owns keys, one owns queries, both recompute P";
  r.backward = backward;
  r.supports = supports;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
