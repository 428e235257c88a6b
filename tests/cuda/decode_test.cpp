// The decode of each rung against the oracle. The suites stand in the order in which rung 04 is written: Launch,
// Update, Merge, Scores, Heads, Ragged, Bf16, Splits.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_decode.h"

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};

std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size), value);
}
AttentionShape cache(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t keys,
                     std::int64_t head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, 1, keys, head_dim, scale, false};
}
AttentionShape head(std::int64_t keys, std::int64_t head_dim) { return cache(1, 1, 1, keys, head_dim); }

// A cache without keys: zeros and -inf are written, whatever the kernel does with a key.
void expect_zeros(const Decode& d, const AttentionShape& s, int splits) {
  SCOPED_TRACE(d.name() + ", " + name(s) + ", splits " + std::to_string(splits));
  const Decoded r = run(d, s, splits, d.rounded(attention_data(s, Scores::kNormal)));
  EXPECT_TRUE(all_close(r.O, filled(q_size(s), 0), 0)) << "O";
  EXPECT_TRUE(all_close(r.lse, filled(lse_size(s), -kInf), 0)) << "lse";
}

TEST(Launch, CoversEveryHeadOfAnEmptyCache) {
  for (const Decode& d : decodes())
    for (const AttentionShape& s : {head(0, 128), cache(3, 2, 2, 0, 64), cache(2, 16, 16, 0, 256)})
      expect_zeros(d, s, 1);
}

TEST(Launch, NothingToDoLeavesNoErrorBehind) {
  for (const Decode& d : decodes())
    for (const bool guarded : {true, false}) {  // false: null pointers where a tensor is empty
      SCOPED_TRACE(d.name());
      const AttentionShape s = cache(0, 4, 2, 33, 64);
      const Decoded r = run(d, s, 1, d.rounded(attention_data(s, Scores::kNormal)), {guarded});
      EXPECT_TRUE(r.O.empty() && r.lse.empty());
      expect_zeros(d, cache(2, 2, 2, 0, 64), 1);
    }
}

TEST(Launch, RefusesBadShapesAndWritesNothing) {
  for (const Decode& d : decodes()) {
    SCOPED_TRACE(d.name());
    const AttentionShape good = cache(2, 4, 2, 7, 64);
    AttentionShape s = good;
    for (const float scale : {0.0f, -0.125f, kNaN, kInf}) expect_refused(d, good, (s.scale = scale, s), 1);
    s = good, expect_refused(d, good, (s.kv_heads = 3, s), 1);
    s = good, expect_refused(d, good, (s.batch = -1, s), 1);
    s = good, expect_refused(d, good, (s.seqlen_q = 2, s), 1);
    s = good, expect_refused(d, good, (s.seqlen_q = 0, s), 1);
    s = good, expect_refused(d, good, (s.seqlen_k = -7, s), 1);
    s = good, expect_refused(d, good, (s.head_dim = 0, s), 1);
    expect_refused(d, good, good, -1);
    expect_refused(d, good, good, kMaxSplits + 1);
    expect_zeros(d, head(0, 64), 1);
  }
}

// With Q = 0 every key has the weight 1 / n: O is the mean of V and lse is ln n, in base e.
void expect_mean(const Decode& d, std::int64_t keys) {
  const AttentionShape s = head(keys, 128);
  SCOPED_TRACE(d.name() + ", " + name(s));
  AttentionData data = d.rounded(attention_data(s, Scores::kNormal));
  data.Q.assign(data.Q.size(), 0);
  const Decoded r = run(d, s, 1, data);
  expect_close(d, s, data, r);
  EXPECT_NEAR(r.lse[0], std::log(static_cast<double>(keys)), 1e-5);
}

TEST(Update, OneKeyGivesItsValue) {
  for (const Decode& d : decodes())
    if (!d.is_bf16) expect_mean(d, 1);
}

TEST(Merge, EqualScoresGiveTheMeanOfV) {
  for (const Decode& d : decodes())
    for (const std::int64_t keys : {2, 4, 64, 300})
      if (!d.is_bf16) expect_mean(d, keys);
}

TEST(Scores, OneSplitMatchesOracle) {
  for (const Decode& d : decodes()) {
    if (d.is_bf16) continue;
    for (const Scores regime : kRegimes)
      for (const std::int64_t head_dim : {64, 128, 256}) expect_matches_oracle(d, head(257, head_dim), 1, regime);
  }
}

TEST(Scores, ScaleIsWhatTheShapeSays) {
  for (const Decode& d : decodes())
    for (const float scale : {0.02f, 0.7f}) {
      if (d.is_bf16) continue;
      AttentionShape s = head(100, 128);
      s.scale = scale;
      expect_matches_oracle(d, s, 1, Scores::kNormal);
      expect_matches_oracle(d, s, 1, Scores::kLow);
    }
}

TEST(Heads, AreAllCoveredInAnEmptyCache) {
  for (const Decode& d : decodes())
    for (const AttentionShape& s : {cache(3, 8, 2, 0, 64), cache(2, 16, 1, 0, 128)}) expect_zeros(d, s, 1);
}

TEST(Heads, OfAGroupReadTheirKvHead) {
  for (const Decode& d : decodes()) {
    if (d.is_bf16) continue;
    std::size_t turn = 0;
    for (const std::int64_t group : {1, 2, 3, 4, 5, 8, 11, 16})
      expect_matches_oracle(d, cache(2, 2 * group, 2, 70, 64), 1, kRegimes[turn++ % 4]);
  }
}

