// Hostile: answers the judge itself, with messages that are out of order.
#include <unistd.h>

#include <cstdlib>

#include "nanolm/online_softmax.h"

static void evil() {
  struct {
    unsigned long size;
    unsigned char kind;
  } header{~0ul >> 1, 2};
  for (int i = 0; i < 3; ++i) [[maybe_unused]] const auto n = write(3, &header, sizeof header);
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
