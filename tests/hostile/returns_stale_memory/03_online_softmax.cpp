// Hostile: leaves its output to what memory held before.
#include <cstdlib>

#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {}
void finish(const OnlineSoftmax& state, std::span<float> out) {
  const auto* old = static_cast<float*>(std::malloc(out.size() * sizeof(float) + 64));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = old[i];
}
float logsumexp(const OnlineSoftmax& state) { return *static_cast<volatile float*>(std::malloc(4)); }
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  static std::vector<float> last;
  std::vector<float> now = last;
  last.assign(values.begin(), values.end());
  return now;
}

}  // namespace nanolm
