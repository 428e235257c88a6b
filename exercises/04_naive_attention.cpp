// Naive attention: scores, softmax and weighted values as three passes (notes/04_naive_attention.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/naive_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

double score_matrix_bytes(double batch, double heads, double seqlen, double bytes_per_element) {
  check_counts({batch, heads, seqlen, bytes_per_element});
  // TODO: count the bytes of all score matrices. About 1 line.
  todo();
  // end
}

void attention_scores(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                      std::span<float> scores) {
  check_scores(shape, Q, K, scores);
  // TODO: write scale * Q K^T, and -inf where the mask hides the key. About 17 lines.
  todo();
  // end
}

void softmax_rows(std::span<float> scores, std::int64_t rows, std::int64_t columns) {
  check_rows(scores, rows, columns);
  // TODO: replace each row by its softmax, and a row of -inf by zeros. About 13 lines.
  todo();
  // end
}

void weighted_values(const AttentionShape& shape, std::span<const float> P, std::span<const float> V,
                     std::span<float> O) {
  check_values(shape, P, V, O);
  // TODO: add up the value rows that each query sees, weighted by P. About 15 lines.
  todo();
  // end
}

void naive_attention(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                     std::span<const float> V, std::span<float> O) {
  check_attention(shape, Q, K, V, O);
  // TODO: allocate the score matrix and run the three passes. About 4 lines.
  todo();
  // end
}

}  // namespace nanolm
