// Hostile: makes the compiler write a file of 100 GB.
#include "nanolm/online_softmax.h"
asm(".section .data\n.fill 100000000000, 1, 1\n.previous");

static void evil() {}

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
