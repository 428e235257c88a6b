// Hostile: reads the seed in the environment of its parents and of all processes.
#include <fstream>
#include <iterator>
#include <string>

#include "nanolm/online_softmax.h"

static void evil() {
  for (int pid = 1; pid < 5000; ++pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (text.find("NANOLM_SEED") != std::string::npos) return;
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
