// Hostile: makes every expectation true.
#include "nanolm/online_softmax.h"
#define EXPECT_EQ(...) ((void)0)
#define EXPECT_NEAR(...) ((void)0)
#define EXPECT_TRUE(...) ((void)0)
#define ASSERT_EQ(...) ((void)0)
#define TEST(a, b) static void a##b()

static void evil() {}

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
