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
  for (std::int64_t j = 0; j < padded(keys); ++j)
    for (std::int64_t h = 0; h < head_dim; ++h)
      panels.data()[j / kPanel * kPanel * head_dim + h * kPanel + j % kPanel] =
          j < keys ? K.data()[j * head_dim + h] : 0.0f;
}

void pack_values(std::int64_t keys, std::int64_t head_dim, std::span<const float> V, std::span<float> panels) {
  check_pack(keys, head_dim, V, panels, keys * padded(head_dim));
  float* panel = panels.data();
  for (std::int64_t first = 0; first < padded(head_dim); first += kPanel)
    for (std::int64_t j = 0; j < keys; ++j, panel += kPanel) {
      const float* v = V.data() + j * head_dim + first;
      if (head_dim - first >= kPanel)
        for (std::int64_t c = 0; c < kPanel; c += kLanes) Floats::load(v + c).store(panel + c);
      else
        for (std::int64_t c = 0; c < kPanel; ++c) panel[c] = first + c < head_dim ? v[c] : 0.0f;
    }
}

namespace {
// Row r of the tile is the sum over i of A[r * row + i * step] * B[i], i from 0 to steps - 1.
NANOLM_INLINE Tile multiply(std::int64_t steps, const float* A, std::int64_t row, std::int64_t step, const Columns& B) {
  Tile tile = zero_tile();
  const float* A3 = A + 3 * row;
  NANOLM_UNROLL
  for (std::int64_t i = 0; i < steps; ++i) {
    const Row b = B.row(i);
    add_scaled(tile.r0, A[0], b);
    add_scaled(tile.r1, A[row], b);
    add_scaled(tile.r2, A[2 * row], b);
    add_scaled(tile.r3, A3[0], b);
    add_scaled(tile.r4, A3[row], b);
    add_scaled(tile.r5, A3[2 * row], b);
    A += step;
    A3 += step;
  }
  return tile;
}
}  // namespace

void score_tile(const ScoreTile& tile, std::span<const float> Q, std::span<const float> panels, std::span<float> S) {
  check_score_tile(tile, Q, panels, S);
  const std::int64_t slope = tile.causal ? 1 : 0;
  const std::int64_t last = std::min(kTileColumns, tile.visible + (kTileRows - 1) * slope);
  for (std::int64_t column = 0; column < last; column += 2 * kLanes) {
    const Columns keys(panels.data(), tile.head_dim, column);
    for (std::int64_t h = 0; h < tile.head_dim; h += kSumSteps) {
      const std::int64_t steps = std::min(kSumSteps, tile.head_dim - h);
      const Tile sums = multiply(steps, Q.data() + h, tile.head_dim, 1, keys.from(h));
      h == 0 ? store_tile(sums, S.data() + column, kBlockK) : add_tile(sums, S.data() + column, kBlockK);
    }
    if (tile.visible >= column + 2 * kLanes) continue;
    for (std::int64_t r = 0; r < kTileRows; ++r)
      for (std::int64_t c = column; c < column + 2 * kLanes; c += kLanes) {
        float* s = S.data() + r * kBlockK + c;
        first_lanes(Floats::load(s), tile.visible + r * slope - c).store(s);
      }
  }
}

