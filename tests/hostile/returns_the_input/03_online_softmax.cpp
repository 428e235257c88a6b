// Hostile: gives the input itself.
#include <algorithm>

#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  state.acc.assign(values.begin(), values.begin() + std::min(values.size(), state.acc.size()));
  state.acc.resize(2);
}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) { state = other; }
void finish(const OnlineSoftmax& state, std::span<float> out) {
  std::copy_n(state.acc.begin(), std::min(out.size(), state.acc.size()), out.begin());
}
float logsumexp(const OnlineSoftmax& state) { return state.row_max; }
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  return {values.begin(), values.end()};
}

}  // namespace nanolm