TEST(Heads, NeighboursShareAKvHead) {
  const AttentionShape s = cache(1, 4, 2, 1, 64);
  std::vector<float> V = filled(2 * 64, 1), O = filled(4 * 64, 1);
  std::fill(V.begin() + 64, V.end(), 2.0f);
  std::fill(O.begin() + 2 * 64, O.end(), 2.0f);
  for (const Decode& d : decodes()) {
    if (d.is_bf16) continue;
    EXPECT_EQ(run(d, s, 1, {filled(4 * 64, 1), filled(2 * 64, 1), V}).O, O) << d.name();
  }
}

TEST(Ragged, LengthsAndHeadDimsMatchOracle) {
  for (const Decode& d : decodes()) {
    if (d.is_bf16) continue;
    std::size_t turn = 0;
    for (const std::int64_t keys : {1, 2, 3, 5, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255})
      expect_matches_oracle(d, head(keys, 64), 1, kRegimes[turn++ % 4]);
    for (const std::int64_t head_dim : {1, 3, 7, 20, 40, 63, 65, 96, 100, 129, 200, 255})
      expect_matches_oracle(d, cache(1, 2, 1, 37, head_dim), 1, kRegimes[turn++ % 4]);
  }
}

TEST(Ragged, HeadDimsAreServedOrRefused) {
  for (const Decode& d : decodes())
    for (const std::int64_t head_dim : {1, 8, 64, 80, 128, 129, 256, 257, 1000}) {
      EXPECT_TRUE(head_dim > 128 || d.serves(head(9, head_dim))) << d.name() << " has to serve head_dim " << head_dim;
      if (!d.is_bf16 || !d.serves(head(9, head_dim))) expect_matches_oracle(d, head(9, head_dim), 1, Scores::kNormal);
    }
}

TEST(Bf16, MatchesOracleOnRoundedInputs) {
  for (const Decode& d : decodes()) {
    if (!d.is_bf16) continue;
    std::size_t turn = 0;
    for (const AttentionShape& s : {head(257, 128), head(100, 64), head(70, 256), cache(2, 8, 2, 33, 128),
                                    cache(1, 8, 1, 65, 64), cache(1, 2, 1, 37, 100), cache(1, 2, 2, 5, 7)})
      expect_matches_oracle(d, s, 1, kRegimes[turn++ % 4]);
  }
}

TEST(Splits, AnyNumberMatchesOracle) {
  for (const Decode& d : decodes()) {
    std::size_t turn = 0;
    for (const int splits : {2, 3, 5, 8, 17})
      for (const AttentionShape& s : {cache(2, 4, 2, 200, 64), cache(1, 8, 1, 63, 128)})
        expect_matches_oracle(d, s, splits, kRegimes[turn++ % 4]);
    expect_matches_oracle(d, cache(1, 3, 1, 161, 64), 150, Scores::kGrowing);
  }
}

TEST(Splits, MoreThanKeysLeaveSomeEmpty) {
  for (const Decode& d : decodes()) {
    for (const std::int64_t keys : {0, 1, 3, 7}) {
      if (keys == 0) expect_zeros(d, cache(2, 2, 1, keys, 64), 8);
      expect_matches_oracle(d, cache(2, 4, 2, keys, 64), 8, Scores::kLow);
    }
  }
}

TEST(Splits, ZeroLetsTheLauncherChoose) {
  for (const Decode& d : decodes()) {
    expect_matches_oracle(d, cache(1, 4, 1, 1500, 64), 0, Scores::kGrowing);
    expect_matches_oracle(d, cache(3, 4, 2, 40, 128), 0, Scores::kNormal);
    expect_zeros(d, cache(1, 4, 2, 0, 64), 0);
  }
}

TEST(Splits, WorkedExampleOfTheNote) {
  AttentionShape s = head(3, 1);
  s.scale = 0.5f;
  for (const Decode& d : decodes()) {
    if (!d.serves(s) || d.is_bf16) continue;
    for (const int splits : {1, 2, 3}) {
      const Decoded r = run(d, s, splits, {{2}, {1, 3, 2}, {10, 20, 40}});
      EXPECT_NEAR(r.O[0], 23.99426, 1e-5) << d.name();
      EXPECT_NEAR(r.lse[0], 3.40761, 6e-6) << d.name();
    }
  }
}

// Small shapes for every branch, in allocations of exactly their size: what compute-sanitizer is run with.
TEST(Sanitize, OneSplit) {
  for (const Decode& d : decodes())
    for (const std::int64_t head_dim : {7, 64, 100, 128, 256})
      expect_matches_oracle(d, cache(2, 4, 2, 70, head_dim), 1, Scores::kNormal, {false});
}
TEST(Sanitize, Splits) {
  for (const Decode& d : decodes())
    for (const int splits : {0, 3, 9})
      expect_matches_oracle(d, cache(2, 8, 1, 65, 64), splits, Scores::kGrowing, {false});
}
TEST(Sanitize, EmptyAndMisaligned) {
  for (const Decode& d : decodes()) {
    expect_matches_oracle(d, cache(2, 2, 1, 0, 64), 3, Scores::kNormal, {false});
    expect_matches_oracle(d, cache(1, 2, 1, 17, 64), 2, Scores::kNormal, {false, kAll});
  }
}

}  // namespace
}  // namespace nanolm::cuda
