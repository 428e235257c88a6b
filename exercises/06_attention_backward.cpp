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
  // TODO: take the inner product of each row of O with its row of dO. About 2 lines.
  todo();
  // end
}

void tile_probabilities(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> Q,
                        std::span<const float> K, std::span<const float> lse, std::span<float> P) {
  check_backward_tile(shape, tile, {{"Q", Q.size()}}, {{"K", K.size()}}, {{"P", P.size()}}, {{"lse", lse.size()}});
  const std::int64_t dim = shape.head_dim;
  // TODO: recompute the probabilities; the mask and lse = -inf select 0. About 12 lines.
  todo();
  // end
}

void add_tile_dV(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P,
                 std::span<const float> dO, std::span<float> dV) {
  check_backward_tile(shape, tile, {{"dO", dO.size()}}, {{"dV", dV.size()}}, {{"P", P.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  // TODO: add P^T dO to dV; a pair with P = 0 is not read. About 5 lines.
  todo();
  // end
}

void tile_dS(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> P, std::span<const float> dO,
             std::span<const float> V, std::span<const float> delta, std::span<float> dS) {
  check_backward_tile(shape, tile, {{"dO", dO.size()}}, {{"V", V.size()}}, {{"P", P.size()}, {"dS", dS.size()}},
                      {{"delta", delta.size()}});
  const std::int64_t dim = shape.head_dim;
  // TODO: compute dP = dO V^T and from it dS; 0 where P = 0. About 7 lines.
  todo();
  // end
}

void add_tile_dQ(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> K, std::span<float> dQ) {
  check_backward_tile(shape, tile, {{"dQ", dQ.size()}}, {{"K", K.size()}}, {{"dS", dS.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  // TODO: add scale dS K to dQ; a pair with dS = 0 is not read. About 5 lines.
  todo();
  // end
}

void add_tile_dK(const AttentionShape& shape, const BackwardTile& tile, std::span<const float> dS,
                 std::span<const float> Q, std::span<float> dK) {
  check_backward_tile(shape, tile, {{"Q", Q.size()}}, {{"dK", dK.size()}}, {{"dS", dS.size()}}, {});
  const std::int64_t dim = shape.head_dim;
  // TODO: add scale dS^T Q to dK; a pair with dS = 0 is not read. About 5 lines.
  todo();
  // end
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
  // TODO: zero the gradients, compute delta, then take each tile of each head through steps 2 to 6. About 19 lines.
  todo();
  // end
}

}  // namespace nanolm
