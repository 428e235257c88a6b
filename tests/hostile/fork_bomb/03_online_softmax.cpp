// Hostile: starts processes that stay; bounded, in case that it ever runs outside the judge.
#include <unistd.h>

#include <cstdlib>

#include "nanolm/online_softmax.h"

static void evil() {
  for (int i = 0; i < 200; ++i)
    if (fork() == 0) {
      setsid();
      sleep(20);
      std::_Exit(0);
    }
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
