// Online softmax: a running maximum, a running sum and a running output (notes/03_online_softmax.md).
#include <algorithm>
#include <cmath>

#include "nanolm/online_softmax.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  check_update(state, scores, values);
  const std::size_t dim = state.acc.size();
  float new_max = state.row_max;
  for (const float score : scores) new_max = std::max(new_max, score);
  // While every score is -inf, -inf - (-inf) would be NaN. 0 stands in for the maximum here only; it is never stored.
  const float shift = new_max == kMinusInf ? 0.0f : new_max;

  const float rescale = std::exp(state.row_max - shift);
  state.row_sum *= rescale;
  for (float& a : state.acc) a *= rescale;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == kMinusInf) continue;  // exp gives 0, but 0 * NaN in a masked value row is NaN
    const float p = std::exp(scores[j] - shift);
    state.row_sum += p;
    for (std::size_t h = 0; h < dim; ++h) state.acc[h] += p * values[j * dim + h];
  }
  state.row_max = new_max;
}

void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {
  check_merge(state, other);
  const float new_max = std::max(state.row_max, other.row_max);
  const float shift = new_max == kMinusInf ? 0.0f : new_max;
  const float own = std::exp(state.row_max - shift);
  const float theirs = std::exp(other.row_max - shift);
  state.row_sum = own * state.row_sum + theirs * other.row_sum;
  for (std::size_t h = 0; h < state.acc.size(); ++h) state.acc[h] = own * state.acc[h] + theirs * other.acc[h];
  state.row_max = new_max;
}

void finish(const OnlineSoftmax& state, std::span<float> out) {
  check_finish(state, out);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = state.row_sum == 0.0f ? 0.0f : state.acc[h] / state.row_sum;
}

float logsumexp(const OnlineSoftmax& state) {
  return state.row_max + std::log(state.row_sum);  // empty: -inf + ln 0 = -inf
}

std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  check_weighted_sum(scores, values, block_size);
  if (scores.empty()) return {};
  const std::size_t dim = values.size() / scores.size();
  OnlineSoftmax state(static_cast<std::int64_t>(dim));
  std::vector<float> out(dim);
  for (std::size_t first = 0; first < scores.size();) {
    const std::size_t rows = std::min(static_cast<std::size_t>(block_size), scores.size() - first);
    update(state, scores.subspan(first, rows), values.subspan(first * dim, rows * dim));
    first += rows;
  }
  finish(state, out);
  return out;
}

}  // namespace nanolm
