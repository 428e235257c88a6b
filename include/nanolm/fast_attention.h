// Lesson 10: attention at the speed of the machine. Registers hold a tile of results, cache lines hold what it needs.
//
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h, with one thing less: a NaN or inf in K or V
// may reach every row of the query heads that read that kv head in fast_backward (a weight of 0 times NaN).
//   panel    16 columns of a matrix, row after row: [rows][16]. A matrix is packed as panels, one behind the other;
//   they
//            are filled up with zero columns to an even number of panels, so that 32 columns can be read everywhere.
//   tile     6 rows of a product against 32 columns (two panels).
//   S        [rows, kBlockK]: scores of a block of keys, then weights. They are powers of 2: scale * log2(e) is in Q.
// Accumulator: float. Error bound of O, relative to max|V|, and of lse, with s the largest scale * sum_h |Q K|:
//   2^-23 * ((4 + sqrt(head_dim)) s + 2 sqrt(seqlen_k) + 8)
// Results do not depend on the number of threads, to the last bit.
// `threads` is how many work, the caller among them. The others stay when a call ends, for the next one
// (nanolm/threads.h).
// Throws std::invalid_argument for bad shapes, head_dim above 256, threads < 1 and spans of the wrong size; nothing is
// written then.
// Source: Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication"; Dao 2023.
#pragma once

#include <span>

#include "nanolm/attention_shape.h"

namespace nanolm {

inline constexpr std::int64_t kTileRows = 6;
inline constexpr std::int64_t kPanel = 16;        // 64 bytes: a cache line, one vector of AVX-512, two of AVX2
inline constexpr std::int64_t kTileColumns = 32;  // two panels
inline constexpr std::int64_t kBlockQ = 96;       // queries of a block, a multiple of kTileRows
inline constexpr std::int64_t kBlockK = 256;      // keys of a block, a multiple of kTileColumns
inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return block_count(n, multiple) * multiple; }
inline std::int64_t padded(std::int64_t columns) { return round_up(columns, kTileColumns); }

// Step 1. The keys become columns: panels [padded(keys) / 16][head_dim][16], from K [keys, head_dim].
void pack_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> K, std::span<float> panels);
// The same of V, whose columns are those of head_dim: panels [padded(head_dim) / 16][keys][16].
void pack_values(std::int64_t keys, std::int64_t head_dim, std::span<const float> V, std::span<float> panels);

// Step 2. The micro-kernel of Q K^T: S [6, first 32 of kBlockK columns] from Q [6, head_dim] and two panels of keys.
// Row r sees `visible` of the keys, with the causal mask r more; the others are -inf. visible may be negative: the
// first rows then see none. Columns that no row sees may be left as they are.
struct ScoreTile {
  std::int64_t head_dim, visible;
  bool causal;
};
void score_tile(const ScoreTile& tile, std::span<const float> Q, std::span<const float> panels, std::span<float> S);

// Step 3. y = 2^x for x < 127.5; 0 for x < -126.5. Error at most 1 unit in the last place where a multiply-add is
// rounded once, else 1.25. 2^0 is 1, NaN stays NaN.
void exp2_all(std::span<const float> x, std::span<float> y);

// Step 4. The micro-kernel of P V: O [6, 32] += P [6, kBlockK] V, rows of O being padded(head_dim) apart. Row r takes
// the first `keys` weights of its row of P and min(r, extra) more; what lies behind, in P or in V, is not read into it.
// The panels are of a matrix V of panel_rows rows, so that the second panel lies 16 * panel_rows behind the first.
struct ValueTile {
  std::int64_t keys, extra, panel_rows, head_dim;
};
void value_tile(const ValueTile& tile, std::span<const float> P, std::span<const float> panels, std::span<float> O);

// Step 5. A row's first `keys` scores become weights 2^(s - row_max), in place; row_max, row_sum and
// O [padded(head_dim)] are kept as in lesson 05. O is scaled only when the maximum has moved.
// Weights behind `keys`, up to the next multiple of 32, may be overwritten and must be -inf before the call.
void fold_scores(std::int64_t keys, std::int64_t head_dim, std::span<float> S, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O);

