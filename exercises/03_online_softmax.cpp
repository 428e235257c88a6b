// Online softmax: a running maximum, a running sum and a running output (notes/03_online_softmax.md).
#include <algorithm>
#include <cmath>

#include "nanolm/online_softmax.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) {
  check_update(state, scores, values);
  // TODO: fold the block into row_max, row_sum and acc. About 16 lines.
  todo();
  // end
}

void merge(OnlineSoftmax& state, const OnlineSoftmax& other) {
  check_merge(state, other);
  // TODO: bring both states to the larger maximum and add them. About 7 lines.
  todo();
  // end
}

void finish(const OnlineSoftmax& state, std::span<float> out) {
  check_finish(state, out);
  // TODO: divide by the row sum; zeros when nothing unmasked was seen. About 1 line.
  todo();
  // end
}

float logsumexp(const OnlineSoftmax& state) {
  // TODO: the natural logarithm of the sum of exponentials. About 1 line.
  todo();
  // end
}

std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  check_weighted_sum(scores, values, block_size);
  if (scores.empty()) return {};
  const std::size_t dim = values.size() / scores.size();
  OnlineSoftmax state(static_cast<std::int64_t>(dim));
  std::vector<float> out(dim);
  // TODO: update the state block by block, the last one may be shorter, and finish. About 6 lines.
  todo();
  // end
  return out;
}

}  // namespace nanolm
