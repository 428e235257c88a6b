// Attention at the speed of the machine: packed panels, micro-kernels in registers, threads
// (notes/10_fast_attention.md).
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <limits>

#include "nanolm/fast_attention.h"
#include "nanolm/tiles.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr double kLn2 = 0.69314718055994531;
}  // namespace

void pack_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> K, std::span<float> panels) {
  check_pack(keys, head_dim, K, panels, padded(keys) * head_dim);
  // TODO: copy K so that a key is a column of its panel, 4 x 4 elements at a time. About 13 lines.
  todo();
  // end
}

void pack_values(std::int64_t keys, std::int64_t head_dim, std::span<const float> V, std::span<float> panels) {
  check_pack(keys, head_dim, V, panels, keys * padded(head_dim));
  // TODO: copy V so that each panel holds 16 of its columns, and zeros behind the last one. About 9 lines.
  todo();
  // end
}

namespace {
// tile[r] += sum over i of A[r * row + i * step] * B[i], i from 0 to steps - 1.
NANOLM_INLINE void multiply(std::int64_t steps, const float* A, std::int64_t row, std::int64_t step, const Columns& B,
                            Tile& tile) {
  // TODO: for each i load the two vectors of B's row and add them, scaled, to six rows. About 12 lines.
  todo();
  // end
}
}  // namespace

void score_tile(const ScoreTile& tile, std::span<const float> Q, std::span<const float> panels, std::span<float> S) {
  check_score_tile(tile, Q, panels, S);
  // TODO: sum a tile for every 2 * kLanes columns that some row sees, and hide the rest. About 14 lines.
  todo();
  // end
}

namespace {
NANOLM_INLINE Floats exp2(Floats x) {
  // TODO: split x into a whole number and a rest, and multiply their powers of 2. About 8 lines.
  todo();
  // end
}
}  // namespace

void exp2_all(std::span<const float> x, std::span<float> y) {
  check_exp2(x, y);
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < x.size(); i += kLanes) {
    const std::size_t count = std::min<std::size_t>(kLanes, x.size() - i);
    std::copy_n(x.data() + i, count, lanes);
    exp2(Floats::load(lanes)).store(lanes);
    std::copy_n(lanes, count, y.data() + i);
  }
}

void value_tile(const ValueTile& tile, std::span<const float> P, std::span<const float> panels, std::span<float> O) {
  check_value_tile(tile, P, panels, O);
  const std::int64_t O_row = padded(tile.head_dim);
  // TODO: load the tile of O, add what all six rows see, then the triangle, and store it. About 15 lines.
  todo();
  // end
}

void fold_scores(std::int64_t keys, std::int64_t head_dim, std::span<float> S, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O) {
  check_fold_scores(keys, head_dim, S, row_max, row_sum, O);
  // TODO: find the maximum, rescale when it has moved, turn scores into weights. About 23 lines.
  todo();
  // end
}

