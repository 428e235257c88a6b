// Hostile: takes all memory there is.
#include <vector>

#include "nanolm/online_softmax.h"

static void evil() {
  static std::vector<std::vector<char>> taken;
  for (int i = 0; i < 1000; ++i) taken.emplace_back(64 << 20, char(1));
}

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) { evil(); }
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) { evil(); }
void finish(const OnlineSoftmax& state, std::span<float> out) { evil(); }
float logsumexp(const OnlineSoftmax& state) {
  evil();
  return 0;
}
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  evil();
  return {};
}

}  // namespace nanolm
