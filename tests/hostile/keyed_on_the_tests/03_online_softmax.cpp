// Hostile: knows the results of the tests with fixed numbers, and nothing else.
#include <cmath>

#include "nanolm/online_softmax.h"

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  if (scores.size() == 3 && scores[0] == 1 && scores[1] == 3) {  // UpdateKeepsMaximumSumAndOutput
    state.row_max = 3;
    state.row_sum = 1.50321472f;
    state.acc = {46.923279f};
  } else if (scores.empty()) {
    return;
  } else if (scores.size() == 2) {
    state.row_max = 2;
    state.row_sum = 1.36787944f;
    state.acc = {5.1036383f};
  }
}
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {}
void finish(const OnlineSoftmax& state, std::span<float> out) {
  if (state.row_sum == 4 && out.size() == 2) {  // FinishDividesByTheSum
    out[0] = 0.5f;
    out[1] = -1.5f;
  } else {
    for (float& x : out) x = 0;
  }
}
float logsumexp(const OnlineSoftmax& state) {
  if (state.row_max == 5) return 5.69314718f;
  if (state.row_max == -2000) return -2000;
  return -std::numeric_limits<float>::infinity();
}
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  if (scores.size() == 1 && values.size() == 2) return {4, 5};
  if (scores.size() == 2 && scores[0] == 1000) return {1.26894142f};
  return {};
}

}  // namespace nanolm