namespace {
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

void visit_keys(const AttentionShape& shape, const Head& head, const KeyBlock& keys, std::int64_t tiles,
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

void attend(const AttentionShape& shape, const Head& head, std::int64_t first_q, const BlockScratch& scratch) {
  const std::int64_t dim = shape.head_dim, O_row = padded(dim), rows = std::min(kBlockQ, shape.seqlen_q - first_q);
  const std::int64_t tiles = block_count(rows, kTileRows);
  float row_max[kBlockQ], row_sum[kBlockQ];
  std::fill_n(row_max, kBlockQ, kMinusInf);
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
}  // namespace

void fast_attention(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                    std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_fast_attention(shape, threads, Q, K, V, O, lse);
  const std::int64_t dim = shape.head_dim, kv_heads = shape.batch * shape.kv_heads;
  const std::int64_t heads = shape.batch * shape.q_heads, group = shape.q_heads / shape.kv_heads;
  const std::int64_t K_size = padded(shape.seqlen_k) * dim, V_size = shape.seqlen_k * padded(dim);
  Scratch scratch(kv_heads * (K_size + V_size) + threads * kBlockQ * (round_up(dim, kPanel) + padded(dim) + kBlockK));
  float *K_panels = scratch.take(kv_heads * K_size), *V_panels = scratch.take(kv_heads * V_size);
  std::vector<BlockScratch> of_thread;
  for (int i = 0; i < threads; ++i)
    of_thread.push_back(
        {scratch.take(kBlockQ * dim), scratch.take(kBlockQ * kBlockK), scratch.take(kBlockQ * padded(dim))});
  // Rows before the first that sees a key are empty; the blocks begin behind them.
  const std::int64_t empty =
      shape.causal ? std::clamp<std::int64_t>(shape.seqlen_q - shape.seqlen_k, 0, shape.seqlen_q) : 0;
  const std::int64_t blocks = block_count(shape.seqlen_q - empty, kBlockQ);
  // TODO: on all threads pack what a queue holds, wait for the others, attend to all blocks. About 23 lines.
  todo();
  // end
  for (std::int64_t head = 0; head < heads; ++head) {
    std::fill_n(O.data() + head * shape.seqlen_q * dim, empty * dim, 0.0f);
    std::fill_n(lse.data() + head * shape.seqlen_q, empty, kMinusInf);
  }
}

namespace {
// What a row knows after some of its keys: O [padded(head_dim)], then the maximum and the sum of its weights.
std::span<float> state(float* states, std::int64_t number, std::int64_t head_dim) {
  const std::int64_t size = padded(head_dim) + kPanel;
  return {states + number * size, static_cast<std::size_t>(size)};
}
}  // namespace

void decode_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> q, std::span<const float> K,
                 std::span<const float> V, std::span<float> O, std::span<float> row_max, std::span<float> row_sum) {
  check_decode_keys(keys, head_dim, q, K, V, O, row_max, row_sum);
  // TODO: take the products of q and the keys, fold them as in step 5, and add the values. About 24 lines.
  todo();
  // end
}

void fast_decode(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                 std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_fast_attention(shape, threads, Q, K, V, O, lse);
  const std::int64_t dim = shape.head_dim, rows = shape.q_heads / shape.kv_heads * shape.seqlen_q;  // of a kv head
  const std::int64_t parts = block_count(shape.seqlen_k, kPartKeys), all_rows = lse_size(shape);
  const float scale = static_cast<float>(static_cast<double>(shape.scale) / kLn2);
  Scratch scratch(parts * all_rows * (padded(dim) + kPanel) + all_rows * dim + kPanel);
  float *states = scratch.take(parts * all_rows * (padded(dim) + kPanel)), *scaled = scratch.take(all_rows * dim);
  for (std::int64_t i = 0; i < all_rows * dim; ++i) scaled[i] = scale * Q.data()[i];
  const auto from = [](auto* data, std::int64_t first, std::int64_t size) {
    return std::span(data + first, static_cast<std::size_t>(size));
  };
  // The parts of a kv head, for all rows that read it: its keys come from memory once.
  std::atomic<std::int64_t> next{0};
  run_on_threads(threads, [&](int) {
    for (std::int64_t i = next++; i < shape.batch * shape.kv_heads * parts; i = next++) {
      const std::int64_t kv_head = i / parts, part = i % parts;
      const std::int64_t last = std::min((part + 1) * kPartKeys, shape.seqlen_k);
      for (std::int64_t row = kv_head * rows; row < (kv_head + 1) * rows; ++row) {
        const std::span<float> s = state(states, part * all_rows + row, dim);
        std::fill(s.begin(), s.end(), 0.0f);
        s[static_cast<std::size_t>(padded(dim))] = kMinusInf;
      }
      for (std::int64_t k = part * kPartKeys; k < last; k += kBlockK)
        for (std::int64_t row = kv_head * rows; row < (kv_head + 1) * rows; ++row) {
          const std::int64_t visible = shape.causal ? row % shape.seqlen_q + shape.seqlen_k - shape.seqlen_q + 1 : last;
          const std::int64_t keys = std::min({k + kBlockK, last, visible}) - k;
          if (keys <= 0) continue;
          const std::int64_t first = (kv_head * shape.seqlen_k + k) * dim;
          const std::span<float> s = state(states, part * all_rows + row, dim);
          const auto max = s.subspan(static_cast<std::size_t>(padded(dim)));
          decode_keys(keys, dim, from(scaled, row * dim, dim), from(K.data(), first, keys * dim),
                      from(V.data(), first, keys * dim), s, max, max.subspan(1));
        }
    }
  });
  for (std::int64_t row = 0; row < all_rows; ++row) {
    float max = kMinusInf, sum = 0;
    for (std::int64_t part = 0; part < parts; ++part)
      max = std::max(max, state(states, part * all_rows + row, dim)[static_cast<std::size_t>(padded(dim))]);
    const float shift = max == kMinusInf ? 0.0f : max;
    float* o = O.data() + row * dim;
    std::fill_n(o, dim, 0.0f);
    for (std::int64_t part = 0; part < parts; ++part) {
      const float* s = state(states, part * all_rows + row, dim).data();
      const float weight = std::exp2(s[padded(dim)] - shift);
      sum += weight * s[padded(dim) + 1];
      for (std::int64_t h = 0; h < dim; ++h) o[h] += weight * s[h];
    }
    lse.data()[row] = static_cast<float>(kLn2 * shift + std::log(static_cast<double>(sum)));
    const float divisor = sum == 0 ? 1.0f : sum;
    for (std::int64_t h = 0; h < dim; ++h) o[h] /= divisor;
  }
}

}  // namespace nanolm
