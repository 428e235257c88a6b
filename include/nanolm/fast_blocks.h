// Given to lesson 10: the way of a block of queries through the keys, from the tiles of steps 2, 4 and 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "nanolm/fast_attention.h"

namespace nanolm {

inline constexpr double kLn2 = 0.69314718055994531;

// What one thread needs for a block of queries.
struct BlockScratch {
  float *Q, *S, *O;
};

// One head: its Q, O and lse, and the packed K and V that it reads.
struct Head {
  std::span<const float> Q, K_panels, V_panels;
  std::span<float> O, lse;
};

// Keys first to last - 1 of a block of queries. Row r of the block sees `visible` of them, if causal r more.
struct KeyBlock {
  std::int64_t first, last, visible;
  bool causal;
};

inline void visit_keys(const AttentionShape& shape, const Head& head, const KeyBlock& keys, std::int64_t tiles,
                       const BlockScratch& scratch, std::span<float> row_max, std::span<float> row_sum) {
  const std::int64_t dim = shape.head_dim, O_row = padded(dim), length = keys.last - keys.first;
  const auto rest = [](auto span, std::int64_t first) { return span.subspan(static_cast<std::size_t>(first)); };
  const std::span<float> Q(scratch.Q, static_cast<std::size_t>(kBlockQ * dim));
  const std::span<float> S(scratch.S, static_cast<std::size_t>(kBlockQ * kBlockK));
  const std::span<float> O(scratch.O, static_cast<std::size_t>(kBlockQ * O_row));
  // Keys that the first row of a tile sees, and how many more its last row does.
  const auto visible = [&](std::int64_t tile) { return keys.visible + (keys.causal ? tile * kTileRows : 0); };
  const auto extra = [&](std::int64_t tile) {
    return keys.causal ? std::min(kTileRows - 1, length - visible(tile)) : 0;
  };
  for (std::int64_t k = 0; k < length; k += kTileColumns)  // a panel of K stays in L1 while all rows meet it
    for (std::int64_t t = 0; t < tiles; ++t)
      if (k < visible(t) + extra(t))
        score_tile({dim, visible(t) - k, keys.causal}, rest(Q, t * kTileRows * dim),
                   rest(head.K_panels, (keys.first + k) * dim), rest(S, t * kTileRows * kBlockK + k));
  for (std::int64_t r = 0; r < tiles * kTileRows; ++r)
    fold_scores(visible(r / kTileRows) + extra(r / kTileRows), dim, rest(S, r * kBlockK), rest(row_max, r),
                rest(row_sum, r), rest(O, r * O_row));
  for (std::int64_t c = 0; c < dim; c += kTileColumns)
    for (std::int64_t t = 0; t < tiles; ++t)
      value_tile({visible(t), extra(t), shape.seqlen_k, dim}, rest(S, t * kTileRows * kBlockK),
                 rest(head.V_panels, c * shape.seqlen_k + keys.first * kPanel), rest(O, t * kTileRows * O_row + c));
}

inline void attend(const AttentionShape& shape, const Head& head, std::int64_t first_q, const BlockScratch& scratch) {
  const std::int64_t dim = shape.head_dim, O_row = padded(dim), rows = std::min(kBlockQ, shape.seqlen_q - first_q);
  const std::int64_t tiles = block_count(rows, kTileRows);
  float row_max[kBlockQ], row_sum[kBlockQ];
  std::fill_n(row_max, kBlockQ, -std::numeric_limits<float>::infinity());
  std::fill_n(row_sum, kBlockQ, 0.0f);
  std::fill_n(scratch.O, tiles * kTileRows * O_row, 0.0f);
  const float scale = static_cast<float>(static_cast<double>(shape.scale) / kLn2);
  for (std::int64_t i = 0; i < rows * dim; ++i) scratch.Q[i] = scale * head.Q.data()[first_q * dim + i];
  std::fill(scratch.Q + rows * dim, scratch.Q + tiles * kTileRows * dim, 0.0f);

  // Whole tiles of keys that every row sees, then what is left: the triangle of the mask, and the tail.
  const std::int64_t visible = shape.causal ? first_q + shape.seqlen_k - shape.seqlen_q + 1 : shape.seqlen_k;
  const std::int64_t whole = visible / kTileColumns * kTileColumns;
  const std::int64_t last = shape.causal ? visible + rows - 1 : visible;
  for (std::int64_t k = 0; k < whole; k += kBlockK) {
    const std::int64_t end = std::min(k + kBlockK, whole);
    visit_keys(shape, head, {k, end, end - k, false}, tiles, scratch, row_max, row_sum);
  }
  if (whole < last)
    visit_keys(shape, head, {whole, last, visible - whole, shape.causal}, tiles, scratch, row_max, row_sum);

  for (std::int64_t r = 0; r < rows; ++r) {
    float* O = head.O.data() + (first_q + r) * dim;
    const float divisor = row_sum[r] == 0 ? 1.0f : row_sum[r];  // an empty row is zero already
    for (std::int64_t h = 0; h < dim; ++h) O[h] = scratch.O[r * O_row + h] / divisor;
    head.lse.data()[first_q + r] = static_cast<float>(kLn2 * row_max[r] + std::log(static_cast<double>(row_sum[r])));
  }
}

}  // namespace nanolm
