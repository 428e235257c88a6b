// The forward pass of each rung against the oracle. The suites stand in the order in which rung 03 is written: Launch,
// (Load), Update, Scores, Ragged, Causal, (Skip), Heads; those in brackets count bytes: forward_emulated_test.cpp.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_forward.h"
#ifdef NANOLM_EMULATED
#include "emulator/counters.h"
#endif

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};
constexpr std::int64_t kWhole = 128;  // a multiple of the tiles

std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size), value);
}

AttentionShape heads(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, scale, causal};
}
AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return heads(1, 1, 1, seqlen_q, seqlen_k, head_dim, causal);
}

// A shape without keys: zeros and -inf are written, whatever the kernel does with a tile.
void expect_zeros(const Forward& f, const AttentionShape& s) {
  SCOPED_TRACE(f.name() + ", " + name(s));
  const Result r = run(f, s, f.rounded(attention_data(s, Scores::kNormal)));
  EXPECT_TRUE(all_close(r.O, filled(q_size(s), 0), 0)) << "O";
  EXPECT_TRUE(all_close(r.lse, filled(lse_size(s), -kInf), 0)) << "lse";
}

TEST(Launch, CoversEveryRowOfAHead) {
  for (const Forward& f : forwards())
    for (const std::int64_t blocks : {1, 2, 5}) expect_zeros(f, head(blocks * kWhole, 0, 64));
}

TEST(Launch, CoversEveryHeadAndBatch) {
  for (const Forward& f : forwards()) {
    expect_zeros(f, heads(2, 3, 3, kWhole, 0, 64));
    expect_zeros(f, heads(3, 4, 2, 2 * kWhole, 0, 64, /*causal=*/true));
  }
}

TEST(Launch, NothingToDoLeavesNoErrorBehind) {
  for (const Forward& f : forwards())
    for (const bool guarded : {true, false}) {  // false: null pointers where a tensor is empty
      SCOPED_TRACE(f.name());
      for (const AttentionShape& s :
           {heads(2, 2, 2, 0, kWhole, 64), heads(0, 2, 2, kWhole, kWhole, 64), heads(2, 2, 1, 0, 0, 64, true)}) {
        const Result r = run(f, s, f.rounded(attention_data(s, Scores::kNormal)), {guarded});
        EXPECT_TRUE(r.O.empty() && r.lse.empty());
      }
      expect_zeros(f, head(kWhole, 0, 64));
    }
}

TEST(Launch, RefusesBadShapesAndWritesNothing) {
  for (const Forward& f : forwards()) {
    SCOPED_TRACE(f.name());
    const AttentionShape good = heads(2, 4, 2, 5, 7, 64);
    AttentionShape s = good;
    for (const float scale : {0.0f, -0.125f, kNaN, kInf}) expect_refused(f, good, (s.scale = scale, s));
    s = good, expect_refused(f, good, (s.kv_heads = 3, s));
    s = good, expect_refused(f, good, (s.kv_heads = 0, s));
    s = good, expect_refused(f, good, (s.q_heads = -4, s));
    s = good, expect_refused(f, good, (s.batch = -1, s));
    s = good, expect_refused(f, good, (s.seqlen_q = -5, s));
    s = good, expect_refused(f, good, (s.seqlen_k = -7, s));
    s = good, expect_refused(f, good, (s.head_dim = 0, s));
    s = good, expect_refused(f, good, (s.seqlen_k = std::int64_t{1} << 60, s));
    expect_zeros(f, head(kWhole, 0, 64));
  }
}

TEST(Update, LseOfEqualScoresIsTheirLogarithm) {
  for (const Forward& f : forwards()) {
    const AttentionShape s = head(kWhole, 2 * kWhole, 64);
    AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
    data.Q.assign(data.Q.size(), 0);
    const std::vector<double> expected(static_cast<std::size_t>(lse_size(s)), std::log(2.0 * kWhole));
    EXPECT_TRUE(all_close(run(f, s, data).lse, expected, 1e-5)) << "lse of 256 equal scores, " << f.name();
  }
}

// With Q = 0 every key has the weight 1 / n: O is the mean of V and lse is ln n, in base e.
TEST(Update, EqualScoresGiveTheMeanOfV) {
  for (const Forward& f : forwards())
    for (const std::int64_t blocks : {1, 2}) {
      const AttentionShape s = head(kWhole, blocks * kWhole, 64);
      SCOPED_TRACE(f.name() + ", " + name(s));
      AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
      data.Q.assign(data.Q.size(), 0);
      const Result r = run(f, s, data);
      expect_close(f, s, data, r);
      EXPECT_NEAR(r.lse[0], std::log(static_cast<double>(s.seqlen_k)), 1e-5);
    }
}

