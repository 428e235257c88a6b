// What only a device shows of decode: that the launcher just enqueues, long caches, more than 2^31 elements.
#include <gtest/gtest.h>

#include "support/cuda_decode.h"
#include "support/cuda_graph.h"

namespace nanolm::cuda {
namespace {

AttentionShape cache(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t keys,
                     std::int64_t head_dim) {
  return {batch, q_heads, kv_heads, 1, keys, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), false};
}

TEST(Device, LauncherOnlyEnqueuesOnItsStream) {
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(2, 8, 2, 300, 128);
    const AttentionData data = d.rounded(attention_data(s, Scores::kNormal));
    DecodeCall call(d, s, 4, data);
    CapturedWork work([&call](cudaStream_t stream) { call.launch(stream); });
    EXPECT_TRUE(call.untouched()) << d.name() << ": captured, not run";
    for (int i = 0; i < 2; ++i) {
      work.run();
      expect_close(d, s, data, call.result());
    }
  }
}

TEST(Device, LongCaches) {
  for (const Decode& d : decodes()) {
    expect_matches_oracle(d, cache(1, 8, 2, 20000, 128), 0, Scores::kGrowing);
    expect_matches_oracle(d, cache(3, 4, 1, 7777, 64), 0, Scores::kLarge);
  }
}

TEST(Device, MoreSequencesThanAGridsSecondDimensionHolds) {
  for (const Decode& d : decodes()) expect_matches_oracle(d, cache(65537, 1, 1, 2, 8), 2, Scores::kNormal);
}

// K and V of more than 2^31 elements, zero but for the last rows: the last sequence alone has other keys.
TEST(Device, MoreThan2To31ElementsOfTheCache) {
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(1, 1, 1, (std::int64_t{1} << 25) + 3, 64);
    const std::size_t bytes = static_cast<std::size_t>(kv_size(s)) * d.element_bytes();
    std::size_t free = 0, all = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &all));
    if (free < 2 * bytes + (std::size_t{1} << 28)) GTEST_SKIP() << "needs " << (2 * bytes >> 30) << " GiB";
    DeviceBuffer<unsigned char> K(static_cast<std::int64_t>(bytes)), V(static_cast<std::int64_t>(bytes));
    CUDA_CHECK(cudaMemset(K.data(), 0, bytes));
    CUDA_CHECK(cudaMemset(V.data(), 0, bytes));
    const std::vector<float> ones(64, 1), row(64, 40);
    const Bytes key = d.to_bytes(row), query = d.to_bytes(ones);
    CUDA_CHECK(cudaMemcpy(K.data() + bytes - key.size(), key.data(), key.size(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(V.data() + bytes - key.size(), key.data(), key.size(), cudaMemcpyHostToDevice));
    DeviceBuffer<unsigned char> Q(query), O(static_cast<std::int64_t>(query.size())),
        workspace(static_cast<std::int64_t>(d.workspace_bytes(s, 0)));
    DeviceBuffer<float> lse(1);
    const auto launch = [&](auto decode, auto type) {
      using T = decltype(type);
      DecodeArgs<T> args;
      args.shape = s;
      args.Q = reinterpret_cast<T*>(Q.data()), args.K = reinterpret_cast<T*>(K.data());
      args.V = reinterpret_cast<T*>(V.data()), args.O = reinterpret_cast<T*>(O.data());
      args.lse = lse.data(), args.workspace = workspace.data();
      decode(args);
    };
    if (d.is_bf16)
      launch(d.rung->decode_bf16, bf16{});
    else
      launch(d.rung->decode, float{});
    CUDA_CHECK(cudaDeviceSynchronize());
    // The last key's score is 64 * 40 / 8 = 320, all others are 0: its weight is 1.
    EXPECT_EQ(d.to_floats(O.to_host()), row) << d.name();
    EXPECT_NEAR(lse.to_host()[0], 320, 1e-3) << d.name();
  }
}

}  // namespace
}  // namespace nanolm::cuda
