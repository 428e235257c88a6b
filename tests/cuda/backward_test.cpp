// The backward pass of each rung against the oracle. The suites stand in the order in which rung 05 is written: Launch,
// Values, Scores, Delta, Ragged, Causal, (Skip), Heads; the one in brackets counts bytes: backward_emulated_test.cpp.
// Values and Scores look at dV alone.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_backward.h"
#ifdef NANOLM_EMULATED
#include "emulator/counters.h"
#endif

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};
constexpr std::int64_t kWhole = 128;  // a multiple of the tiles

Floats filled(std::int64_t size, float value) { return Floats(static_cast<std::size_t>(size), value); }

AttentionShape heads(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, scale, causal};
}
AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return heads(1, 1, 1, seqlen_q, seqlen_k, head_dim, causal);
}

// No queries or no keys: what there is of gradients is zeros, whatever the kernels do with a tile.
void expect_zeros(const Backward& b, const AttentionShape& s, Place place = {}) {
  SCOPED_TRACE(b.name() + ", " + name(s));
  const Gradients g = run(b, Problem(s, Scores::kNormal), place);
  EXPECT_TRUE(all_close(g.dV, filled(kv_size(s), 0), 0)) << "dV";
  EXPECT_TRUE(all_close(g.dK, filled(kv_size(s), 0), 0)) << "dK";
  EXPECT_TRUE(all_close(g.dQ, filled(q_size(s), 0), 0)) << "dQ";
}

TEST(Launch, CoversEveryRowOfAHead) {
  for (const Backward& b : backwards())
    for (const std::int64_t blocks : {1, 2, 5})
      for (const std::int64_t head_dim : {64, 128}) {
        expect_zeros(b, head(blocks * kWhole, 0, head_dim));
        expect_zeros(b, head(0, blocks * kWhole, head_dim));
      }
}

TEST(Launch, CoversEveryHeadAndBatch) {
  for (const Backward& b : backwards()) {
    expect_zeros(b, heads(2, 3, 3, kWhole, 0, 64));
    expect_zeros(b, heads(3, 4, 2, 0, 2 * kWhole, 64, /*causal=*/true));
  }
}

TEST(Launch, NothingToDoLeavesNoErrorBehind) {
  for (const Backward& b : backwards())
    for (const bool guarded : {true, false}) {  // false: null pointers where a tensor is empty
      expect_zeros(b, heads(0, 2, 2, kWhole, kWhole, 64), {guarded});
      expect_zeros(b, heads(2, 2, 1, 0, 0, 64, true), {guarded});
      expect_zeros(b, head(kWhole, 0, 64), {guarded});
    }
}

TEST(Launch, RefusesBadShapesAndWritesNothing) {
  for (const Backward& b : backwards()) {
    SCOPED_TRACE(b.name());
    const AttentionShape good = heads(2, 4, 2, 5, 7, 64);
    AttentionShape s = good;
    for (const float scale : {0.0f, -0.125f, kNaN, kInf}) expect_refused(b, good, (s.scale = scale, s));
    s = good, expect_refused(b, good, (s.kv_heads = 3, s));
    s = good, expect_refused(b, good, (s.batch = -1, s));
    s = good, expect_refused(b, good, (s.seqlen_q = -5, s));
    s = good, expect_refused(b, good, (s.seqlen_k = -7, s));
    s = good, expect_refused(b, good, (s.head_dim = 0, s));
    s = good, expect_refused(b, good, (s.seqlen_k = std::int64_t{1} << 60, s));
    expect_zeros(b, head(kWhole, 0, 64));
  }
}

// With Q = 0 every key has the weight 1 / n, so each row of dV is the sum of dO over n.
TEST(Values, EqualScoresGiveTheMeanOfTheGradients) {
  for (const Backward& b : backwards())
    for (const std::int64_t blocks : {1, 2}) {
      const AttentionShape s = head(blocks * kWhole, kWhole, 64);
      SCOPED_TRACE(b.name() + ", " + name(s));
      Problem p(s, Scores::kNormal);
      p.data.Q.assign(p.data.Q.size(), 0);
      p.lse.assign(p.lse.size(), std::log(static_cast<float>(kWhole)));
      expect_close(p, run(b, p), kOfV);
    }
}

