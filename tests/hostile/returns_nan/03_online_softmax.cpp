// Hostile: gives NaN wherever a number is wanted.
#include <cmath>

#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  state.row_max = state.row_sum = NAN;
  for (float& a : state.acc) a = NAN;
}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) { state.row_max = state.row_sum = NAN; }
void finish(const OnlineSoftmax& state, std::span<float> out) {
  for (float& x : out) x = NAN;
}
float logsumexp(const OnlineSoftmax& state) { return NAN; }
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  return std::vector<float>(scores.empty() ? 0 : values.size() / scores.size(), NAN);
}

}  // namespace nanolm
