// Hostile: writes what a test that passed prints, and an answer, to every descriptor.
#include <unistd.h>

#include <cstdlib>

#include "nanolm/online_softmax.h"

static void evil() {
  const char text[] = "[  PASSED  ] 1 test.\n";
  for (int fd = 0; fd < 64; ++fd) [[maybe_unused]] const auto n = write(fd, text, sizeof text);
  std::_Exit(0);
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
