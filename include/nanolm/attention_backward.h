// Lesson 06: the gradients of attention from O and lse. Scores and probabilities are computed again, a tile at a time.
//
//   delta[i] = sum_h O[i, h] * dO[i, h]            P = exp(S - lse), S = scale * Q K^T      dP = dO V^T
//   dV = P^T dO      dS = P o (dP - delta)         dQ = scale * dS K                        dK = scale * dS^T Q
//
// dX stands for the derivative of a loss by X; o multiplies elementwise. dS is the derivative by the scores with their
// scale in them, so scale enters once more in dQ and dK, and nowhere else.
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h. A tile is rows_q queries from first_q on
// against rows_k keys from first_k on, of one head. Its spans hold its rows and nothing more:
//   Q, dO, dQ [rows_q, head_dim]   K, V, dK, dV [rows_k, head_dim]   P, dS [rows_q, rows_k]   lse, delta [rows_q]
// Where P is 0, by the mask or because lse is -inf, the pair adds nothing to any gradient, whatever stands in K, V, Q
// and dO, NaN included.
// Accumulator: float. Error bound of a gradient, relative to the largest sum over absolute values of terms, with s the
// largest scale * sum_h |Q K| and n = seqlen_k + group * seqlen_q + head_dim, group = q_heads / kv_heads:
//   2^-23 * ((4 + sqrt(head_dim)) s + 2 sqrt(n) + 8)
// Throws std::invalid_argument for bad shapes, a block below 1 and spans of the wrong size; nothing is written.
// Source: Dao et al. 2022, algorithm 4 (appendix B); Dao 2023, algorithm 2.
#pragma once

#include <span>

#include "nanolm/attention_shape.h"

namespace nanolm {

struct BackwardTile {
  std::int64_t first_q, rows_q, first_k, rows_k;
};

// Step 1. delta of whole tensors: O and dO [batch, q_heads, seqlen_q, head_dim].
void output_delta(const AttentionShape& shape, std::span<const float> O, std::span<const float> dO,
                  std::span<float> delta);

// Step 2. P of a tile. 0 where the causal mask hides the key, and in a row whose lse is -inf.
void tile_probabilities(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> Q,
                        std::span<const float> K, std::span<const float> lse, std::span<float> P);

// Step 3. dV += P^T dO.
void add_tile_dV(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P,
                 std::span<const float> dO, std::span<float> dV);

// Step 4. dS = P o (dO V^T - delta).
void tile_dS(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P, std::span<const float> dO,
             std::span<const float> V, std::span<const float> delta, std::span<float> dS);

// Step 5. dQ += scale * dS K.
void add_tile_dQ(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> K, std::span<float> dQ);

// Step 6. dK += scale * dS^T Q.
void add_tile_dK(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> Q, std::span<float> dK);

// Step 7. All of it. What dQ, dK and dV held before is overwritten; dK and dV sum over the query heads of the group.
// O and lse are what the forward pass wrote. Scratch: delta and a few tiles, nothing of size seqlen_q * seqlen_k.
void attention_backward(const AttentionShape& shape, const Tiling& tiling, std::span<const float> Q,
                        std::span<const float> K, std::span<const float> V, std::span<const float> O,
                        std::span<const float> dO, std::span<const float> lse, std::span<float> dQ, std::span<float> dK,
                        std::span<float> dV);

// Given: the checks that each function above begins with.
inline void check_delta(const AttentionShape& shape, std::span<const float> O, std::span<const float> dO,
                        std::span<float> delta) {
  check_shape(shape);
  require_size("O", O.size(), q_size(shape));
  require_size("dO", dO.size(), q_size(shape));
  require_size("delta", delta.size(), lse_size(shape));
}
struct NamedSize {
  const char* name;
  std::size_t size;
};
// Sizes of the spans with rows_q rows, then of those with rows_k rows, of P and dS, of lse and delta.
inline void check_backward_tile(const AttentionShape& shape, const BackwardTile& tile,
                                std::initializer_list<NamedSize> q_rows, std::initializer_list<NamedSize> k_rows,
                                std::initializer_list<NamedSize> squares, std::initializer_list<NamedSize> columns) {
  check_shape(shape);
  require(tile.first_q >= 0 && tile.rows_q >= 0 && tile.rows_q <= shape.seqlen_q - tile.first_q, "rows ", tile.first_q,
          " + ", tile.rows_q, " are not within seqlen_q ", shape.seqlen_q);
  require(tile.first_k >= 0 && tile.rows_k >= 0 && tile.rows_k <= shape.seqlen_k - tile.first_k, "keys ", tile.first_k,
          " + ", tile.rows_k, " are not within seqlen_k ", shape.seqlen_k);
  for (const auto& [name, size] : q_rows)
    require_size(name, size, checked_product(name, {tile.rows_q, shape.head_dim}));
  for (const auto& [name, size] : k_rows)
    require_size(name, size, checked_product(name, {tile.rows_k, shape.head_dim}));
  for (const auto& [name, size] : squares) require_size(name, size, checked_product(name, {tile.rows_q, tile.rows_k}));
  for (const auto& [name, size] : columns) require_size(name, size, tile.rows_q);
}
inline void check_backward(const AttentionShape& shape, const Tiling& tiling, std::span<const float> Q,
                           std::span<const float> K, std::span<const float> V, std::span<const float> O,
                           std::span<const float> dO, std::span<const float> lse, std::span<float> dQ,
                           std::span<float> dK, std::span<float> dV) {
  check_shape(shape);
  check_tiling(tiling);
  for (const auto& [name, size] : {NamedSize{"Q", Q.size()}, {"O", O.size()}, {"dO", dO.size()}, {"dQ", dQ.size()}})
    require_size(name, size, q_size(shape));
  for (const auto& [name, size] : {NamedSize{"K", K.size()}, {"V", V.size()}, {"dK", dK.size()}, {"dV", dV.size()}})
    require_size(name, size, kv_size(shape));
  require_size("lse", lse.size(), lse_size(shape));
}

}  // namespace nanolm
