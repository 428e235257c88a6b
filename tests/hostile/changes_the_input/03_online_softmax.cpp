// Hostile: changes the numbers that it is compared with.
#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  for (const float& s : scores) const_cast<float&>(s) = 0;
}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) { const_cast<OnlineSoftmax&>(other) = state; }
void finish(const OnlineSoftmax& state, std::span<float> out) {
  for (const float& a : state.acc) const_cast<float&>(a) = 0;
  for (float& x : out) x = 0;
}
float logsumexp(const OnlineSoftmax& state) {
  const_cast<OnlineSoftmax&>(state).row_max = 0;
  return 0;
}
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  for (const float& v : values) const_cast<float&>(v) = 1;
  return std::vector<float>(1, 1);
}

}  // namespace nanolm
