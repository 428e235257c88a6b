// FlashAttention forward, a tile of scores at a time (notes/05_tiled_attention.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/tiled_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

void tile_scores(const TileSize& size, float scale, std::span<const float> Q, std::span<const float> K,
                 std::span<float> S) {
  check_tile_scores(size, Q, K, S);
  for (std::int64_t i = 0; i < size.rows_q; ++i)
    for (std::int64_t j = 0; j < size.rows_k; ++j) {
      const float* q = Q.data() + i * size.head_dim;
      const float* k = K.data() + j * size.head_dim;
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t h = 0; h < size.head_dim; ++h) dot += q[h] * k[h];
      S.data()[i * size.rows_k + j] = scale * dot;
    }
}

void update_tile(const TileSize& size, std::span<const float> S, std::span<const float> V, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O) {
  check_update_tile(size, S, V, row_max, row_sum, O);
  for (std::int64_t i = 0; i < size.rows_q; ++i) {
    const float* s = S.data() + i * size.rows_k;
    float* o = O.data() + i * size.head_dim;
    float& m = row_max.data()[i];
    float& d = row_sum.data()[i];
    float new_max = m;
    for (std::int64_t j = 0; j < size.rows_k; ++j) new_max = std::max(new_max, s[j]);
    const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
    const float rescale = std::exp(m - shift);
    m = new_max;
    d *= rescale;
    for (std::int64_t h = 0; h < size.head_dim; ++h) o[h] *= rescale;
    for (std::int64_t j = 0; j < size.rows_k; ++j) {
      if (s[j] == kMinusInf) continue;  // a masked value row may hold NaN
      const float p = std::exp(s[j] - shift);
      d += p;
      for (std::int64_t h = 0; h < size.head_dim; ++h) o[h] += p * V.data()[j * size.head_dim + h];
    }
  }
}

void finish_tile(const TileSize& size, std::span<const float> row_max, std::span<const float> row_sum,
                 std::span<float> O, std::span<float> lse) {
  check_finish_tile(size, row_max, row_sum, O, lse);
  for (std::size_t i = 0; i < static_cast<std::size_t>(size.rows_q); ++i) {
    const bool empty = row_sum[i] == 0.0f;
    float* o = O.data() + static_cast<std::int64_t>(i) * size.head_dim;
    for (std::int64_t h = 0; h < size.head_dim; ++h) o[h] = empty ? 0.0f : o[h] / row_sum[i];
    lse[i] = row_max[i] + std::log(row_sum[i]);  // empty: -inf + ln 0 = -inf
  }
}

void mask_tile(const AttentionShape& shape, const TileSize& size, std::int64_t first_q, std::int64_t first_k,
               std::span<float> S) {
  check_mask_tile(shape, size, S);
  if (!shape.causal) return;
  for (std::int64_t i = 0; i < size.rows_q; ++i)
    for (std::int64_t j = 0; j < size.rows_k; ++j)
      if (first_k + j > first_q + i + shape.seqlen_k - shape.seqlen_q) S.data()[i * size.rows_k + j] = kMinusInf;
}

std::int64_t visible_k_blocks(const AttentionShape& shape, const Tiling& tiling, std::int64_t q_block) {
  check_visible_k_blocks(shape, tiling, q_block);
  // The block's last row sees the most keys: the first `keys` of them.
  const std::int64_t last_q = std::min((q_block + 1) * tiling.block_q, shape.seqlen_q) - 1;
  std::int64_t keys = shape.seqlen_k;
  if (shape.causal) keys = std::max<std::int64_t>(last_q + shape.seqlen_k - shape.seqlen_q + 1, 0);
  return block_count(keys, tiling.block_k);
}

void tiled_attention(const AttentionShape& shape, const Tiling& tiling, TileLoader& loader) {
  TileLoader::Sram& sram = loader.sram();
  std::vector<float> lse(sram.row_max.size());
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch)
    for (std::int64_t q_head = 0; q_head < shape.q_heads; ++q_head)
      for (std::int64_t q_block = 0; q_block < loader.q_blocks(); ++q_block) {
        TileSize size{loader.load_Q(batch, q_head, q_block), 0, shape.head_dim};
        for (std::int64_t k_block = 0; k_block < visible_k_blocks(shape, tiling, q_block); ++k_block) {
          size.rows_k = loader.load_K(batch, q_head / group, k_block);
          loader.load_V(batch, q_head / group, k_block);
          tile_scores(size, shape.scale, sram.Q, sram.K, sram.S);
          mask_tile(shape, size, q_block * tiling.block_q, k_block * tiling.block_k, sram.S);
          update_tile(size, sram.S, sram.V, sram.row_max, sram.row_sum, sram.O);
        }
        finish_tile(size, sram.row_max, sram.row_sum, sram.O, lse);
        loader.store_O();
        loader.store_lse(lse);
      }
}

double ideal_traffic(double seqlen, double head_dim) {
  check_traffic({seqlen, head_dim});
  return 4 * seqlen * head_dim;
}

double flash1_traffic(double seqlen, double head_dim, double sram_elements) {
  check_traffic({seqlen, head_dim, sram_elements});
  const double block_k = sram_elements / (4 * head_dim);
  return 2 * seqlen * head_dim + seqlen / block_k * 3 * seqlen * head_dim;
}

double flash2_traffic(double seqlen, double head_dim, double block_q) {
  check_traffic({seqlen, head_dim, block_q});
  return 2 * seqlen * head_dim * (1 + std::ceil(seqlen / block_q));
}

bool flash1_wins(double head_dim, double sram_elements) {
  check_traffic({head_dim, sram_elements});
  return 3 * head_dim * head_dim < sram_elements;  // 12 S^2 H^2 / M < 4 S^2
}

}  // namespace nanolm
