// Attention at the speed of the machine: packed panels, micro-kernels in registers, threads
// (notes/10_fast_attention.md).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "nanolm/fast_attention.h"
#include "nanolm/fast_blocks.h"
#include "nanolm/threads.h"
#include "nanolm/tiles.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

void pack_keys(std::int64_t keys, std::int64_t head_dim, std::span<const float> K, std::span<float> panels) {
  check_pack(keys, head_dim, K, panels, padded(keys) * head_dim);
  // TODO: copy K so that a key is a column of its panel, and zeros behind the last key. About 4 lines.
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
// Row r of the tile is the sum over i of A[r * row + i * step] * B[i], i from 0 to steps - 1.
NANOLM_INLINE Tile multiply(std::int64_t steps, const float* A, std::int64_t row, std::int64_t step, const Columns& B) {
  // TODO: for each i load the two vectors of B's row and add them, scaled, to six rows. About 15 lines.
  todo();
  // end
}
}  // namespace

void score_tile(const ScoreTile& tile, std::span<const float> Q, std::span<const float> panels, std::span<float> S) {
  check_score_tile(tile, Q, panels, S);
  // TODO: sum a tile for every 2 * kLanes columns that some row sees, and hide the rest. About 16 lines.
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
  // TODO: sum what all six rows see, then the triangle, and add the sums to O. About 15 lines.
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

void score_gradients(std::int64_t rows, std::int64_t keys, std::span<const float> shift, std::span<const float> delta,
                     std::span<float> S, std::span<float> dP) {
  check_score_gradients(rows, keys, shift, delta, S, dP);
  // TODO: turn every score into p and, beside it, dP into dS; shift and delta are the row's. About 6 lines.
  todo();
  // end
}

namespace {
// C [rows, padded(head_dim)] += A B: row r of A takes steps first(r) to last(r) - 1, which lie `step` apart; rows of A
// lie `row` apart. B is packed in panels of panel_rows rows, of which the first step is row `begin`.
struct Product {
  std::int64_t rows, row, step, panel_rows, begin, head_dim;
};
template <class Steps>
void add_product(const Product& p, const float* A, const float* panels, float* C, const Steps& steps) {
  const std::int64_t C_row = padded(p.head_dim);
  for (std::int64_t column = 0; column < p.head_dim; column += 2 * kLanes)
    for (std::int64_t r = 0; r < p.rows; r += kTileRows) {
      const auto [first, last] = steps(r);
      const Columns B = Columns(panels, p.panel_rows, column).from(p.begin + first);
      add_tile(multiply(last - first, A + r * p.row + first * p.step, p.row, p.step, B), C + r * C_row + column, C_row);
    }
}

constexpr std::int64_t kBackwardKeys = 192;  // a multiple of kTileColumns and of kTileRows, at most kBlockK

struct BackwardScratch {
  float *K_keys, *V_keys, *K_columns, *Q_columns, *dO_columns;  // packed
  float *Q, *dO, *P, *dS, *dQ;                                  // of a block of queries
  float *dK, *dV;                                               // of a kv head
  float shift[kBlockQ], delta[kBlockQ];                         // of a row: lse in base 2, and sum of O dO
};

// P and dS of a block: its first row sees `visible` of the keys, with the mask each further row one more.
void gradients_of_scores(std::int64_t dim, std::int64_t rows, std::int64_t keys, std::int64_t visible, bool causal,
                         std::int64_t first_k, const BackwardScratch& t) {
  const auto from = [](auto* data, std::int64_t size) { return std::span(data, static_cast<std::size_t>(size)); };
  for (std::int64_t c = 0; c < keys; c += kTileColumns)
    for (std::int64_t r = 0; r < rows; r += kTileRows) {
      const std::int64_t place = r * kBlockK + c, seen = visible + (causal ? r : 0) - c;
      const auto P = from(t.P + place, kTileRows * kBlockK), dP = from(t.dS + place, kTileRows * kBlockK);
      for (std::int64_t i = 0; i < kTileRows && seen + kTileRows <= kTileColumns; ++i) {  // what score_tile may leave
        std::fill_n(P.data() + i * kBlockK, kTileColumns, kMinusInf);
        std::fill_n(dP.data() + i * kBlockK, kTileColumns, 0.0f);
      }
      if (seen + kTileRows <= 1) continue;
      const std::int64_t panel = (first_k + c) * dim;
      score_tile({dim, seen, causal}, from(t.Q + r * dim, kTileRows * dim), from(t.K_keys + panel, kTileColumns * dim),
                 P);
      score_tile({dim, kTileColumns, false}, from(t.dO + r * dim, kTileRows * dim),
                 from(t.V_keys + panel, kTileColumns * dim), dP);
    }
  score_gradients(rows, keys, from(t.shift, rows), from(t.delta, rows), from(t.P, rows * kBlockK),
                  from(t.dS, rows * kBlockK));
}

// A block of queries of one head against all keys: adds to dK and dV of the kv head, and writes dQ.
void backward_block(const AttentionShape& s, std::int64_t rows, std::int64_t first_q, const BackwardScratch& t) {
  const std::int64_t dim = s.head_dim, O_row = padded(dim);
  std::fill_n(t.dQ, kBlockQ * O_row, 0.0f);
  for (std::int64_t k = 0; k < s.seqlen_k; k += kBackwardKeys) {
    const std::int64_t keys = std::min(kBackwardKeys, s.seqlen_k - k);
    const std::int64_t visible = s.causal ? first_q + s.seqlen_k - s.seqlen_q + 1 - k : keys;
    if (visible + (s.causal ? rows - 1 : 0) <= 0) break;
    gradients_of_scores(dim, round_up(rows, kTileRows), keys, visible, s.causal, k, t);
    // Of dK and dV a tile holds 6 keys: without the mask all rows see them, with it rows from `key - visible + 1` on.
    const auto rows_that_see = [&](std::int64_t key) {
      return std::pair(s.causal ? std::clamp<std::int64_t>(key - visible + 1, 0, rows) : 0, rows);
    };
    const auto keys_seen = [&](std::int64_t row) {
      const std::int64_t seen = visible + (s.causal ? row + kTileRows - 1 : 0);
      return std::pair(std::int64_t{0}, std::clamp<std::int64_t>(seen, 0, keys));
    };
    add_product({keys, 1, kBlockK, s.seqlen_q, first_q, dim}, t.P, t.dO_columns, t.dV + k * O_row, rows_that_see);
    add_product({keys, 1, kBlockK, s.seqlen_q, first_q, dim}, t.dS, t.Q_columns, t.dK + k * O_row, rows_that_see);
    add_product({rows, kBlockK, 1, s.seqlen_k, k, dim}, t.dS, t.K_columns, t.dQ, keys_seen);
  }
}
}  // namespace

void fast_backward(const AttentionShape& shape, int threads, std::span<const float> Q, std::span<const float> K,
                   std::span<const float> V, std::span<const float> O, std::span<const float> dO,
                   std::span<const float> lse, std::span<float> dQ, std::span<float> dK, std::span<float> dV) {
  check_fast_backward(shape, threads, Q, K, V, O, dO, lse, dQ, dK, dV);
  const std::int64_t dim = shape.head_dim, O_row = padded(dim), kv_heads = shape.batch * shape.kv_heads;
  const std::int64_t sq = shape.seqlen_q, sk = shape.seqlen_k, group = shape.q_heads / shape.kv_heads;
  const std::int64_t workers = std::clamp<std::int64_t>(kv_heads, 1, threads);
  const std::int64_t key_rows = round_up(sk, kBackwardKeys);
  Scratch scratch(workers * (2 * padded(sk) * round_up(dim, kPanel) + (sk + 2 * sq) * O_row + 2 * key_rows * O_row +
                             kBlockQ * (2 * round_up(dim, kPanel) + 2 * kBlockK + O_row)));
  std::vector<BackwardScratch> of_thread;
  for (std::int64_t i = 0; i < workers; ++i)
    of_thread.push_back({scratch.take(padded(sk) * dim),
                         scratch.take(padded(sk) * dim),
                         scratch.take(sk * O_row),
                         scratch.take(sq * O_row),
                         scratch.take(sq * O_row),
                         scratch.take(kBlockQ * dim),
                         scratch.take(kBlockQ * dim),
                         scratch.take(kBlockQ * kBlockK),
                         scratch.take(kBlockQ * kBlockK),
                         scratch.take(kBlockQ * O_row),
                         scratch.take(key_rows * O_row),
                         scratch.take(key_rows * O_row),
                         {},
                         {}});
  const auto piece = [](auto* tensor, std::int64_t i, std::int64_t size) {
    return std::span(tensor + i * size, static_cast<std::size_t>(size));
  };
  const float scale = static_cast<float>(static_cast<double>(shape.scale) / kLn2);
  std::atomic<std::int64_t> next{0};
  run_on_threads(static_cast<int>(workers), [&](int thread) {
    BackwardScratch& t = of_thread[static_cast<std::size_t>(thread)];
    for (std::int64_t kv_head = next++; kv_head < kv_heads; kv_head = next++) {
      pack_keys(sk, dim, piece(K.data(), kv_head, sk * dim), piece(t.K_keys, 0, padded(sk) * dim));
      pack_keys(sk, dim, piece(V.data(), kv_head, sk * dim), piece(t.V_keys, 0, padded(sk) * dim));
      pack_values(sk, dim, piece(K.data(), kv_head, sk * dim), piece(t.K_columns, 0, sk * O_row));
      std::fill_n(t.dK, key_rows * O_row, 0.0f);
      std::fill_n(t.dV, key_rows * O_row, 0.0f);
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        pack_values(sq, dim, piece(Q.data(), head, sq * dim), piece(t.Q_columns, 0, sq * O_row));
        pack_values(sq, dim, piece(dO.data(), head, sq * dim), piece(t.dO_columns, 0, sq * O_row));
        for (std::int64_t first_q = 0; first_q < sq; first_q += kBlockQ) {
          const std::int64_t rows = std::min(kBlockQ, sq - first_q), at = (head * sq + first_q) * dim;
          std::fill_n(t.Q, kBlockQ * dim, 0.0f);
          std::fill_n(t.dO, kBlockQ * dim, 0.0f);
          std::copy_n(dO.data() + at, rows * dim, t.dO);
          for (std::int64_t i = 0; i < rows * dim; ++i) t.Q[i] = scale * Q.data()[at + i];
          std::fill_n(t.shift, kBlockQ, -kMinusInf);  // 2^(s - inf) = 0: rows that are not there, and empty ones
          std::fill_n(t.delta, kBlockQ, 0.0f);
          for (std::int64_t r = 0; r < rows; ++r) {
            const float row_lse = lse.data()[head * sq + first_q + r];
            if (row_lse != kMinusInf) t.shift[r] = static_cast<float>(static_cast<double>(row_lse) / kLn2);
            for (std::int64_t h = 0; h < dim; ++h)
              t.delta[r] += O.data()[at + r * dim + h] * dO.data()[at + r * dim + h];
          }
          backward_block(shape, rows, first_q, t);
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t h = 0; h < dim; ++h) dQ.data()[at + r * dim + h] = shape.scale * t.dQ[r * O_row + h];
        }
      }
      for (std::int64_t j = 0; j < sk; ++j)
        for (std::int64_t h = 0; h < dim; ++h) {
          dK.data()[(kv_head * sk + j) * dim + h] = shape.scale * t.dK[j * O_row + h];
          dV.data()[(kv_head * sk + j) * dim + h] = t.dV[j * O_row + h];
        }
    }
  });
}

}  // namespace nanolm
