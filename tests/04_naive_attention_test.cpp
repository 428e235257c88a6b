#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "nanolm/naive_attention.h"
#include "support/all_close.h"
#include "support/cases.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"
#include "support/scratch.h"

namespace nanolm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};

std::vector<Dim> rows_and_columns(const AttentionShape& s, const char* column, std::int64_t columns) {
  return {{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q}, {column, columns}};
}

std::vector<float> run(const AttentionShape& s, const AttentionData& data) {
  Output O(q_size(s));
  naive_attention(s, data.Q, data.K, data.V, O.span());
  EXPECT_TRUE(O.canaries_intact()) << "naive_attention() wrote outside O";
  return {O.span().begin(), O.span().end()};
}

void expect_matches_oracle(const AttentionShape& s) {
  for (const Scores regime : kRegimes) {
    SCOPED_TRACE(name(s) + ", " + name(regime));
    const Case this_case(s);
    const AttentionData data = attention_data(s, regime);
    const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
    EXPECT_TRUE(all_close(run(s, data), truth.O, output_tolerance(s, truth), rows_and_columns(s, "column", s.head_dim)))
        << "O" << derivation(s, truth, true);
  }
}

TEST(NaiveAttention, GivenChecksRefuseBadShapesAndWriteNothing) {
  const AttentionShape good{2, 4, 2, 3, 5, 8, 1.0f, false};
  const std::vector<float> Q(2 * 4 * 3 * 8), K(2 * 2 * 5 * 8);
  Output O(2 * 4 * 3 * 8), scores(2 * 4 * 3 * 5);
  const auto refused = [&](AttentionShape s) {
    EXPECT_THROW(naive_attention(s, Q, K, K, O.span()), std::invalid_argument) << name(s);
    EXPECT_THROW(attention_scores(s, Q, K, scores.span()), std::invalid_argument) << name(s);
    EXPECT_THROW(weighted_values(s, Q, K, O.span()), std::invalid_argument) << name(s);
  };
  AttentionShape s = good;
  refused((s.kv_heads = 3, s)), s = good;
  refused((s.kv_heads = 0, s)), s = good;
  refused((s.q_heads = 0, s)), s = good;
  refused((s.head_dim = 0, s)), s = good;
  refused((s.seqlen_q = -3, s)), s = good;
  refused((s.seqlen_k = 6, s)), s = good;
  refused((s.scale = 0, s)), s = good;
  refused((s.scale = -1, s)), s = good;
  refused((s.scale = kNaN, s)), s = good;
  EXPECT_THROW(softmax_rows(scores.span(), 7, 17), std::invalid_argument);
  EXPECT_THROW(softmax_rows(scores.span(), -1, -120), std::invalid_argument);
  EXPECT_THROW(score_matrix_bytes(1, -32, 4096, 2), std::invalid_argument);
  EXPECT_THROW(score_matrix_bytes(1, 32, static_cast<double>(kInf), 2), std::invalid_argument);
  EXPECT_TRUE(O.untouched());
  EXPECT_TRUE(scores.untouched());
}

TEST(NaiveAttention, GivenCheckRefusesAScoreMatrixBeyond64Bits) {
  const AttentionShape s{0, 1, 1, 1 << 20, 1 << 20, 1, 1.0f, false};
  AttentionShape big = s;
  big.batch = std::int64_t{1} << 24;
  EXPECT_THROW(scores_size(big), std::invalid_argument);
  EXPECT_EQ(scores_size(s), 0);
}

TEST(ScoreMatrixBytes, IsOneGiBAtLength4096With32HeadsInFp16) {
  EXPECT_EQ(score_matrix_bytes(1, 32, 4096, 2), 1073741824.0);
  EXPECT_EQ(score_matrix_bytes(3, 32, 4096, 2), 3 * 1073741824.0) << "each batch element has its own";
  EXPECT_EQ(score_matrix_bytes(1, 8, 1024, 4), 33554432.0);
}

TEST(ScoreMatrixBytes, GrowsWithTheSquareOfTheLengthUpTo131072) {
  EXPECT_EQ(score_matrix_bytes(1, 32, 131072, 2), 1024.0 * 1073741824.0);
  EXPECT_EQ(score_matrix_bytes(1, 1, 131072, 4), 68719476736.0) << "counts above 2^31 must not wrap";
}

