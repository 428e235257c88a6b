// Hostile: writes the right sizes and then some, before and behind.
#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  for (int i = -8; i < 8; ++i) state.acc.data()[i] = 0;
}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {}
void finish(const OnlineSoftmax& state, std::span<float> out) {
  for (std::ptrdiff_t i = -8; i < static_cast<std::ptrdiff_t>(out.size()) + 8; ++i) out.data()[i] = 0;
}
float logsumexp(const OnlineSoftmax& state) { return 0; }
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  const_cast<float*>(values.data())[-1] = 0;
  return {};
}

}  // namespace nanolm