TEST(Scores, WholeTilesMatchOracle) {
  for (const Forward& f : forwards()) {
    for (const Scores regime : kRegimes) expect_matches_oracle(f, head(kWhole, kWhole, 64), regime);
    expect_matches_oracle(f, head(2 * kWhole, 3 * kWhole, 64), Scores::kGrowing);
    expect_matches_oracle(f, head(kWhole, 2 * kWhole, 128), Scores::kLarge);
  }
}

TEST(Scores, ScaleIsWhatTheShapeSays) {
  for (const Forward& f : forwards())
    for (const float scale : {0.02f, 0.7f}) {
      AttentionShape s = head(kWhole, kWhole, 64);
      s.scale = scale;
      expect_matches_oracle(f, s, Scores::kNormal);
      expect_matches_oracle(f, s, Scores::kLow);
    }
}

TEST(Ragged, LengthsAndHeadDimsMatchOracle) {
  for (const Forward& f : forwards()) {
    std::size_t turn = 0;
    for (const AttentionShape& s :
         {head(1, 1, 1), head(5, 7, 4), head(15, 16, 20), head(17, 33, 40), head(64, 63, 3), head(127, 129, 7),
          head(113, 97, 8), head(1, 65, 24), head(70, 1, 128), head(6, 0, 5), head(130, 66, 100), head(1, 257, 64)})
      expect_matches_oracle(f, s, kRegimes[turn++ % 4]);
    for (const Scores regime : kRegimes) expect_matches_oracle(f, head(33, 129, 36), regime);
  }
}

TEST(Ragged, WorkedExampleOfTheNote) {
  AttentionShape s = head(1, 2, 1);
  s.scale = 0.5f;
  for (const Forward& f : forwards()) {
    if (!f.serves(s)) continue;
    const Result r = run(f, s, {{2}, {1, 3}, {10, 20}});
    EXPECT_NEAR(r.O[0], 18.80797, f.is_bf16 ? 20 * 0x1p-8 : 5e-6) << f.name();
    EXPECT_NEAR(r.lse[0], 3.12693, 6e-6) << f.name();
  }
}

TEST(Ragged, EqualScoresGiveEqualWeightsWhateverThePadding) {
  // Q = K = 0 and V = 1: a padded key that counts gives less than 1.
  for (const Forward& f : forwards())
    for (const std::int64_t n : {1, 2, 15, 17, 31, 33, 63, 65, 127, 129}) {
      const AttentionShape s = f.served(head(3, n, 3));
      SCOPED_TRACE(f.name() + ", " + name(s));
      const Result r = run(f, s, {filled(q_size(s), 0), filled(kv_size(s), 0), filled(kv_size(s), 1)});
      EXPECT_TRUE(all_close(r.O, filled(q_size(s), 1), f.is_bf16 ? 0x1p-8 : 1e-6));
      EXPECT_TRUE(all_close(r.lse, std::vector<double>(3, std::log(static_cast<double>(n))), 1e-5));
    }
}

TEST(Ragged, HeadDimsAreServedOrRefused) {
  for (const Forward& f : forwards())
    for (const std::int64_t head_dim : {1, 7, 64, 100, 127, 128, 129, 192, 256, 257, 1000}) {
      const bool must = head_dim <= 128 && (!f.is_bf16 || head_dim % 64 == 0);
      EXPECT_TRUE(!must || f.serves(head(9, 11, head_dim))) << f.name() << " has to serve head_dim " << head_dim;
      expect_matches_oracle(f, head(9, 11, head_dim), Scores::kNormal);
    }
}

TEST(Causal, MatchesOracle) {
  for (const Forward& f : forwards()) {
    std::size_t turn = 0;
    for (const AttentionShape& s :
         {head(128, 128, 64, true), head(33, 33, 8, true), head(5, 7, 4, true), head(7, 5, 4, true),
          head(65, 129, 64, true), head(129, 65, 3, true), head(113, 97, 8, true), head(1, 65, 24, true),
          head(64, 200, 20, true), head(70, 1, 16, true), head(6, 0, 5, true)})
      expect_matches_oracle(f, s, kRegimes[turn++ % 4]);
    for (const Scores regime : kRegimes) expect_matches_oracle(f, head(65, 97, 12, true), regime);
  }
}