TEST(AttentionScores, AreScaledDotProductsOfTheRightHeads) {
  // Rows pick one key component each, so a swapped head or a transposed matrix shows as another number.
  const AttentionShape s{1, 2, 2, 2, 3, 2, 0.5f, false};
  const std::vector<float> Q{1, 0, 0, 1, 2, 0, 0, 2}, K{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  Output scores(scores_size(s));
  attention_scores(s, Q, K, scores.span());
  EXPECT_TRUE(all_close(scores, std::vector<float>{0.5f, 1.5f, 2.5f, 1, 2, 3, 10, 30, 50, 20, 40, 60}, 0));
  EXPECT_TRUE(scores.canaries_intact());
}

TEST(AttentionScores, CausalMaskIsAlignedBottomRight) {
  const float m = -kInf;
  AttentionShape s{1, 1, 1, 2, 4, 1, 1.0f, true};
  Output wide(8), tall(8);
  attention_scores(s, std::vector<float>(2, 1), std::vector<float>{1, 2, 3, 4}, wide.span());
  EXPECT_TRUE(all_close(wide, std::vector<float>{1, 2, 3, m, 1, 2, 3, 4}, 0));
  s.seqlen_q = 4, s.seqlen_k = 2;
  attention_scores(s, std::vector<float>(4, 1), std::vector<float>{1, 2}, tall.span());
  EXPECT_TRUE(all_close(tall, std::vector<float>{m, m, m, m, 1, m, 1, 2}, 0));
}

TEST(AttentionScores, MaskIsSetNotAdded) {
  const AttentionShape s{1, 1, 1, 2, 2, 1, 1.0f, true};
  Output scores(4);
  attention_scores(s, std::vector<float>{1, 1}, std::vector<float>{3, kNaN}, scores.span());
  EXPECT_EQ(scores[1], -kInf) << "NaN + (-inf) is NaN; a masked score must be -inf";
}

TEST(SoftmaxRows, MakesEachRowADistribution) {
  std::vector<float> rows{0, std::log(3.0f), 1000, 999, -1000, -1001, 90, -90};
  softmax_rows(rows, 4, 2);
  const double small = 1 / (1 + std::exp(1.0));
  EXPECT_TRUE(all_close(rows, std::vector<double>{0.25, 0.75, 1 - small, small, 1 - small, small, 1, 0}, 1e-6));
}

TEST(SoftmaxRows, RowOfMinusInfinityBecomesZeros) {
  std::vector<float> rows{-kInf, -kInf, -kInf, 2, -kInf, 2};
  softmax_rows(rows, 2, 3);
  EXPECT_EQ(rows, (std::vector<float>{0, 0, 0, 0.5f, 0, 0.5f}));
}

TEST(SoftmaxRows, OneColumnIsOne) {
  std::vector<float> rows{0.7f, -300};
  softmax_rows(rows, 2, 1);
  EXPECT_EQ(rows, (std::vector<float>{1, 1}));
}

TEST(SoftmaxRows, NaNStaysInItsRow) {
  std::vector<float> rows{1, kNaN, 1, 1};
  softmax_rows(rows, 2, 2);
  EXPECT_TRUE(std::isnan(rows[0]) && std::isnan(rows[1]));
  EXPECT_EQ(rows[2], 0.5f);
}

TEST(WeightedValues, AddUpValueRowsByTheirWeights) {
  const AttentionShape s{1, 2, 1, 1, 2, 3, 1.0f, false};
  const std::vector<float> P{0.25f, 0.75f, 1, 0}, V{1, 2, 3, 10, 20, 30};
  Output O(6);
  weighted_values(s, P, V, O.span());
  EXPECT_TRUE(all_close(O, std::vector<float>{7.75f, 15.5f, 23.25f, 1, 2, 3}, 1e-6));
  EXPECT_TRUE(O.canaries_intact());
}

TEST(WeightedValues, MaskedValuesAreNotRead) {
  const AttentionShape s{1, 1, 1, 2, 2, 1, 1.0f, true};
  Output O(2);
  weighted_values(s, std::vector<float>{1, 0, 0.5f, 0.5f}, std::vector<float>{3, kNaN}, O.span());
  EXPECT_EQ(O[0], 3.0f);
  EXPECT_TRUE(std::isnan(O[1]));
}

TEST(NaiveAttention, MatchesOracle) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/false)) expect_matches_oracle(s);
}

TEST(NaiveAttention, GroupedHeadsReadTheirOwnKvHead) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/true)) expect_matches_oracle(s);
}

TEST(NaiveAttention, RowWithoutKeysIsZero) {
  const AttentionShape s{1, 1, 1, 3, 2, 1, 1.0f, true};
  EXPECT_EQ(run(s, {{1, 1, 1}, {2, 2}, {3, 5}}), (std::vector<float>{0, 3, 4}));
  naive_attention(AttentionShape{0}, {}, {}, {}, {});  // nor does an empty batch divide by 0
}

TEST(NaiveAttention, NaNInARowOfQStaysInThatRow) {
  const AttentionShape s{2, 2, 1, 5, 7, 4, 0.5f, true};
  AttentionData data = attention_data(s, Scores::kNormal);
  const std::vector<float> clean = run(s, data);
  data.Q[4 * 11] = kNaN;  // batch 1, head 0, row 1
  const std::vector<float> O = run(s, data);
  for (std::size_t i = 0; i < O.size(); ++i)
    EXPECT_TRUE(i / 4 == 11 ? std::isnan(O[i]) : O[i] == clean[i]) << "row " << i / 4;
}

TEST(NaiveAttention, HoldsOneScoreMatrixAndNoMore) {
  const AttentionShape s{1, 2, 2, 256, 256, 8, 0.35f, false};
  const AttentionData data = attention_data(s, Scores::kNormal);
  Output O(q_size(s));
  ScratchMeter meter;
  naive_attention(s, data.Q, data.K, data.V, O.span());
  const auto matrix = static_cast<std::int64_t>(score_matrix_bytes(1, 2, 256, 4));
  EXPECT_GE(meter.peak_bytes(), matrix) << "the scores are to be materialised";
  EXPECT_LE(meter.peak_bytes(), matrix + 65536) << "a second matrix of that size is not needed: softmax works in place";
}

TEST(NaiveAttention, WorkedExampleOfTheNote) {
  // Two queries, two keys, head_dim 1, scale 1, causal: see notes/04_naive_attention.md.
  const AttentionShape s{1, 1, 1, 2, 2, 1, 1.0f, true};
  const std::vector<float> O = run(s, {{1, 2}, {0.5f, 1}, {10, 20}});
  EXPECT_EQ(O[0], 10.0f);
  EXPECT_NEAR(O[1], 17.3106, 5e-5);  // scores 1 and 2, weights 0.26894 and 0.73106
}

}  // namespace
}  // namespace nanolm
