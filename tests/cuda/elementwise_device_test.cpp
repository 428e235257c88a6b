// What only a device shows of rung 01: that the launcher just enqueues, and more than 2^31 elements.
#include <gtest/gtest.h>

#include "support/cuda_elementwise.h"
#include "support/cuda_graph.h"

namespace nanolm::cuda {
namespace {

TEST(Device, LauncherOnlyEnqueuesOnItsStream) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    SCOPED_TRACE(rung.name);
    const std::vector<float> x = normal(3001);
    ElementwiseCall call(rung, coefficients(3), x, 1);
    CapturedWork work([&call](cudaStream_t stream) {
      call.args.stream = stream;
      call.launch();
    });
    EXPECT_EQ(work.nodes(), rung.is_fused ? 1u : 3u) << "kernels";
    EXPECT_TRUE(call.untouched()) << "captured, not run";
    for (int i = 0; i < 2; ++i) {
      work.run();
      EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x)));
    }
  }
}

TEST(Device, MoreThan2To31Elements) {
  const std::int64_t count = (std::int64_t{1} << 31) + 5, chunk = std::int64_t{1} << 26;
  std::size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    ElementwiseCall(rung, coefficients(1), {1.0f})
        .launch();  // an exercise that is not written fails, it is not skipped
    if (free_bytes < static_cast<std::size_t>(count) * 8 + (std::size_t{1} << 30))
      GTEST_SKIP() << "needs 18 GB of device memory, " << static_cast<double>(free_bytes) / 1e9 << " GB are free";
    DeviceBuffer<float> x(count), y(count);
    CUDA_CHECK(cudaMemset(x.data(), 0x3F, x.bytes()));  // 0.747 everywhere, but 1, 2, 3, ... at the first of each chunk
    CUDA_CHECK(cudaMemset(y.data(), 0xFF, y.bytes()));
    std::vector<float> expected(static_cast<std::size_t>(chunk));
    std::memset(expected.data(), 0x3F, expected.size() * sizeof(float));
    ElementwiseArgs args = coefficients(2);
    expected = expected_y(args, expected);
    for (std::int64_t i = 0; i < count; i += chunk) {
      const float marker = static_cast<float>(i / chunk + 1);
      CUDA_CHECK(cudaMemcpy(x.data() + i, &marker, sizeof marker, cudaMemcpyHostToDevice));
    }
    args.x = x.data(), args.y = y.data(), args.count = count;
    rung.run(args);
    std::vector<float> actual(expected.size());
    for (std::int64_t i = 0; i < count; i += chunk) {
      const auto size = static_cast<std::size_t>(std::min(chunk, count - i));
      CUDA_CHECK(cudaMemcpy(actual.data(), y.data() + i, size * sizeof(float), cudaMemcpyDeviceToHost));
      expected[0] = expected_y(args, {static_cast<float>(i / chunk + 1)})[0];
      ASSERT_EQ(std::memcmp(actual.data(), expected.data(), size * sizeof(float)), 0)
          << rung.name << ", elements " << i << " to " << i + static_cast<std::int64_t>(size) - 1;
    }
  }
}

}  // namespace
}  // namespace nanolm::cuda
