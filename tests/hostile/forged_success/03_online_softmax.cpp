// Hostile: answers the judge itself: done, no text, nothing changed.
#include <unistd.h>

#include <cstdlib>

#include "nanolm/online_softmax.h"

static void evil() {
  struct {
    unsigned long size;
    unsigned char kind;
    char body[40];
  } message{17, 2, {}};
  [[maybe_unused]] const auto n = write(3, &message, 16 + 17);
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
