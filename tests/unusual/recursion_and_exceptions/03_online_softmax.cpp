// Right, in an unusual style: recursion in place of loops, exceptions for control flow, a heap of small allocations.
#include <cmath>
#include <memory>
#include <string>

#include "nanolm/online_softmax.h"

namespace nanolm {

namespace {

struct Masked {};
struct Found {
  std::unique_ptr<OnlineSoftmax> state;
};

float shift(float score, float largest) {
  if (score == -INFINITY) throw Masked();
  return std::exp(score - largest);
}

OnlineSoftmax one(float score, std::span<const float> value) {
  OnlineSoftmax state(static_cast<std::int64_t>(value.size()));
  try {
    state.row_sum = shift(score, score == INFINITY ? NAN : score);
    state.row_max = score;
    state.acc.assign(value.begin(), value.end());
  } catch (const Masked&) {
  }
  return state;
}

[[noreturn]] void all_of(std::span<const float> scores, std::span<const float> values, std::size_t dim) {
  if (scores.empty()) throw Found{std::make_unique<OnlineSoftmax>(static_cast<std::int64_t>(dim))};
  if (scores.size() == 1) throw Found{std::make_unique<OnlineSoftmax>(one(scores[0], values))};
  const std::size_t half = scores.size() / 2;
  std::unique_ptr<OnlineSoftmax> left;
  try {
    all_of(scores.first(half), values.first(half * dim), dim);
  } catch (Found& found) {
    left = std::move(found.state);
  }
  try {
    all_of(scores.subspan(half), values.subspan(half * dim), dim);
  } catch (Found& found) {
    merge(*left, *found.state);
  }
  throw Found{std::move(left)};
}

}  // namespace

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  check_update(state, scores, values);
  try {
    all_of(scores, values, state.acc.size());
  } catch (const Found& found) {
    merge(state, *found.state);
  }
}

void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {
  check_merge(state, other);
  if (other.row_max == -INFINITY) return;
  if (state.row_max == -INFINITY) {
    state = other;
    return;
  }
  const float largest = std::isnan(state.row_max) || std::isnan(other.row_max) ? NAN
                        : state.row_max > other.row_max                        ? state.row_max
                                                                               : other.row_max;
  const float mine = std::exp(state.row_max - largest), theirs = std::exp(other.row_max - largest);
  for (std::size_t h = 0; h < state.acc.size(); ++h) state.acc[h] = mine * state.acc[h] + theirs * other.acc[h];
  state.row_sum = mine * state.row_sum + theirs * other.row_sum;
  state.row_max = largest;
}

void finish(const OnlineSoftmax& state, std::span<float> out) {
  check_finish(state, out);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = state.row_max == -INFINITY ? 0 : state.acc[h] / state.row_sum;
}

float logsumexp(const OnlineSoftmax& state) {
  return state.row_max == -INFINITY ? -INFINITY : state.row_max + std::log(state.row_sum);
}

std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  check_weighted_sum(scores, values, block_size);
  if (scores.empty()) return {};
  try {
    all_of(scores, values, values.size() / scores.size());
  } catch (const Found& found) {
    std::vector<float> out(found.state->acc.size());
    finish(*found.state, out);
    return out;
  }
}

}  // namespace nanolm