TEST(Causal, IsAlignedBottomRight) {
  for (const Forward& f : forwards()) {
    if (!f.serves(head(2, 5, 1, true))) continue;
    SCOPED_TRACE(f.name());
    const double tolerance = f.is_bf16 ? 5 * 0x1p-8 : 1e-5;
    const Result wide = run(f, head(2, 5, 1, true), {filled(2, 0), filled(5, 0), {1, 2, 3, 4, 5}});
    EXPECT_TRUE(all_close(wide.O, std::vector<float>{2.5f, 3}, tolerance)) << "2 queries, 5 keys: 4 and 5 are seen";
    const Result tall = run(f, head(4, 2, 1, true), {filled(4, 0), filled(2, 0), {2, 5}});
    EXPECT_TRUE(all_close(tall.O, std::vector<float>{0, 0, 2, 3.5f}, tolerance)) << "4 queries, 2 keys: the last 2 see";
  }
}

TEST(Causal, RowsWithoutKeysAreZero) {
  // Rows 0 to 129 see no key: a whole tile of queries, then part of one.
  for (const Forward& f : forwards()) {
    const AttentionShape s = f.served(head(200, 70, 4, true));
    expect_matches_oracle(f, s, Scores::kLow);
    const Result r = run(f, s, f.rounded(attention_data(s, Scores::kNormal)));
    EXPECT_TRUE(all_close(std::vector<float>(r.lse.begin(), r.lse.begin() + 130), filled(130, -kInf), 0));
    EXPECT_EQ(std::count(r.O.begin(), r.O.begin() + 130 * s.head_dim, 0.0f), 130 * s.head_dim);
  }
}

TEST(Heads, EachReadsItsOwnQueriesKeysAndValues) {
  for (const Forward& f : forwards()) {
    expect_matches_oracle(f, heads(2, 3, 3, 17, 33, 40), Scores::kGrowing);
    expect_matches_oracle(f, heads(3, 2, 2, 5, 7, 64, true), Scores::kNormal);
  }
}

TEST(Heads, GroupedHeadsReadTheirOwnKvHead) {
  for (const Forward& f : forwards()) {
    expect_matches_oracle(f, heads(2, 3, 1, 5, 7, 4), Scores::kNormal);
    expect_matches_oracle(f, heads(2, 6, 3, 17, 33, 20, true), Scores::kLarge);
    expect_matches_oracle(f, heads(1, 4, 2, 31, 65, 40, true), Scores::kGrowing);
    expect_matches_oracle(f, heads(3, 8, 2, 5, 3, 3), Scores::kLow);
  }
}

TEST(Heads, NeighboursShareAKvHead) {
  const AttentionShape s = heads(1, 4, 2, 1, 1, 1);
  for (const Forward& f : forwards()) {
    if (!f.serves(s)) continue;
    EXPECT_EQ(run(f, s, {filled(4, 1), filled(2, 1), {1, 2}}).O, (std::vector<float>{1, 1, 2, 2})) << f.name();
  }
}

TEST(Heads, MoreThanAGridsSecondDimensionHolds) {
  for (const Forward& f : forwards()) {
    std::int64_t batch = 65536;
#ifdef NANOLM_EMULATED
    // So many blocks take seconds, with a matrix of scores a minute; a grid that ends earlier shows the same.
    emulator::set_grid_limit(255), batch = 300;
#endif
    expect_zeros(f, f.served(heads(batch, 1, 1, 1, 0, 8)));
  }
}

// Small shapes for every branch, in allocations of exactly their size: what compute-sanitizer is run with.
TEST(Sanitize, WholeTiles) {
  for (const Forward& f : forwards()) expect_matches_oracle(f, head(128, 128, 64), Scores::kNormal, {false});
}
TEST(Sanitize, RaggedTiles) {
  for (const Forward& f : forwards())
    for (const std::int64_t head_dim : {7, 64, 100, 128})
      expect_matches_oracle(f, head(33, 70, head_dim), Scores::kNormal, {false});
}
TEST(Sanitize, Causal) {
  for (const Forward& f : forwards())
    for (const AttentionShape& s : {head(70, 70, 64, true), head(5, 70, 7, true), head(140, 9, 100, true)})
      expect_matches_oracle(f, s, Scores::kGrowing, {false});
}
TEST(Sanitize, GroupedHeads) {
  for (const Forward& f : forwards()) {
    expect_matches_oracle(f, heads(2, 4, 2, 9, 33, 64, true), Scores::kNormal, {false});
    expect_matches_oracle(f, heads(2, 2, 1, 3, 5, 7), Scores::kNormal, {false});
  }
}
TEST(Sanitize, EmptyAndMisaligned) {
  for (const Forward& f : forwards()) {
    expect_matches_oracle(f, heads(2, 2, 1, 5, 0, 64), Scores::kNormal, {false});
    expect_matches_oracle(f, head(0, 5, 64), Scores::kNormal, {false});
    expect_matches_oracle(f, head(9, 17, 64), Scores::kNormal, {false, kAll});
  }
}

}  // namespace
}  // namespace nanolm::cuda