// Step 6. All of it, on this many threads. K and V are packed once for each kv head; then the threads take blocks of 96
// queries from a queue. Scratch, allocated once: packed K and V, and for each thread
// 96 (head_dim + padded(head_dim) + 256) floats.
void fast_attention(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                    std::span<const float> V, std::span<float> O, std::span<float> lse);

// Step 7. Few queries, many keys, where each key is read for few multiply-adds: no packing, and no tiles. One row's
// state (row_max, row_sum and O [padded(head_dim)], as in step 5) takes up to kBlockK keys: K and V [keys, head_dim];
// q [head_dim] is scaled as Q is above.
inline constexpr std::int64_t kPartKeys = 1024;  // keys of a part, a multiple of kBlockK
void decode_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> q, std::span<const float> K,
                 std::span<const float> V, std::span<float> O, std::span<float> row_max, std::span<float> row_sum);
// Given: attention for it. The threads take parts of 1024 keys of a kv head from a queue, each for all rows that read
// that head; then the parts' states are merged. Scratch: padded(head_dim) + head_dim + 16 floats for each row and part.
void fast_decode(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                 std::span<const float> V, std::span<float> O, std::span<float> lse);

// Step 8. Of a block of the backward pass, in place: S [rows, kBlockK] becomes P = 2^(S - shift), dP becomes
// dS = P (dP - delta), for the first `keys` of each row and up to the next multiple of 32. shift is lse in base 2, +inf
// in a row without keys.
void score_gradients(std::int64_t rows, std::int64_t keys, std::span<const float> shift, std::span<const float> delta,
                     std::span<float> S, std::span<float> dP);
// Given: the gradients of lesson 06, which names and bounds them. The threads take kv heads from a queue. Scratch: for
// each thread packed K, V, Q and dO of a head, its dK and dV, and blocks. NaN as said at the top.
void fast_backward(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                   std::span<const float> V, std::span<const float> O, std::span<const float> dO,
                   std::span<const float> lse, std::span<float> dQ, std::span<float> dK, std::span<float> dV);

