// Right, in an unusual style: state in globals, a thread for each call, doubles inside, output on the console.
#include <cmath>
#include <iostream>
#include <thread>

#include "nanolm/online_softmax.h"
#include "nanolm/todo.h"

namespace nanolm {

static std::vector<double> scratch;
static int calls = 0;

static void fold(OnlineSoftmax& state, float score, double weight, const float* value) {
  const float grown = std::isnan(score) || std::isnan(state.row_max) ? NAN : std::max(state.row_max, score);
  const double keep = state.row_sum == 0 ? 0 : std::exp(static_cast<double>(state.row_max) - grown);
  const double add = std::exp(static_cast<double>(score) - grown);
  scratch.assign(state.acc.begin(), state.acc.end());
  for (std::size_t h = 0; h < scratch.size(); ++h)
    state.acc[h] = static_cast<float>(keep * scratch[h] + add * static_cast<double>(value[h]));
  state.row_sum = static_cast<float>(keep * state.row_sum + add * weight);
  state.row_max = grown;
}

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  check_update(state, scores, values);
  std::cout << "update number " << ++calls << std::endl;
  std::thread([&] {
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (scores[j] != -INFINITY) fold(state, scores[j], 1, values.data() + j * state.acc.size());
  }).join();
}

void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {
  check_merge(state, other);
  if (other.row_max != -INFINITY) fold(state, other.row_max, other.row_sum, other.acc.data());
}

void finish(const OnlineSoftmax& state, std::span<float> out) {
  check_finish(state, out);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = state.row_sum == 0 ? 0 : state.acc[h] / state.row_sum;
}

float logsumexp(const OnlineSoftmax& state) {
  return state.row_max == -INFINITY ? -INFINITY : state.row_max + std::log(state.row_sum);
}

std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  check_weighted_sum(scores, values, block_size);
  if (scores.empty()) return {};
  OnlineSoftmax state(static_cast<std::int64_t>(values.size() / scores.size()));
  update(state, scores, values);
  std::vector<float> out(state.acc.size());
  finish(state, out);
  return out;
}

}  // namespace nanolm
