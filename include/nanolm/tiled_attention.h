// Lesson 05: FlashAttention forward. The score matrix exists a tile at a time; O and lse are all that is written.
//
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h. A tile has rows_q rows of Q and rows_k rows of
// K and V, which at the end of a sequence are fewer than the block sizes:
//   Q, O [rows_q, head_dim]   K, V [rows_k, head_dim]   S [rows_q, rows_k]   row_max, row_sum, lse [rows_q]
// all row-major, at the front of spans that may be longer. Elements behind them are not to be used: they hold NaN.
// Accumulator: float. Error bound of O, relative to max|V|, and of lse, with s the largest scale * sum_h |Q K|:
//   2^-23 * ((4 + sqrt(head_dim)) s + 2 sqrt(seqlen_k) + 8)
// Scratch: independent of seqlen.
// Source: Dao et al. 2022, algorithm 1; Dao 2023, algorithm 1 (its loop order: query blocks outside).
#pragma once

#include <span>

#include "nanolm/tile_loader.h"

namespace nanolm {

struct TileSize {
  std::int64_t rows_q, rows_k, head_dim;
};

// Step 1. S = scale * Q K^T.
void tile_scores(const TileSize& size, float scale, std::span<const float> Q, std::span<const float> K,
                 std::span<float> S);

// Step 2. Folds a tile of scores into the running state of each row: m, d and o of lesson 03.
void update_tile(const TileSize& size, std::span<const float> S, std::span<const float> V, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O);

// Step 3. Divides O by row_sum, in place, and writes lse = m + ln d; 0 and -inf for a row that saw no key.
void finish_tile(const TileSize& size, std::span<const float> row_max, std::span<const float> row_sum,
                 std::span<float> O, std::span<float> lse);

// Step 4. Sets to -inf what the causal mask hides of the tile whose first row is query first_q and whose first column
// is key first_k, both counted from the start of the sequences (nanolm/attention_shape.h has the rule). Without the
// causal flag it leaves S alone.
void mask_tile(const AttentionShape& shape, const TileSize& size, std::int64_t first_q, std::int64_t first_k,
               std::span<float> S);

// Step 5. How many K blocks, counted from the first, query block q_block has to visit: the others are masked entirely.
std::int64_t visible_k_blocks(const AttentionShape& shape, const Tiling& tiling, std::int64_t q_block);

// Step 6. For each batch, query head and query block: load Q, visit the visible K blocks, store O and lse.
// All tensors are behind the loader. Later parts of this step: ragged tails, causal, skipped tiles, grouped heads.
void tiled_attention(const AttentionShape& shape, const Tiling& tiling, TileLoader& loader);

// Step 7. Main-memory traffic of one head without a mask, in elements; lse is left out, it is 1 / head_dim of O.
// Ideal: Q, K, V and O once. FlashAttention-1 has K and V outside, sram_elements / (4 head_dim) rows of them at a time
// (a real number: nothing is rounded), and for each such block reads Q and O and writes O. FlashAttention-2 reads K and
// V for each of its query blocks.
double ideal_traffic(double seqlen, double head_dim);
double flash1_traffic(double seqlen, double head_dim, double sram_elements);
double flash2_traffic(double seqlen, double head_dim, double block_q);
// Whether for long sequences FlashAttention-1 moves less than naive attention, 4 seqlen head_dim + 4 seqlen^2.
bool flash1_wins(double head_dim, double sram_elements);

// Given: attention on whole tensors. Throws std::invalid_argument as TileLoader's constructor does.
inline void tiled_attention(const AttentionShape& shape, const Tiling& tiling, std::span<const float> Q,
                            std::span<const float> K, std::span<const float> V, std::span<float> O,
                            std::span<float> lse) {
  TileLoader loader(shape, tiling, Q, K, V, O, lse);
  tiled_attention(shape, tiling, loader);
}

// Given: the checks that the functions above begin with. Spans may be longer than the tile, not shorter.
inline void require_tile(const char* name, std::size_t size, std::int64_t rows, std::int64_t columns) {
  const std::int64_t needed = checked_product(name, {rows, columns});
  require(size >= static_cast<std::size_t>(needed), name, " holds ", size, " elements, its tile of ", rows, " x ",
          columns, " needs ", needed);
}
inline void check_tile_scores(const TileSize& t, std::span<const float> Q, std::span<const float> K,
                              std::span<float> S) {
  require_tile("Q", Q.size(), t.rows_q, t.head_dim);
  require_tile("K", K.size(), t.rows_k, t.head_dim);
  require_tile("S", S.size(), t.rows_q, t.rows_k);
}
inline void check_update_tile(const TileSize& t, std::span<const float> S, std::span<const float> V,
                              std::span<float> row_max, std::span<float> row_sum, std::span<float> O) {
  require_tile("S", S.size(), t.rows_q, t.rows_k);
  require_tile("V", V.size(), t.rows_k, t.head_dim);
  require_tile("row_max", row_max.size(), t.rows_q, 1);
  require_tile("row_sum", row_sum.size(), t.rows_q, 1);
  require_tile("O", O.size(), t.rows_q, t.head_dim);
}
inline void check_finish_tile(const TileSize& t, std::span<const float> row_max, std::span<const float> row_sum,
                              std::span<float> O, std::span<float> lse) {
  require_tile("row_max", row_max.size(), t.rows_q, 1);
  require_tile("row_sum", row_sum.size(), t.rows_q, 1);
  require_tile("O", O.size(), t.rows_q, t.head_dim);
  require_tile("lse", lse.size(), t.rows_q, 1);
}
inline void check_mask_tile(const AttentionShape& shape, const TileSize& t, std::span<float> S) {
  check_shape(shape);
  require_tile("S", S.size(), t.rows_q, t.rows_k);
}
inline void check_visible_k_blocks(const AttentionShape& shape, const Tiling& tiling, std::int64_t q_block) {
  check_shape(shape);
  check_tiling(tiling);
  require(q_block >= 0 && q_block < block_count(shape.seqlen_q, tiling.block_q), "q_block ", q_block,
          " does not exist: seqlen_q is ", shape.seqlen_q, ", block_q ", tiling.block_q);
}
inline void check_traffic(std::initializer_list<double> counts) {
  for (const double c : counts) require(std::isfinite(c) && c > 0, "a size must be positive and finite, got ", c);
}

}  // namespace nanolm
