// Hostile: gives what an empty state gives.
#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {}
void finish(const OnlineSoftmax& state, std::span<float> out) {
  for (float& x : out) x = 0;
}
float logsumexp(const OnlineSoftmax& state) { return -std::numeric_limits<float>::infinity(); }
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  return std::vector<float>(scores.empty() ? 0 : values.size() / scores.size());
}

}  // namespace nanolm
