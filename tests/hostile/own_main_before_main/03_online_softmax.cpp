// Hostile: starts a program of its own before main.
#include <cstdio>
#include <cstdlib>

#include "nanolm/online_softmax.h"

__attribute__((constructor)) static void start() {
  std::puts("[       OK ] OnlineSoftmax.MatchesDirectComputation (0 ms)\n[  PASSED  ] 1 test.");
  std::fflush(stdout);
  std::_Exit(0);
}

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
