// Hostile: keeps the compiler busy at compile time.
#pragma GCC optimize("O0")
#include "nanolm/online_softmax.h"

constexpr long spin(long n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
template <long N>
struct Spin {
  static constexpr long value = spin(24) + Spin<N - 1>::value;
};
template <>
struct Spin<0> {
  static constexpr long value = 0;
};
static const long spun = Spin<800>::value;

static void evil() { (void)spun; }

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
