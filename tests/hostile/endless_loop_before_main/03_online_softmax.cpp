// Hostile: never starts.
#include "nanolm/online_softmax.h"
static const int never = [] {
  for (volatile int i = 0;; i = i + 1) {
  }
  return 0;
}();

static void evil() { (void)never; }

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
