// What only the emulator sees of decode: bytes of the cache, sectors, and whether the order of threads matters.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_decode.h"
#include "support/cuda_profile.h"

namespace nanolm::cuda {
namespace {

AttentionShape cache(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t keys,
                     std::int64_t head_dim) {
  return {batch, q_heads, kv_heads, 1, keys, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), false};
}
std::vector<emulator::KernelProfile> profile_of(const Decode& d, const AttentionShape& s, int splits) {
  DecodeCall call(d, s, splits, d.rounded(attention_data(s, Scores::kNormal)));
  return profiled([&] { call.launch(); });
}
// Bytes of these arrays that all kernels asked for.
std::int64_t loaded(const std::vector<emulator::KernelProfile>& kernels, const std::string& arrays) {
  std::int64_t bytes = 0;
  for (const auto& kernel : kernels)
    for (const auto& array : kernel.global)
      if (arrays.find(array.name) != std::string::npos) bytes += array.loads.bytes;
  return bytes;
}

TEST(Traffic, AGroupReadsTheCacheOnce) {
  for (const Decode& d : decodes())
    for (const std::int64_t group : {1, 3, 4, 8})
      for (const int splits : {1, 5}) {
        const AttentionShape s = cache(1, 2 * group, 2, 100, 128);
        const std::int64_t once = 2 * kv_size(s) * static_cast<std::int64_t>(d.element_bytes());
        EXPECT_EQ(loaded(profile_of(d, s, splits), "KV"), once) << d.name() << ", " << name(s) << ", splits " << splits;
      }
}

TEST(Traffic, ManyHeadsReadTheCacheOnceForEachEight) {
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(1, 16, 1, 64, 64);
    const std::int64_t once = 2 * kv_size(s) * static_cast<std::int64_t>(d.element_bytes());
    EXPECT_LE(loaded(profile_of(d, s, 1), "KV"), 2 * once) << d.name();
  }
}

TEST(Sectors, AWarpLoadsNeighbours) {
  for (const Decode& d : decodes()) expect_neighbours(profile_of(d, cache(1, 4, 1, 256, 128), 1), 1.5);
}

TEST(Banks, SharedMemoryIsReadWithFewConflicts) {
  for (const Decode& d : decodes()) expect_few_conflicts(profile_of(d, cache(1, 4, 1, 256, 128), 2), 1.5);
}

TEST(Splits, FillTheDeviceOrAreFew) {
  for (const Decode& d : decodes()) {
    const std::int64_t sms = current_device().sms;
    const auto blocks = [&](const AttentionShape& s) { return profile_of(d, s, 0).at(0).blocks; };
    EXPECT_GE(blocks(cache(1, 1, 1, 64 * sms, 8)), sms / 4) << d.name() << ": a long cache of one head";
    EXPECT_EQ(blocks(cache(1, 1, 1, 16, 8)), 1) << d.name() << ": 16 keys are no work for two blocks";
  }
}

TEST(Workspace, HoldsTheSplitsAndNoMore) {
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(2, 4, 2, 100, 64);
    EXPECT_LE(d.workspace_bytes(s, 7), static_cast<std::size_t>(7 * 8 * (64 + 2) * 4 + 255)) << d.name();
    EXPECT_LE(d.workspace_bytes(s, 1), static_cast<std::size_t>(8 * (64 + 2) * 4 + 255)) << d.name();
    expect_matches_oracle(d, s, 7, Scores::kNormal);
  }
}

TEST(Order, OfBlocksWarpsAndLanesDoesNotChangeABit) {
  using emulator::Order;
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(2, 4, 2, 70, 64);
    const AttentionData data = d.rounded(attention_data(s, Scores::kGrowing));
    std::vector<Decoded> results;
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kRandom, Order::kMixed}) {
      emulator::set_order(order);
      results.push_back(run(d, s, 3, data));
      EXPECT_TRUE(same_bits(results.back().O, results[0].O)) << d.name() << ", O, order " << results.size() - 1;
      EXPECT_TRUE(same_bits(results.back().lse, results[0].lse)) << d.name() << ", lse, order " << results.size() - 1;
    }
    expect_close(d, s, data, results[0]);
  }
}

}  // namespace
}  // namespace nanolm::cuda