TEST(Scores, WholeTilesMatchOracleInDV) {
  for (const Backward& b : backwards()) {
    for (const Scores regime : kRegimes) expect_matches_oracle(b, head(kWhole, kWhole, 64), regime, kOfV);
    expect_matches_oracle(b, head(2 * kWhole, kWhole, 128), Scores::kLarge, kOfV);
  }
}

TEST(Scores, ScaleIsWhatTheShapeSays) {
  for (const Backward& b : backwards())
    for (const float scale : {0.02f, 0.7f}) {
      AttentionShape s = head(kWhole, kWhole, 64);
      s.scale = scale;
      expect_matches_oracle(b, s, Scores::kNormal, kOfV);
      expect_matches_oracle(b, s, Scores::kLow, kOfV);
    }
}

TEST(Delta, WholeTilesMatchOracle) {
  for (const Backward& b : backwards()) {
    for (const Scores regime : kRegimes) expect_matches_oracle(b, head(kWhole, kWhole, 64), regime);
    expect_matches_oracle(b, head(2 * kWhole, kWhole, 64), Scores::kGrowing);
    expect_matches_oracle(b, head(kWhole, 2 * kWhole, 128), Scores::kLarge);
  }
}

TEST(Delta, ScaleEntersOnceMore) {
  for (const Backward& b : backwards())
    for (const float scale : {0.02f, 0.7f}) {
      AttentionShape s = head(kWhole, kWhole, 64);
      s.scale = scale;
      expect_matches_oracle(b, s, Scores::kNormal);
    }
}

// dO is alike in all columns and V in all rows: dP is the same for each key, and dS = P (dP - delta) is 0.
TEST(Delta, EqualValuesGiveNoGradientOfScores) {
  for (const Backward& b : backwards()) {
    const AttentionShape s = head(kWhole, kWhole, 64);
    Problem p(s, Scores::kNormal);
    p.data.V.assign(p.data.V.size(), 1);
    p.O.assign(p.O.size(), 1);
    const Gradients g = run(b, p);
    EXPECT_TRUE(all_close(g.dQ, filled(q_size(s), 0), 1e-4)) << "dQ, " << b.name();
    EXPECT_TRUE(all_close(g.dK, filled(kv_size(s), 0), 1e-4)) << "dK, " << b.name();
  }
}

TEST(Ragged, LengthsMatchOracle) {
  for (const Backward& b : backwards()) {
    std::size_t turn = 0;
    for (const AttentionShape& s : {head(1, 1, 64), head(5, 7, 64), head(17, 33, 64), head(64, 63, 64),
                                    head(127, 129, 64), head(113, 97, 64), head(1, 65, 64), head(70, 1, 128)})
      expect_matches_oracle(b, s, kRegimes[turn++ % 4]);
    for (const Scores regime : kRegimes) expect_matches_oracle(b, head(33, 130, 64), regime);
  }
}

TEST(Ragged, HeadDimsMatchOracle) {
  for (const Backward& b : backwards()) {
    std::size_t turn = 0;
    for (const std::int64_t head_dim : {1, 3, 4, 7, 20, 31, 33, 40, 63, 65, 100, 127})
      expect_matches_oracle(b, head(21, 37, head_dim), kRegimes[turn++ % 4]);
  }
}

TEST(Ragged, HeadDimsAreServedOrRefused) {
  for (const Backward& b : backwards())
    for (const std::int64_t head_dim : {1, 8, 64, 80, 128, 129, 192, 256, 257, 1000}) {
      EXPECT_TRUE(head_dim > 128 || b.serves(head(9, 11, head_dim))) << b.name() << " has to serve " << head_dim;
      expect_matches_oracle(b, head(9, 11, head_dim), Scores::kNormal);
    }
}

TEST(Causal, MatchesOracle) {
  for (const Backward& b : backwards()) {
    std::size_t turn = 0;
    for (const AttentionShape& s : {head(128, 128, 64, true), head(33, 33, 8, true), head(5, 7, 4, true),
                                    head(7, 5, 4, true), head(65, 150, 64, true), head(150, 65, 3, true),
                                    head(113, 97, 100, true), head(1, 65, 24, true), head(70, 1, 16, true)})
      expect_matches_oracle(b, s, kRegimes[turn++ % 4]);
    for (const Scores regime : kRegimes) expect_matches_oracle(b, head(65, 97, 12, true), regime);
  }
}