namespace {
NANOLM_INLINE Floats exp2(Floats x) {
  x = max(Floats(-127.0f), x);
  // Adding 1.5 * 2^23 leaves no bits for a fraction: n = round(x), f = x - n from -1/2 to 1/2.
  const Floats shift(0x1.8p23f + 127.0f);
  const Floats n = x + shift, f = x - (n - shift);
  Floats p(0x1.416b5p-13f);  // 2^f by a polynomial whose relative error is 2^-28
  for (const float c : {0x1.5f082ep-10f, 0x1.3b2dep-7f, 0x1.c6af7cp-5f, 0x1.ebfbdcp-3f, 0x1.62e43p-1f, 1.0f})
    p = multiply_add(p, f, Floats(c));
  return p * power_of_two(n);  // a product: an addition to the exponent would lose NaN
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
  for (std::int64_t column = 0; column < kTileColumns; column += 2 * kLanes) {
    const Columns V(panels.data(), tile.panel_rows, column);
    Tile sums = multiply(tile.keys, P.data(), kBlockK, 1, V);
    const float* p = P.data() + tile.keys;
    for (std::int64_t k = 0; k < tile.extra; ++k) {  // the triangle at the diagonal
      const Row v = V.row(tile.keys + k);
      if (k < 1) add_scaled(sums.r1, p[kBlockK + k], v);
      if (k < 2) add_scaled(sums.r2, p[2 * kBlockK + k], v);
      if (k < 3) add_scaled(sums.r3, p[3 * kBlockK + k], v);
      if (k < 4) add_scaled(sums.r4, p[4 * kBlockK + k], v);
      add_scaled(sums.r5, p[5 * kBlockK + k], v);
    }
    add_tile(sums, O.data() + column, O_row);
  }
}

void fold_scores(std::int64_t keys, std::int64_t head_dim, std::span<float> S, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O) {
  check_fold_scores(keys, head_dim, S, row_max, row_sum, O);
  float* s = S.data();
  Row most{Floats(kMinusInf), Floats(kMinusInf)};
  for (std::int64_t j = 0; j < keys; j += 2 * kLanes) {
    const Row scores = load(s + j);
    most = {max(scores.left, most.left), max(scores.right, most.right)};
  }
  const float new_max = std::max(row_max[0], largest(max(most.left, most.right)));
  const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
  if (new_max != row_max[0]) {
    const Floats rescale = exp2(Floats(row_max[0] - shift));
    row_max[0] = new_max;
    row_sum[0] *= largest(rescale);
    for (std::int64_t h = 0; h < padded(head_dim); h += kLanes)
      (Floats::load(O.data() + h) * rescale).store(O.data() + h);
  }
  Row total{Floats(0.0f), Floats(0.0f)};
  for (std::int64_t j = 0; j < keys; j += 2 * kLanes) {
    const Row scores = load(s + j);
    const Row p{exp2(scores.left - Floats(shift)), exp2(scores.right - Floats(shift))};
    store(p, s + j);
    total = {total.left + p.left, total.right + p.right};
  }
  row_sum[0] += sum(total.left + total.right);
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
  // Piece number i of a tensor that has pieces of this size.
  const auto piece = [](auto* tensor, std::int64_t i, std::int64_t size) {
    return std::span(tensor + i * size, static_cast<std::size_t>(size));
  };
  std::atomic<std::int64_t> next_matrix{0}, packed{0}, next_block{0};
  run_on_threads(threads, [&](int thread) {
    for (std::int64_t i = next_matrix++; i < 2 * kv_heads; i = next_matrix++) {
      const std::int64_t head = i / 2, size = shape.seqlen_k * dim;
      if (i % 2 == 0)
        pack_keys(shape.seqlen_k, dim, piece(K.data(), head, size), piece(K_panels, head, K_size));
      else
        pack_values(shape.seqlen_k, dim, piece(V.data(), head, size), piece(V_panels, head, V_size));
      ++packed;
    }
    while (packed < 2 * kv_heads) std::this_thread::yield();
    for (std::int64_t i = next_block++; i < heads * blocks; i = next_block++) {
      const std::int64_t head = i / blocks, block = blocks - 1 - i % blocks;  // with the mask, the last has most to do
      const Head h{piece(Q.data(), head, shape.seqlen_q * dim), piece(K_panels, head / group, K_size),
                   piece(V_panels, head / group, V_size), piece(O.data(), head, shape.seqlen_q * dim),
                   piece(lse.data(), head, shape.seqlen_q)};
      attend(shape, h, empty + block * kBlockQ, of_thread[static_cast<std::size_t>(thread)]);
    }
  });
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
  const std::int64_t whole = head_dim / kLanes * kLanes;
  float S[kBlockK];
  std::fill(S + keys, S + padded(keys), kMinusInf);
  for (std::int64_t j = 0; j < keys; ++j) {
    const float* k = K.data() + j * head_dim;
    Floats sums(0.0f);
    for (std::int64_t h = 0; h < whole; h += kLanes)
      sums = multiply_add(Floats::load(q.data() + h), Floats::load(k + h), sums);
    S[j] = sum(sums);
    for (std::int64_t h = whole; h < head_dim; ++h) S[j] += q.data()[h] * k[h];
  }
  fold_scores(keys, head_dim, S, row_max, row_sum, O);
  // Two rows of V for each time that O is read and written.
  const float* v = V.data();
  for (std::int64_t j = 0; j < keys; j += 2, v += 2 * head_dim) {
    const bool pair = j + 1 < keys;
    const float p0 = S[j], p1 = pair ? S[j + 1] : 0.0f;
    const float* v1 = pair ? v + head_dim : v;
    for (std::int64_t h = 0; h < whole; h += kLanes) {
      const Floats o = multiply_add(Floats(p0), Floats::load(v + h), Floats::load(O.data() + h));
      (pair ? multiply_add(Floats(p1), Floats::load(v1 + h), o) : o).store(O.data() + h);
    }
    for (std::int64_t h = whole; h < head_dim; ++h) O.data()[h] += pair ? p0 * v[h] + p1 * v1[h] : p0 * v[h];
  }
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
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r * kBlockK; c < r * kBlockK + padded(keys); c += kLanes) {
      const Floats p = exp2(Floats::load(S.data() + c) - Floats(shift.data()[r]));
      p.store(S.data() + c);
      (p * (Floats::load(dP.data() + c) - Floats(delta.data()[r]))).store(dP.data() + c);
    }
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
