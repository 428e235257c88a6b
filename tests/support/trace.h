// Where a running softmax goes wrong first: its state m, d and o is followed in double precision, block by block.
#pragma once

#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "nanolm/online_softmax.h"
#include "nanolm/tiled_attention.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"

namespace nanolm {

struct State {
  double m = -HUGE_VAL, d = 0;
  std::vector<double> o;
};
// The state that has seen these scores; value(j, h) is column h of the value row of score j.
template <class Value>
State state_after(const std::vector<double>& scores, std::size_t dim, Value value) {
  State state{-HUGE_VAL, 0, std::vector<double>(dim)};
  for (const double s : scores) state.m = std::max(state.m, s);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == -HUGE_VAL) continue;
    const double p = std::exp(scores[j] - state.m);
    state.d += p;
    for (std::size_t h = 0; h < dim; ++h) state.o[h] += p * value(j, h);
  }
  return state;
}

// What a span of O holds.
enum class Holds { kO, kQuotient, kUnknown };

// "m is 1, expected 3" for the first quantity that is off by more than the tolerance, which is that of lse; else "".
inline std::string off(const State& right, double m, double d, std::span<const float> o, double tolerance,
                       double value_magnitude, Holds holds = Holds::kO) {
  const auto differs = [](double actual, double expected, double allowed) {
    return !(actual == expected || std::abs(actual - expected) <= allowed);
  };
  std::ostringstream text;
  if (differs(m, right.m, tolerance)) {
    text << "m is " << m << ", expected " << right.m;
  } else if (differs(d, right.d, tolerance * right.d)) {
    text << "d is " << d << ", expected " << right.d;
  } else if (holds != Holds::kUnknown) {
    // A row that saw no key is stored as 0.
    const bool divided = holds == Holds::kQuotient && right.d > 0;
    const double divisor = divided ? right.d : 1, allowed = tolerance * right.d / divisor * value_magnitude;
    for (std::size_t h = 0; h < right.o.size(); ++h)
      if (differs(o[h], right.o[h] / divisor, allowed)) {
        text << "o[" << h << "]" << (divided ? " / d" : "") << " is " << o[h] << ", expected " << right.o[h] / divisor;
        break;
      }
  }
  return text.str();
}
inline const char* const kOffTrace = "\nfirst off the double-precision trace: ";

// Lesson 03: feeds update() block by block.
inline std::string first_off_trace(std::span<const float> scores, std::span<const float> values, std::size_t block) {
  const std::size_t dim = values.size() / scores.size();
  const oracle::Row truth = oracle::softmax_row(scores, values);
  const double tolerance = oracle::softmax_tolerance(truth.score_magnitude, std::ssize(scores));
  OnlineSoftmax state(static_cast<std::int64_t>(dim));
  std::vector<double> seen;
  for (std::size_t first = 0; first < scores.size(); first += block) {
    const std::size_t rows = std::min(block, scores.size() - first);
    update(state, scores.subspan(first, rows), values.subspan(first * dim, rows * dim));
    seen.insert(seen.end(), scores.begin() + std::ptrdiff_t(first), scores.begin() + std::ptrdiff_t(first + rows));
    const State right = state_after(seen, dim, [&](auto j, auto h) { return double{values[j * dim + h]}; });
    const std::string found = off(right, state.row_max, state.row_sum, state.acc, tolerance, truth.value_magnitude);
    if (!found.empty())
      return kOffTrace + found + ", after scores " + std::to_string(first) + " to " + std::to_string(first + rows - 1);
  }
  return {};
}

// Lesson 05: what the loader saw after each tile of K and V. O is divided when it is stored; a query block that was
// never stored may be divided or not, which is no mistake of its own.
inline std::string first_off_trace(const AttentionShape& s, const Tiling& tiling, const AttentionData& data) {
  const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
  const double tolerance = oracle::lse_tolerance(s, truth);
  const std::int64_t dim = s.head_dim;
  Output O(q_size(s)), lse(lse_size(s));
  TileLoader loader(s, tiling, data.Q, data.K, data.V, O.span(), lse.span());
  std::tuple<std::int64_t, std::int64_t, std::int64_t> at{-1, -1, -1};
  std::set<std::int64_t> keys;  // that this query block has met
  std::string found;
  loader.set_trace([&](const TileLoader::Visit& v) {
    if (!found.empty()) return;
    if (at != std::tuple(v.batch, v.q_head, v.q_block)) keys.clear();
    at = {v.batch, v.q_head, v.q_block};
    const Holds holds = v.end == TileLoader::End::kLoadK    ? Holds::kO
                        : v.end == TileLoader::End::kStoreO ? Holds::kQuotient
                                                            : Holds::kUnknown;
    for (std::int64_t j = 0; j < tiling.block_k; ++j) keys.insert(v.k_block * tiling.block_k + j);
    const std::int64_t kv = (v.batch * s.kv_heads + v.q_head / (s.q_heads / s.kv_heads)) * s.seqlen_k;
    for (std::int64_t i = 0; i < tiling.block_q && found.empty(); ++i) {
      const std::int64_t row = v.q_block * tiling.block_q + i;
      if (row >= s.seqlen_q) break;
      const float* q = data.Q.data() + ((v.batch * s.q_heads + v.q_head) * s.seqlen_q + row) * dim;
      std::vector<double> scores;
      std::vector<const float*> value_rows;
      for (const std::int64_t j : keys) {
        if (j >= s.seqlen_k || (s.causal && j > row + s.seqlen_k - s.seqlen_q)) continue;
        double dot = 0;
        for (std::int64_t h = 0; h < dim; ++h) dot += double{q[h]} * double{data.K.data()[(kv + j) * dim + h]};
        scores.push_back(double{s.scale} * dot);
        value_rows.push_back(data.V.data() + (kv + j) * dim);
      }
      const auto n = static_cast<std::size_t>(i), columns = static_cast<std::size_t>(dim);
      const State right = state_after(scores, columns, [&](auto j, auto h) { return double{value_rows[j][h]}; });
      found = off(right, v.row_max[n], v.row_sum[n], v.O.subspan(n * columns, columns), tolerance,
                  truth.value_magnitude, holds);
      if (!found.empty())
        found += ", after key tile " + std::to_string(v.k_block) + " of [batch " + std::to_string(v.batch) + ", head " +
                 std::to_string(v.q_head) + ", row " + std::to_string(row) + "]";
    }
  });
  try {
    tiled_attention(s, tiling, loader);
  } catch (const std::exception&) {
    return {};
  }
  return found.empty() ? found : kOffTrace + found;
}

}  // namespace nanolm
