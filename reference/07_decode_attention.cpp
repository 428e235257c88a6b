// Decode attention: the cache is split into parts, their results are merged by lse (notes/07_decode_attention.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/decode_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

KeyRange part_keys(std::int64_t seqlen_k, std::int64_t num_splits, std::int64_t part) {
  check_part_keys(seqlen_k, num_splits, part);
  const std::int64_t size = seqlen_k / num_splits, longer = seqlen_k % num_splits;
  const std::int64_t first = part * size + std::min(part, longer);
  return {first, first + size + (part < longer ? 1 : 0)};
}

void attention_part(const AttentionShape& shape, const KeyRange& keys, std::span<const float> Q,
                    std::span<const float> K, std::span<const float> V, std::span<float> O_part,
                    std::span<float> lse_part) {
  check_part(shape, keys, Q, K, V, O_part, lse_part);
  const std::int64_t group = shape.q_heads / shape.kv_heads, dim = shape.head_dim;
  std::vector<float> scores(static_cast<std::size_t>(keys.last - keys.first));
  for (std::int64_t row = 0; row < lse_size(shape); ++row) {
    // row = (batch * q_heads + q_head) * seqlen_q + i, and (batch * q_heads + q_head) / group is the kv head's number.
    const std::int64_t head = row / shape.seqlen_q, i = row % shape.seqlen_q;
    const float* q = Q.data() + row * dim;
    const float* K_head = K.data() + head / group * shape.seqlen_k * dim;
    const float* V_head = V.data() + head / group * shape.seqlen_k * dim;
    float* o = O_part.data() + row * dim;
    float& lse = lse_part.data()[row];
    const std::int64_t end = shape.causal ? std::min(keys.last, i + shape.seqlen_k - shape.seqlen_q + 1) : keys.last;
    float max = kMinusInf, sum = 0;
    for (std::int64_t j = keys.first; j < end; ++j) {
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t h = 0; h < dim; ++h) dot += q[h] * K_head[j * dim + h];
      scores.data()[j - keys.first] = shape.scale * dot;
      max = std::max(max, shape.scale * dot);
    }
    const float shift = max == kMinusInf ? 0.0f : max;  // -inf - (-inf) is NaN
    std::fill_n(o, dim, 0.0f);
    for (std::int64_t j = keys.first; j < end; ++j) {
      const float p = std::exp(scores.data()[j - keys.first] - shift);
      sum += p;
      for (std::int64_t h = 0; h < dim; ++h) o[h] += p * V_head[j * dim + h];
    }
    lse = shift + std::log(sum);  // empty: ln 0 = -inf
    if (sum == 0) continue;
    for (std::int64_t h = 0; h < dim; ++h) o[h] /= sum;
  }
}

void merge_partials(std::int64_t num_splits, std::int64_t rows, std::int64_t head_dim, std::span<const float> O_parts,
                    std::span<const float> lse_parts, std::span<float> O, std::span<float> lse) {
  check_merge_partials(num_splits, rows, head_dim, O_parts, lse_parts, O, lse);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* o = O.data() + row * head_dim;
    float max = kMinusInf, sum = 0;
    for (std::int64_t p = 0; p < num_splits; ++p) max = std::max(max, lse_parts.data()[p * rows + row]);
    const float shift = max == kMinusInf ? 0.0f : max;
    std::fill_n(o, head_dim, 0.0f);
    for (std::int64_t p = 0; p < num_splits; ++p) {
      const float part_lse = lse_parts.data()[p * rows + row];
      if (part_lse == kMinusInf) continue;
      const float weight = std::exp(part_lse - shift);
      sum += weight;
      for (std::int64_t h = 0; h < head_dim; ++h) o[h] += weight * O_parts.data()[(p * rows + row) * head_dim + h];
    }
    lse.data()[row] = shift + std::log(sum);
    if (sum == 0) continue;
    for (std::int64_t h = 0; h < head_dim; ++h) o[h] /= sum;
  }
}

void decode_attention(const AttentionShape& shape, std::int64_t num_splits, std::span<const float> Q,
                      std::span<const float> K, std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_decode(shape, num_splits, Q, K, V, O, lse);
  const std::int64_t rows = lse_size(shape);
  std::vector<float> O_parts(static_cast<std::size_t>(num_splits) * O.size());
  std::vector<float> lse_parts(static_cast<std::size_t>(num_splits) * lse.size());
  for (std::int64_t part = 0; part < num_splits; ++part) {
    const std::size_t p = static_cast<std::size_t>(part);
    attention_part(shape, part_keys(shape.seqlen_k, num_splits, part), Q, K, V,
                   std::span(O_parts).subspan(p * O.size(), O.size()),
                   std::span(lse_parts).subspan(p * lse.size(), lse.size()));
  }
  merge_partials(num_splits, rows, shape.head_dim, O_parts, lse_parts, O, lse);
}

double decode_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element) {
  check_intensity(q_heads, kv_heads, {seqlen_k, bytes_per_element});
  return 2 / bytes_per_element * q_heads * seqlen_k / (kv_heads * seqlen_k + q_heads);
}

double quantized_cache_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element,
                                 double kv_bytes_per_element) {
  check_intensity(q_heads, kv_heads, {seqlen_k, bytes_per_element, kv_bytes_per_element});
  return 2 * q_heads * seqlen_k / (kv_bytes_per_element * kv_heads * seqlen_k + bytes_per_element * q_heads);
}

double decode_intensity_limit(double q_heads, double kv_heads, double bytes_per_element) {
  check_intensity(q_heads, kv_heads, {bytes_per_element});
  return 2 * q_heads / (bytes_per_element * kv_heads);
}

}  // namespace nanolm
