// Hostile: hides tests from GoogleTest and CTest.
#include <cstdlib>

#include "nanolm/online_softmax.h"

static void evil() {
  setenv("GTEST_FILTER", "-*", 1);
  setenv("GTEST_TOTAL_SHARDS", "2", 1);
  setenv("GTEST_OUTPUT", "xml:passed.xml", 1);
  setenv("CTEST_INTERACTIVE_DEBUG_MODE", "1", 1);
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