// Given: the checks that each function above begins with. Spans may be longer than needed where it says "at least".
inline void require_at_least(const char* name, std::size_t size, std::int64_t needed) {
  require(size >= static_cast<std::size_t>(needed), name, " holds ", size, " elements, its tile needs ", needed);
}
inline void check_head_dim(std::int64_t head_dim) {
  require(head_dim >= 1 && head_dim <= 256, "head_dim must be from 1 to 256, got ", head_dim);
}
inline void check_pack(std::int64_t keys, std::int64_t head_dim, std::span<const float> matrix, std::span<float> panels,
                       std::int64_t size) {
  check_head_dim(head_dim);
  require(keys >= 0, "keys must not be negative, got ", keys);
  require_size("the matrix", matrix.size(), checked_product("the matrix", {keys, head_dim}));
  require_size("panels", panels.size(), size);
}
inline void check_score_tile(const ScoreTile& tile, std::span<const float> Q, std::span<const float> panels,
                             std::span<float> S) {
  check_head_dim(tile.head_dim);
  require(tile.visible > -kTileRows, "visible must be above ", -kTileRows, ", got ", tile.visible);
  require_at_least("Q", Q.size(), kTileRows * tile.head_dim);
  require_at_least("panels", panels.size(), kTileColumns * tile.head_dim);
  require_at_least("S", S.size(), (kTileRows - 1) * kBlockK + kTileColumns);
}
inline void check_exp2(std::span<const float> x, std::span<float> y) {
  require_size("y", y.size(), static_cast<std::int64_t>(x.size()));
}
inline void check_value_tile(const ValueTile& tile, std::span<const float> P, std::span<const float> panels,
                             std::span<float> O) {
  check_head_dim(tile.head_dim);
  require(tile.keys >= 0 && tile.extra >= 0 && tile.extra < kTileRows && tile.keys + tile.extra <= kBlockK &&
              tile.keys + tile.extra <= tile.panel_rows,
          "keys ", tile.keys, " and extra ", tile.extra, " do not fit a block of ", kBlockK, " and panels of ",
          tile.panel_rows);
  require_at_least("P", P.size(), (kTileRows - 1) * kBlockK + tile.keys + tile.extra);
  require_at_least("panels", panels.size(), kPanel * (tile.panel_rows + tile.keys + tile.extra));
  require_at_least("O", O.size(), (kTileRows - 1) * padded(tile.head_dim) + kTileColumns);
}
inline void check_fold_scores(std::int64_t keys, std::int64_t head_dim, std::span<float> S, std::span<float> row_max,
                              std::span<float> row_sum, std::span<float> O) {
  check_head_dim(head_dim);
  require(keys >= 0 && keys <= kBlockK, "keys must be from 0 to ", kBlockK, ", got ", keys);
  require_at_least("S", S.size(), padded(keys));
  require_at_least("row_max", row_max.size(), 1);
  require_at_least("row_sum", row_sum.size(), 1);
  require_at_least("O", O.size(), padded(head_dim));
}
inline void check_decode_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> q,
                              std::span<const float> K, std::span<const float> V, std::span<float> O,
                              std::span<float> row_max, std::span<float> row_sum) {
  check_head_dim(head_dim);
  require(keys >= 0 && keys <= kBlockK, "keys must be from 0 to ", kBlockK, ", got ", keys);
  require_at_least("row_max", row_max.size(), 1);
  require_at_least("row_sum", row_sum.size(), 1);
  require_at_least("O", O.size(), padded(head_dim));
  require_size("q", q.size(), head_dim);
  require_size("K", K.size(), keys * head_dim);
  require_size("V", V.size(), keys * head_dim);
}
inline void check_fast_attention(const AttentionShape& shape, int threads, std::span<const float> Q,
                                 std::span<const float> K, std::span<const float> V, std::span<float> O,
                                 std::span<float> lse) {
  check_shape(shape);
  check_head_dim(shape.head_dim);
  require(threads >= 1 && threads <= 1024, "threads must be from 1 to 1024, got ", threads);
  require_size("Q", Q.size(), q_size(shape));
  require_size("K", K.size(), kv_size(shape));
  require_size("V", V.size(), kv_size(shape));
  require_size("O", O.size(), q_size(shape));
  require_size("lse", lse.size(), lse_size(shape));
}

inline void check_score_gradients(std::int64_t rows, std::int64_t keys, std::span<const float> shift,
                                  std::span<const float> delta, std::span<float> S, std::span<float> dP) {
  require(rows >= 0 && rows <= kBlockQ, "rows must be from 0 to ", kBlockQ, ", got ", rows);
  require(keys >= 0 && keys <= kBlockK, "keys must be from 0 to ", kBlockK, ", got ", keys);
  require_size("shift", shift.size(), rows);
  require_size("delta", delta.size(), rows);
  require_size("S", S.size(), rows * kBlockK);
  require_size("dP", dP.size(), rows * kBlockK);
}
inline void check_fast_backward(const AttentionShape& shape, int threads, std::span<const float> Q,
                                std::span<const float> K, std::span<const float> V, std::span<const float> O,
                                std::span<const float> dO, std::span<const float> lse, std::span<float> dQ,
                                std::span<float> dK, std::span<float> dV) {
  check_shape(shape);
  check_head_dim(shape.head_dim);
  require(threads >= 1 && threads <= 1024, "threads must be from 1 to 1024, got ", threads);
  require_size("Q", Q.size(), q_size(shape));
  require_size("K", K.size(), kv_size(shape));
  require_size("V", V.size(), kv_size(shape));
  require_size("lse", lse.size(), lse_size(shape));
  require_size("dQ", dQ.size(), q_size(shape));
  require_size("O", O.size(), q_size(shape));
  require_size("dO", dO.size(), q_size(shape));
  require_size("dK", dK.size(), kv_size(shape));
  require_size("dV", dV.size(), kv_size(shape));
}

}  // namespace nanolm