TEST(Causal, RowsWithoutKeysAreZero) {
  // Rows 0 to 129 see no key: a whole tile of queries, then part of one.
  for (const Backward& b : backwards()) {
    const AttentionShape s = head(200, 70, 4, true);
    expect_matches_oracle(b, s, Scores::kLow);
    const Gradients g = run(b, Problem(s, Scores::kNormal));
    EXPECT_EQ(std::count(g.dQ.begin(), g.dQ.begin() + 130 * s.head_dim, 0.0f), 130 * s.head_dim);
  }
}

TEST(Heads, EachHasItsOwn) {
  for (const Backward& b : backwards()) {
    expect_matches_oracle(b, heads(2, 3, 3, 17, 33, 40), Scores::kGrowing);
    expect_matches_oracle(b, heads(3, 2, 2, 5, 7, 64, true), Scores::kNormal);
  }
}

TEST(Heads, OfAGroupAddToTheirKvHead) {
  for (const Backward& b : backwards()) {
    expect_matches_oracle(b, heads(2, 3, 1, 5, 7, 4), Scores::kNormal);
    expect_matches_oracle(b, heads(2, 6, 3, 17, 33, 20, true), Scores::kLarge);
    expect_matches_oracle(b, heads(1, 4, 2, 70, 65, 40, true), Scores::kGrowing);
    expect_matches_oracle(b, heads(3, 8, 2, 5, 3, 3), Scores::kLow);
  }
}

// Two query heads share one kv head.
TEST(Heads, WorkedExampleOfTheNote) {
  const float ln3 = std::log(3.0f);
  AttentionShape s = heads(1, 2, 1, 1, 2, 1);
  s.scale = 0.5f;
  for (const Backward& b : backwards()) {
    Problem p(s, Scores::kNormal);
    p.data = {{1, 0}, {0, 2 * ln3}, {4, 8}};
    p.O = {7, 6}, p.dO = {1, 2}, p.lse = {std::log(4.0f), std::log(2.0f)};
    const Gradients g = run(b, p);
    EXPECT_TRUE(all_close(g.dV, Floats{1.25f, 1.75f}, 1e-5)) << "dV, " << b.name();
    EXPECT_TRUE(all_close(g.dK, Floats{-0.375f, 0.375f}, 1e-5)) << "dK, " << b.name();
    EXPECT_TRUE(all_close(g.dQ, Floats{0.82396f, 2.19722f}, 1e-5)) << "dQ, " << b.name();
  }
}

TEST(Heads, MoreThanAGridsSecondDimensionHolds) {
  for (const Backward& b : backwards()) {
    std::int64_t batch = 65536;
#ifdef NANOLM_EMULATED
    // So many blocks take minutes; a grid that ends earlier shows the same.
    emulator::set_grid_limit(60), batch = 70;
#endif
    expect_zeros(b, heads(batch, 1, 1, 1, 0, 8));
    expect_zeros(b, heads(batch, 1, 1, 0, 1, 8));
  }
}

// Small shapes for every branch, in allocations of exactly their size: what compute-sanitizer is run with.
TEST(Sanitize, WholeTiles) {
  for (const Backward& b : backwards()) expect_matches_oracle(b, head(128, 128, 64), Scores::kNormal, kOfAll, {false});
}
TEST(Sanitize, RaggedTiles) {
  for (const Backward& b : backwards())
    for (const std::int64_t head_dim : {7, 64, 100, 256})
      expect_matches_oracle(b, head(33, 70, head_dim), Scores::kNormal, kOfAll, {false});
}
TEST(Sanitize, CausalGroups) {
  for (const Backward& b : backwards())
    for (const AttentionShape& s : {heads(1, 2, 1, 70, 70, 64, true), head(5, 70, 7, true), head(140, 9, 100, true)})
      expect_matches_oracle(b, s, Scores::kGrowing, kOfAll, {false});
}
TEST(Sanitize, EmptyAndMisaligned) {
  for (const Backward& b : backwards()) {
    expect_zeros(b, heads(2, 2, 1, 5, 0, 64), {false});
    expect_zeros(b, head(0, 5, 64), {false});
    expect_matches_oracle(b, head(9, 17, 64), Scores::kNormal, kOfAll, {false, kAll});
  }
}

}  // namespace
}  // namespace nanolm::cuda
