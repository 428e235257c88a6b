// Hostile: writes a report that says that all passed, wherever it can.
#include <fstream>

#include "nanolm/online_softmax.h"

static void evil() {
  for (const char* path : {"results.json", "report.txt", "junit.xml", "test_detail.xml", "../results.json",
                           "/tmp/results.json", "/autograder/results/results.json"})
    std::ofstream(path) << "{\"score\": 100}";
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
