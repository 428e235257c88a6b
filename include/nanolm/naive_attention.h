// Lesson 04: attention with the whole score matrix in memory, as three passes.
//
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h.
//   scores, P  [batch, q_heads, seqlen_q, seqlen_k], row-major
// Accumulator: float. Error bound of O, relative to max|V|, with s the largest scale * sum_h |Q K|:
//   2^-23 * ((4 + sqrt(head_dim)) s + 2 sqrt(seqlen_k) + 8)
// Throws std::invalid_argument for bad shapes and for spans of the wrong size; nothing is written then.
// Source: Vaswani et al. 2017, equation 1; Dao et al. 2022, algorithm 0.
#pragma once

#include <span>

#include "nanolm/attention_shape.h"

namespace nanolm {

// Bytes of the score matrix: batch * heads * seqlen^2 * bytes_per_element. 1 GiB for 1, 32, 4096 and 2 (fp16).
double score_matrix_bytes(double batch, double heads, double seqlen, double bytes_per_element);

// scores = scale * Q K^T; -inf where the mask hides the key.
void attention_scores(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                      std::span<float> scores);

// Softmax of each of the rows of a [rows, columns] matrix, in place. A row of -inf alone becomes zeros.
void softmax_rows(std::span<float> scores, std::int64_t rows, std::int64_t columns);

// O = P V. A masked key's value row is not read: 0 * NaN would be NaN.
void weighted_values(const AttentionShape& shape, std::span<const float> P, std::span<const float> V,
                     std::span<float> O);

// The three in a row. Its only memory is one score matrix, scores_size(shape) floats.
void naive_attention(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                     std::span<const float> V, std::span<float> O);

// Given: the checks that each function above begins with.
inline void check_scores(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                         std::span<float> scores) {
  check_shape(shape);
  require_size("Q", Q.size(), q_size(shape));
  require_size("K", K.size(), kv_size(shape));
  require_size("scores", scores.size(), scores_size(shape));
}
inline void check_rows(std::span<float> scores, std::int64_t rows, std::int64_t columns) {
  require_size("scores", scores.size(), checked_product("scores", {rows, columns}));
}
inline void check_values(const AttentionShape& shape, std::span<const float> P, std::span<const float> V,
                         std::span<float> O) {
  check_shape(shape);
  require_size("P", P.size(), scores_size(shape));
  require_size("V", V.size(), kv_size(shape));
  require_size("O", O.size(), q_size(shape));
}
inline void check_attention(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                            std::span<const float> V, std::span<float> O) {
  check_shape(shape);
  require_size("Q", Q.size(), q_size(shape));
  require_size("K", K.size(), kv_size(shape));
  require_size("V", V.size(), kv_size(shape));
  require_size("O", O.size(), q_size(shape));
  scores_size(shape);  // refuses an S x S that does not fit 64 bits
}

}  // namespace nanolm
