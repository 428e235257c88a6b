// Attention backward: probabilities are recomputed from lse, a tile at a time (notes/06_attention_backward.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/attention_backward.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t h = 0; h < n; ++h) sum += a[h] * b[h];
  return sum;
}

// to += factor * from
void add_scaled(float* to, float factor, const float* from, std::int64_t n) {
  for (std::int64_t h = 0; h < n; ++h) to[h] += factor * from[h];
}
}  // namespace

void output_delta(const AttentionShape& shape, std::span<const float> O, std::span<const float> dO,
                  std::span<float> delta) {
  check_delta(shape, O, dO, delta);
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t row = 0; row < lse_size(shape); ++row)
    delta.data()[row] = dot(O.data() + row * dim, dO.data() + row * dim, dim);
}

void tile_probabilities(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> Q,
                        std::span<const float> K, std::span<const float> lse, std::span<float> P) {
  check_backward_tile(shape, tile, {{"Q", Q.size()}}, {{"K", K.size()}}, {{"P", P.size()}}, {{"lse", lse.size()}});
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t i = 0; i < tile.rows_q; ++i) {
    const float row_lse = lse.data()[i];
    const std::int64_t last_key = tile.first_q + i + shape.seqlen_k - shape.seqlen_q;
    for (std::int64_t j = 0; j < tile.rows_k; ++j) {
      float& p = P.data()[i * tile.rows_k + j];
      p = 0;
      if (shape.causal && tile.first_k + j > last_key) continue;
      if (row_lse == kMinusInf) continue;  // exp(s - lse) would be inf, or NaN when s is -inf too
      const float score = shape.scale * dot(Q.data() + i * dim, K.data() + j * dim, dim);
      p = std::exp(score - row_lse);
    }
  }
}

void add_tile_dV(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P,
                 std::span<const float> dO, std::span<float> dV) {
  check_backward_tile(shape, tile, {{"dO", dO.size()}}, {{"dV", dV.size()}}, {{"P", P.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t i = 0; i < tile.rows_q; ++i)
    for (std::int64_t j = 0; j < tile.rows_k; ++j) {
      const float p = P.data()[i * tile.rows_k + j];
      if (p != 0) add_scaled(dV.data() + j * dim, p, dO.data() + i * dim, dim);
    }
}

void tile_dS(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P, std::span<const float> dO,
             std::span<const float> V, std::span<const float> delta, std::span<float> dS) {
  check_backward_tile(shape, tile, {{"dO", dO.size()}}, {{"V", V.size()}}, {{"P", P.size()}, {"dS", dS.size()}},
                      {{"delta", delta.size()}});
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t i = 0; i < tile.rows_q; ++i)
    for (std::int64_t j = 0; j < tile.rows_k; ++j) {
      const float p = P.data()[i * tile.rows_k + j];
      float& ds = dS.data()[i * tile.rows_k + j];
      ds = 0;
      if (p != 0) ds = p * (dot(dO.data() + i * dim, V.data() + j * dim, dim) - delta.data()[i]);
    }
}

void add_tile_dQ(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> K, std::span<float> dQ) {
  check_backward_tile(shape, tile, {{"dQ", dQ.size()}}, {{"K", K.size()}}, {{"dS", dS.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t i = 0; i < tile.rows_q; ++i)
    for (std::int64_t j = 0; j < tile.rows_k; ++j) {
      const float ds = dS.data()[i * tile.rows_k + j];
      if (ds != 0) add_scaled(dQ.data() + i * dim, shape.scale * ds, K.data() + j * dim, dim);
    }
}

void add_tile_dK(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> Q, std::span<float> dK) {
  check_backward_tile(shape, tile, {{"Q", Q.size()}}, {{"dK", dK.size()}}, {{"dS", dS.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  for (std::int64_t i = 0; i < tile.rows_q; ++i)
    for (std::int64_t j = 0; j < tile.rows_k; ++j) {
      const float ds = dS.data()[i * tile.rows_k + j];
      if (ds != 0) add_scaled(dK.data() + j * dim, shape.scale * ds, Q.data() + i * dim, dim);
    }
}

void attention_backward(const AttentionShape& shape, const Tiling& tiling, std::span<const float> Q,
                        std::span<const float> K, std::span<const float> V, std::span<const float> O,
                        std::span<const float> dO, std::span<const float> lse, std::span<float> dQ, std::span<float> dK,
                        std::span<float> dV) {
  check_backward(shape, tiling, Q, K, V, O, dO, lse, dQ, dK, dV);
  const std::int64_t group = shape.q_heads / shape.kv_heads, dim = shape.head_dim;
  const std::int64_t block_q = std::min(tiling.block_q, shape.seqlen_q);
  const std::int64_t block_k = std::min(tiling.block_k, shape.seqlen_k);
  std::vector<float> delta(static_cast<std::size_t>(lse_size(shape)));
  std::vector<float> P(static_cast<std::size_t>(block_q * block_k)), dS(P.size());
  // Rows first to first + rows - 1 of a tensor that has `columns` elements a row.
  const auto rows_of = [](auto tensor, std::int64_t first, std::int64_t rows, std::int64_t columns) {
    return tensor.subspan(static_cast<std::size_t>(first * columns), static_cast<std::size_t>(rows * columns));
  };
  for (const auto gradient : {dQ, dK, dV}) std::fill(gradient.begin(), gradient.end(), 0.0f);
  output_delta(shape, O, dO, delta);
  // head = batch * q_heads + q_head, so head / group = batch * kv_heads + kv_head
  for (std::int64_t head = 0; head < shape.batch * shape.q_heads; ++head)
    for (std::int64_t k = 0; k < shape.seqlen_k; k += block_k)
      for (std::int64_t q = 0; q < shape.seqlen_q; q += block_q) {
        const BackwardTile t{q, std::min(block_q, shape.seqlen_q - q), k, std::min(block_k, shape.seqlen_k - k)};
        if (shape.causal && k > q + t.rows_q - 1 + shape.seqlen_k - shape.seqlen_q) continue;  // hidden entirely
        const std::int64_t q_row = head * shape.seqlen_q + q, k_row = head / group * shape.seqlen_k + k;
        const auto Q_tile = rows_of(Q, q_row, t.rows_q, dim), dO_tile = rows_of(dO, q_row, t.rows_q, dim);
        const auto K_tile = rows_of(K, k_row, t.rows_k, dim), V_tile = rows_of(V, k_row, t.rows_k, dim);
        const std::span P_tile(P.data(), static_cast<std::size_t>(t.rows_q * t.rows_k));
        const std::span dS_tile(dS.data(), P_tile.size());
        tile_probabilities(shape, t, Q_tile, K_tile, rows_of(lse, q_row, t.rows_q, 1), P_tile);
        add_tile_dV(shape, t, P_tile, dO_tile, rows_of(dV, k_row, t.rows_k, dim));
        tile_dS(shape, t, P_tile, dO_tile, V_tile, rows_of(std::span<const float>(delta), q_row, t.rows_q, 1), dS_tile);
        add_tile_dQ(shape, t, dS_tile, K_tile, rows_of(dQ, q_row, t.rows_q, dim));
        add_tile_dK(shape, t, dS_tile, Q_tile, rows_of(dK, k_row, t.rows_k, dim));
      }
}

}  // namespace nanolm
