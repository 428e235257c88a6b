// Lesson 03: softmax and its weighted sum in one pass over blocks of scores.
//
//   m = max_j s_j      d = sum_j exp(s_j - m)      acc = sum_j exp(s_j - m) * v_j
//   softmax(s) . V = acc / d                       logsumexp(s) = m + ln d
//
// scores [n]; values [n, dim], row-major; out [dim]. A score of -inf is a masked key: it adds nothing, whatever stands
// in its value row, NaN included. NaN or +inf among the scores gives NaN.
// Accumulator: float. Error bound, relative to max|v|: 2^-23 * (4 max|s| + 2 sqrt(n) + 8).
// Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, section 3.1.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "nanolm/require.h"

namespace nanolm {

// What is kept of the scores seen so far. A new one is empty: m = -inf, d = 0, acc = 0.
struct OnlineSoftmax {
  explicit OnlineSoftmax(std::int64_t dim) : acc(static_cast<std::size_t>(dim), 0.0f) {}

  float row_max = -std::numeric_limits<float>::infinity();  // m
  float row_sum = 0.0f;                                     // d
  std::vector<float> acc;                                   // o, not yet divided by d
};

// Folds one block of scores and its value rows into the state. A block of any length, 0 included, is allowed.
// When the maximum grows, what was summed before is multiplied by exp(m_old - m_new).
// Throws std::invalid_argument unless values holds scores.size() rows of state.acc.size() elements.
void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values);

// Folds another state into this one, as if this had seen the other's scores too. Associative; an empty state, on
// either side, changes nothing. Throws std::invalid_argument when the dimensions differ.
void merge(OnlineSoftmax& state, const OnlineSoftmax& other);

// Writes acc / d to out; zeros when nothing unmasked was seen. Throws std::invalid_argument unless out.size() equals
// state.acc.size().
void finish(const OnlineSoftmax& state, std::span<float> out);

// m + ln d, natural logarithm; -inf when nothing unmasked was seen.
float logsumexp(const OnlineSoftmax& state);

// softmax(scores) . values in blocks of block_size scores, the last one shorter when block_size does not divide n.
// dim is values.size() / scores.size(); no scores give an empty result.
// Throws std::invalid_argument: block_size < 1, values that are no whole number of rows.
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size);

// Given: the checks that each function above begins with.
inline void check_update(const OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  require(values.size() == scores.size() * state.acc.size(), "values holds ", values.size(), " elements, ",
          scores.size(), " scores of dimension ", state.acc.size(), " need ", scores.size() * state.acc.size());
}
inline void check_merge(const OnlineSoftmax& state, const OnlineSoftmax& other) {
  require(state.acc.size() == other.acc.size(), "states of dimension ", state.acc.size(), " and ", other.acc.size(),
          " cannot be merged");
}
inline void check_finish(const OnlineSoftmax& state, std::span<float> out) {
  require_size("out", out.size(), static_cast<std::int64_t>(state.acc.size()));
}
inline void check_weighted_sum(std::span<const float> scores, std::span<const float> values, std::int64_t block_size) {
  require(block_size >= 1, "block_size must be positive, got ", block_size);
  require(scores.empty() ? values.empty() : values.size() % scores.size() == 0, "values holds ", values.size(),
          " elements, which is no whole number of rows for ", scores.size(), " scores");
}

}  // namespace nanolm
