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
  return batch * heads * seqlen * seqlen * bytes_per_element;
}

void attention_scores(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                      std::span<float> scores) {
  check_scores(shape, Q, K, scores);
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  for (std::int64_t head = 0; head < shape.batch * shape.q_heads; ++head) {
    // batch * kv_heads + q_head / group, since head = batch * q_heads + q_head and q_heads = kv_heads * group.
    const float* K_head = K.data() + head / group * shape.seqlen_k * shape.head_dim;
    for (std::int64_t i = 0; i < shape.seqlen_q; ++i) {
      const float* q = Q.data() + (head * shape.seqlen_q + i) * shape.head_dim;
      float* row = scores.data() + (head * shape.seqlen_q + i) * shape.seqlen_k;
      for (std::int64_t j = 0; j < shape.seqlen_k; ++j) {
        const float* k = K_head + j * shape.head_dim;
        float dot = 0;
#pragma omp simd reduction(+ : dot)
        for (std::int64_t h = 0; h < shape.head_dim; ++h) dot += q[h] * k[h];
        const bool masked = shape.causal && j > i + shape.seqlen_k - shape.seqlen_q;
        row[j] = masked ? kMinusInf : shape.scale * dot;
      }
    }
  }
}

void softmax_rows(std::span<float> scores, std::int64_t rows, std::int64_t columns) {
  check_rows(scores, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = scores.data() + i * columns;
    float max = kMinusInf;
    for (std::int64_t j = 0; j < columns; ++j) max = std::max(max, row[j]);
    const float shift = max == kMinusInf ? 0.0f : max;  // -inf - (-inf) is NaN
    float sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      row[j] = std::exp(row[j] - shift);
      sum += row[j];
    }
    if (sum == 0) continue;  // a row of -inf is zeros by now
    for (std::int64_t j = 0; j < columns; ++j) row[j] /= sum;
  }
}

void weighted_values(const AttentionShape& shape, std::span<const float> P, std::span<const float> V,
                     std::span<float> O) {
  check_values(shape, P, V, O);
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  std::fill(O.begin(), O.end(), 0.0f);
  for (std::int64_t head = 0; head < shape.batch * shape.q_heads; ++head) {
    const float* V_head = V.data() + head / group * shape.seqlen_k * shape.head_dim;
    for (std::int64_t i = 0; i < shape.seqlen_q; ++i) {
      const float* p = P.data() + (head * shape.seqlen_q + i) * shape.seqlen_k;
      float* o = O.data() + (head * shape.seqlen_q + i) * shape.head_dim;
      const std::int64_t last = shape.causal ? i + shape.seqlen_k - shape.seqlen_q : shape.seqlen_k - 1;
      for (std::int64_t j = 0; j <= last; ++j) {
        const float weight = p[j];  // a copy: o might overlap p for all the compiler knows, and p[j] be read each time
        const float* v = V_head + j * shape.head_dim;
        for (std::int64_t h = 0; h < shape.head_dim; ++h) o[h] += weight * v[h];
      }
    }
  }
}

void naive_attention(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                     std::span<const float> V, std::span<float> O) {
  check_attention(shape, Q, K, V, O);
  std::vector<float> scores(static_cast<std::size_t>(scores_size(shape)));
  attention_scores(shape, Q, K, scores);
  softmax_rows(scores, shape.batch * shape.q_heads * shape.seqlen_q, shape.seqlen_k);
  weighted_values(shape, scores, V, O);
}

}  // namespace nanolm
