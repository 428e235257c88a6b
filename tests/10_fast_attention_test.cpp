#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "nanolm/fast_attention.h"
#include "support/all_close.h"
#include "support/backward_problem.h"
#include "support/cases.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"
#include "support/scratch.h"

namespace nanolm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kEps = 0x1p-23;
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};
constexpr std::int64_t kHeadDims[] = {1, 7, 40, 64, 80, 96, 100, 128, 256};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
AttentionShape square(std::int64_t seqlen, std::int64_t head_dim, bool causal) {
  return {1, 1, 1, seqlen, seqlen, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}

struct Result {
  explicit Result(const AttentionShape& s) : O(q_size(s)), lse(lse_size(s)) {}
  Output O, lse;
};
Result run(const AttentionShape& s, int threads, const AttentionData& d) {
  Result r(s);
  fast_attention(s, threads, d.Q, d.K, d.V, r.O.span(), r.lse.span());
  EXPECT_TRUE(r.O.canaries_intact() && r.lse.canaries_intact());
  return r;
}
void expect_matches_oracle(const AttentionShape& s, int threads) {
  for (const Scores regime : kRegimes) {
    SCOPED_TRACE(name(s) + ", " + name(regime) + ", " + std::to_string(threads) + " threads");
    const Case this_case(s, {kBlockQ, kBlockK});
    const AttentionData data = attention_data(s, regime);
    const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
    const Result r = run(s, threads, data);
    std::vector<Dim> dims{{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q, kBlockQ}};
    EXPECT_TRUE(all_close(r.lse, truth.lse, lse_tolerance(s, truth), dims)) << "lse" << derivation(s, truth, false);
    dims.push_back({"column", s.head_dim});
    EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(s, truth), dims)) << "O" << derivation(s, truth, true);
  }
}

TEST(FastAttention, GivenChecksRefuseBadInputAndWriteNothing) {
  const AttentionShape good{1, 4, 2, 3, 5, 2, 1.0f, false};
  const Floats Q(24), K(20), many(20000);
  Output O(24), lse(12), S(6 * kBlockK), one(1);
  const auto refused = [&](AttentionShape s, int threads, const Floats& k) {
    EXPECT_THROW(fast_attention(s, threads, Q, k, K, O.span(), lse.span()), std::invalid_argument);
  };
  AttentionShape indivisible = good, wide = good;
  indivisible.kv_heads = 3, wide.head_dim = 257;
  refused(good, 0, K);
  refused(good, -1, K);
  refused(good, 2, Q);
  refused(indivisible, 1, K);
  refused(wide, 1, K);
  EXPECT_THROW(pack_keys(3, 2, K, O.span()), std::invalid_argument);
  EXPECT_THROW(pack_values(10, 2, K, O.span()), std::invalid_argument);
  EXPECT_THROW(score_tile({300, 4, false}, many, many, S.span()), std::invalid_argument);
  EXPECT_THROW(score_tile({2, 4, false}, Floats(11), many, S.span()), std::invalid_argument);
  EXPECT_THROW(value_tile({2, 6, 300, 2}, many, many, S.span()), std::invalid_argument);
  EXPECT_THROW(value_tile({250, 5, 254, 2}, many, many, S.span()), std::invalid_argument);
  EXPECT_THROW(exp2_all(Q, one.span()), std::invalid_argument);
  EXPECT_THROW(fold_scores(257, 2, S.span(), one.span(), one.span(), S.span()), std::invalid_argument);
  EXPECT_TRUE(O.untouched() && lse.untouched() && S.untouched() && one.untouched());
}

TEST(Pack, KeysBecomeColumns) {
  for (const std::int64_t keys : {0, 1, 4, 15, 16, 17, 31, 32, 33, 70})
    for (const std::int64_t head_dim : {1, 3, 4, 7, 40}) {
      SCOPED_TRACE(std::to_string(keys) + " keys, head_dim " + std::to_string(head_dim));
      const Floats K = normal(keys * head_dim);
      Output panels(padded(keys) * head_dim);
      pack_keys(keys, head_dim, K, panels.span());
      for (std::int64_t j = 0; j < padded(keys); ++j)
        for (std::int64_t h = 0; h < head_dim; ++h)
          ASSERT_EQ(panels[at((j / 16 * head_dim + h) * 16 + j % 16)], j < keys ? K[at(j * head_dim + h)] : 0)
              << "element " << h << " of key " << j;
      EXPECT_TRUE(panels.canaries_intact());
    }
}

TEST(Pack, ValuesKeepTheirRows) {
  for (const std::int64_t keys : {0, 1, 5, 33})
    for (const std::int64_t head_dim : {1, 7, 16, 31, 32, 40, 100}) {
      SCOPED_TRACE(std::to_string(keys) + " keys, head_dim " + std::to_string(head_dim));
      const Floats V = normal(keys * head_dim);
      Output panels(keys * padded(head_dim));
      pack_values(keys, head_dim, V, panels.span());
      for (std::int64_t j = 0; j < keys; ++j)
        for (std::int64_t h = 0; h < padded(head_dim); ++h)
          ASSERT_EQ(panels[at((h / 16 * keys + j) * 16 + h % 16)], h < head_dim ? V[at(j * head_dim + h)] : 0)
              << "element " << h << " of key " << j;
      EXPECT_TRUE(panels.canaries_intact());
    }
}

// Panels of 32 columns from a matrix [rows, 32].
Floats two_panels(const Floats& matrix) {
  Floats panels(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const std::size_t row = i / 32, column = i % 32;
    panels[column / 16 * matrix.size() / 2 + row * 16 + column % 16] = matrix[i];
  }
  return panels;
}

void expect_score_tile(const ScoreTile& t, const Floats& Q, const Floats& keys) {
  SCOPED_TRACE("head_dim " + std::to_string(t.head_dim) + ", visible " + std::to_string(t.visible) +
               (t.causal ? ", causal" : ""));
  Output S(5 * kBlockK + 32);
  score_tile(t, Q, two_panels(keys), S.span());
  const std::int64_t slope = t.causal ? 1 : 0;
  for (std::int64_t r = 0; r < 6; ++r)
    for (std::int64_t c = 0; c < 32; ++c) {
      if (c >= t.visible + 5 * slope) continue;  // no row sees it
      double dot = 0, size = 0;
      for (std::int64_t h = 0; h < t.head_dim; ++h) {
        const double term = static_cast<double>(Q[at(r * t.head_dim + h)]) * keys[at(h * 32 + c)];
        dot += term;
        size += std::abs(term);
      }
      const bool sees = c < t.visible + r * slope;
      ASSERT_TRUE(is_close(S[at(r * kBlockK + c)], sees ? dot : -HUGE_VAL, kEps * (2 + std::sqrt(t.head_dim)) * size))
          << "row " << r << ", column " << c << ": " << S[at(r * kBlockK + c)] << ", expected " << dot;
    }
  for (std::int64_t i = 32; i < kBlockK; ++i) ASSERT_TRUE(std::isnan(S[at(i)])) << "wrote behind column 31";
  EXPECT_TRUE(S.canaries_intact());
}

TEST(ScoreTile, IsTheProductOfSixRowsAndTwoPanels) {
  for (const std::int64_t head_dim : kHeadDims)
    expect_score_tile({head_dim, 32, false}, normal(6 * head_dim), normal(32 * head_dim));
}

TEST(ScoreTile, HidesKeysForEveryTail) {
  const Floats Q = normal(6 * 7), keys = normal(32 * 7);
  for (std::int64_t visible = -5; visible <= 40; ++visible)
    for (const bool causal : {false, true}) expect_score_tile({7, visible, causal}, Q, keys);
}

TEST(ScoreTile, HiddenKeysMayHoldNaN) {
  Output S(5 * kBlockK + 32);
  Floats keys(64, 1.0f);
  for (std::size_t c = 3; c < 32; ++c) keys[c] = kNaN;
  score_tile({2, 3, false}, Floats(12, 1.0f), two_panels(keys), S.span());
  for (std::size_t r = 0; r < 6; ++r) {
    EXPECT_EQ(S[r * kBlockK + 2], 2);
    EXPECT_EQ(S[r * kBlockK + 3], -kInf);
  }
}

float exp2_of(float x) {
  Output y(1);
  exp2_all(Floats{x}, y.span());
  return y[0];
}
double ulp_error(float y, float x) {
  const double truth = std::exp2(static_cast<double>(x));
  return std::abs(y - truth) / std::ldexp(1.0, std::ilogb(truth) - 23);
}
TEST(Exp2, WholeNumbersAndEnds) {
  for (int n = -126; n <= 127; ++n) EXPECT_EQ(exp2_of(static_cast<float>(n)), std::ldexp(1.0f, n)) << "2^" << n;
  for (const float x : {-kInf, -1e30f, -1e5f, -150.0f, -128.3f, -127.0f, -126.75f}) EXPECT_EQ(exp2_of(x), 0) << x;
  EXPECT_TRUE(std::isnan(exp2_of(kNaN)));
  EXPECT_TRUE(std::isnan(exp2_of(-kNaN)));
  EXPECT_EQ(exp2_of(-0.0f), 1);
  EXPECT_EQ(exp2_of(-0x1p-30f), 1);
}

TEST(Exp2, IsExactToTheLastPlaces) {
  Floats x;  // every 4099th float from -126 to -2^-26 and from 2^-26 to 100
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-26f); bits <= std::bit_cast<std::uint32_t>(126.0f);
       bits += 4099)
    for (const float sign : {-1.0f, 1.0f}) x.push_back(sign * std::bit_cast<float>(bits));
  Output y(static_cast<std::int64_t>(x.size()));
  exp2_all(x, y.span());
  EXPECT_TRUE(y.canaries_intact());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulp_error(y[i], x[i]), 1.25) << "units in the last place, 2^" << x[i] << " = " << y[i];
}

// All 260 million of them: `ctest -C slow -L slow` runs it.
TEST(Exp2, DISABLED_IsExactToTheLastPlacesForEveryFloat) {
#if defined(NANOLM_FUSED)
  const double bound = 1;
#else
  const double bound = 1.25;
#endif
  constexpr std::uint32_t kChunk = 1 << 16, kEnd = std::bit_cast<std::uint32_t>(126.0f);
  Floats x(kChunk), y(kChunk);
  double worst = 0;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-26f); bits <= kEnd; bits += kChunk) {
    for (std::uint32_t i = 0; i < kChunk; ++i) x[i] = -std::bit_cast<float>(std::min(bits + i, kEnd));
    exp2_all(x, y);
    for (std::uint32_t i = 0; i < kChunk; ++i) {
      const double error = ulp_error(y[i], x[i]);
      ASSERT_LE(error, bound) << "units in the last place, 2^" << x[i];
      worst = std::max(worst, error);
    }
  }
  std::printf("largest error: %.3f units in the last place\n", worst);
}

TEST(ValueTile, AddsEachRowsOwnKeysForEveryTail) {
  for (const std::int64_t keys : {0, 1, 2, 7, 31, 64, 250})
    for (std::int64_t extra = 0; extra < 6; ++extra) {
      SCOPED_TRACE(std::to_string(keys) + " keys, " + std::to_string(extra) + " more");
      const std::int64_t rows = keys + extra + 3, O_row = 64;
      Floats V = normal(32 * rows), P(at(6 * kBlockK), kNaN);  // what is not to be read is NaN
      for (std::int64_t j = keys + extra; j < rows; ++j)
        for (std::int64_t c = 0; c < 32; ++c) V[at(j * 32 + c)] = kNaN;
      const Floats weights = normal(6 * rows), before = normal(6 * O_row);
      Output O(6 * O_row);
      std::copy(before.begin(), before.end(), O.span().begin());
      std::vector<double> expected(before.begin(), before.end());
      for (std::int64_t r = 0; r < 6; ++r)
        for (std::int64_t j = 0; j < keys + std::min(r, extra); ++j) {
          const float p = P[at(r * kBlockK + j)] = weights[at(r * rows + j)];
          for (std::int64_t c = 0; c < 32; ++c)
            expected[at(r * O_row + c)] += static_cast<double>(p) * V[at(j * 32 + c)];
        }
      value_tile({keys, extra, rows, 40}, P, two_panels(V), O.span());
      EXPECT_TRUE(all_close(O, expected, kEps * 4 * (4 + std::sqrt(keys)) * 4, {{"row", 6}, {"column", O_row}}));
      EXPECT_TRUE(O.canaries_intact());
    }
}

// A row of scores as score_tile leaves it: -inf behind its keys.
Floats score_row(const Floats& scores) {
  Floats S(at(padded(static_cast<std::int64_t>(scores.size()))), -kInf);
  std::copy(scores.begin(), scores.end(), S.begin());
  return S;
}

TEST(FoldScores, KeepsMaximumSumAndWeights) {
  Floats S = score_row({1, 3, 2}), m{-kInf}, d{0}, O(32);
  fold_scores(3, 2, S, m, d, O);
  EXPECT_EQ(m[0], 3);
  EXPECT_NEAR(d[0], 1.75, 1e-6);
  EXPECT_TRUE(all_close(Floats(S.begin(), S.begin() + 3), Floats{0.25f, 1, 0.5f}, 1e-6));
}

TEST(FoldScores, FindsTheMaximumWhereverItStands) {
  for (std::size_t place = 0; place < 70; ++place) {
    Floats scores(70), m{-kInf}, d{0}, O(32);
    scores[place] = 1000;  // 2^1000 is no float
    Floats S = score_row(scores);
    fold_scores(70, 1, S, m, d, O);
    EXPECT_EQ((Floats{m[0], d[0], S[place]}), (Floats{1000, 1, 1})) << "at key " << place;
  }
}

TEST(FoldScores, RescalesWhatWasSummedWhenTheMaximumGrows) {
  for (const std::int64_t head_dim : {2, 40, 256}) {
    Floats S = score_row(Floats(100, 5.0f)), m{3}, d{8}, O(at(padded(head_dim)), 6);
    fold_scores(100, head_dim, S, m, d, O);
    EXPECT_EQ(m[0], 5);
    EXPECT_NEAR(d[0], 8 * 0.25 + 100, 1e-4);
    EXPECT_TRUE(all_close(Floats(O.begin(), O.begin() + head_dim), Floats(at(head_dim), 1.5f), 1e-6));
  }
}

TEST(FoldScores, LeavesOutputAloneWhileTheMaximumStays) {
  Floats S = score_row({-1, 4}), m{4}, d{1}, O(32, 7);
  fold_scores(2, 3, S, m, d, O);
  EXPECT_EQ(m[0], 4);
  EXPECT_NEAR(d[0], 2 + 0x1p-5, 1e-6);
  EXPECT_EQ(Floats(O.begin(), O.begin() + 3), Floats(3, 7));
}

TEST(FoldScores, HiddenScoresChangeNothing) {
  Floats S = score_row({-kInf, -kInf}), m{-kInf}, d{0}, O(32);
  fold_scores(2, 1, S, m, d, O);
  EXPECT_EQ((Floats{S[0], S[1], m[0], d[0], O[0]}), (Floats{0, 0, -kInf, 0, 0}));
}

TEST(FoldScores, LargestWeightIsOneHoweverLargeTheScores) {
  for (const float top : {-3e5f, 1e5f, 123456.789f, 3e30f}) {
    Floats S = score_row({top, top, -kInf}), m{-kInf}, d{0}, O(32);
    fold_scores(3, 1, S, m, d, O);
    EXPECT_EQ((Floats{S[0], S[1], S[2], d[0]}), (Floats{1, 1, 0, 2})) << top;
  }
}

TEST(FoldScores, DoesNotHideNaN) {
  Floats S = score_row({1, kNaN, 2}), m{-kInf}, d{0}, O(32);
  fold_scores(3, 1, S, m, d, O);
  EXPECT_TRUE(std::isnan(S[1]) && std::isnan(d[0]));
}

TEST(FastAttention, MatchesTheOracle) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/false)) expect_matches_oracle(s, 1);
}

TEST(FastAttention, GroupedHeadsReadTheirOwnKvHead) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/true)) expect_matches_oracle(s, 2);
}

TEST(FastAttention, AnyHeadDim) {
  for (const std::int64_t head_dim : kHeadDims)
    for (const bool causal : {false, true}) expect_matches_oracle({1, 2, 1, 101, 131, head_dim, 0.1f, causal}, 1);
}

TEST(FastAttention, LengthsAroundTheBlocks) {
  for (const std::int64_t seqlen : {96, 97, 257})
    for (const std::int64_t more : {-50, 0, 7})
      for (const bool causal : {false, true})
        expect_matches_oracle({1, 1, 1, seqlen, seqlen + more, 8, 0.35f, causal}, 2);
}

TEST(FastAttention, ResultsDoNotDependOnThreads) {
  const AttentionShape s{2, 4, 2, 200, 333, 40, 0.16f, true};
  const AttentionData data = attention_data(s, Scores::kNormal);
  const Result one = run(s, 1, data);
  for (int threads = 2; threads <= 8; ++threads) {
    const Result r = run(s, threads, data);
    EXPECT_EQ(floats(r.O), floats(one.O)) << threads << " threads";
    EXPECT_EQ(floats(r.lse), floats(one.lse)) << threads << " threads";
  }
}

TEST(FastAttention, NothingToDoAndEmptyRows) {
  for (const AttentionShape& s : {AttentionShape{0, 2, 1, 3, 4, 5, 1.0f, true},
                                  {1, 2, 1, 0, 4, 5, 1.0f, true},
                                  {1, 2, 1, 3, 0, 5, 1.0f, false},
                                  {1, 2, 1, 3, 0, 5, 1.0f, true},
                                  {2, 2, 1, 150, 4, 5, 1.0f, true}})
    expect_matches_oracle(s, 3);
}

TEST(FastAttention, NaNInARowOfQStaysInThatRow) {
  const AttentionShape s{1, 2, 1, 70, 70, 4, 0.5f, true};
  AttentionData data = attention_data(s, Scores::kNormal);
  const Result clean = run(s, 1, data);
  data.Q[4 * 95] = kNaN;  // head 1, row 25
  const Result r = run(s, 1, data);
  for (std::size_t i = 0; i < r.O.size(); ++i)
    EXPECT_TRUE(i / 4 == 95 ? std::isnan(r.O[i]) : r.O[i] == clean.O[i]) << "row " << i / 4;
}

TEST(FastAttention, NaNInAMaskedKeyIsNotSeen) {
  const AttentionShape s = square(70, 4, true);
  AttentionData data = attention_data(s, Scores::kNormal);
  const Result clean = run(s, 1, data);
  for (const std::size_t key : {38, 63}) data.K[4 * key] = data.V[4 * key] = kNaN;
  const Result r = run(s, 1, data);
  for (std::size_t i = 0; i < r.O.size(); ++i)
    EXPECT_TRUE(i / 4 >= 38 ? std::isnan(r.O[i]) : r.O[i] == clean.O[i]) << "row " << i / 4;
}

TEST(FastAttention, ScratchIsWhatTheHeaderSays) {
  const AttentionShape s{1, 32, 1, 2, 4000, 64, 0.125f, false};
  const AttentionData data = attention_data(s, Scores::kNormal);
  Result r(s);
  const ScratchMeter meter;
  fast_attention(s, 3, data.Q, data.K, data.V, r.O.span(), r.lse.span());
  const std::int64_t packed = 2 * 4000 * 64, of_thread = 96 * (64 + 64 + 256);
  EXPECT_LE(meter.peak_bytes(), 4 * (packed + 3 * of_thread) + (32 << 20))
      << "32 MiB are for threads and what a process holds besides; panels for each query head would take 66 MB";
}

TEST(DecodeKeys, FoldsKeysIntoTheStateOfARow) {
  for (const std::int64_t head_dim : {1, 7, 16, 100})
    for (const std::int64_t keys : {0, 1, 2, 33, 256}) {
      SCOPED_TRACE(std::to_string(keys) + " keys, head_dim " + std::to_string(head_dim));
      const Floats q = normal(head_dim), K = normal(keys * head_dim), V = normal(keys * head_dim);
      Floats m{1.5f}, d{2}, O(at(padded(head_dim)), 3);
      std::vector<double> s(at(keys)), expected(at(head_dim));
      double max = 1.5, sum = 0, size = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        for (std::int64_t h = 0; h < head_dim; ++h) {
          const double term = static_cast<double>(q[at(h)]) * K[at(j * head_dim + h)];
          s[at(j)] += term;
          size = std::max(size, std::abs(term) * static_cast<double>(head_dim));
        }
        max = std::max(max, s[at(j)]);
      }
      sum = 2 * std::exp2(1.5 - max);
      for (double& e : expected) e = 3 * std::exp2(1.5 - max);
      for (std::int64_t j = 0; j < keys; ++j) {
        sum += std::exp2(s[at(j)] - max);
        for (std::int64_t h = 0; h < head_dim; ++h)
          expected[at(h)] += std::exp2(s[at(j)] - max) * static_cast<double>(V[at(j * head_dim + h)]);
      }
      decode_keys(keys, head_dim, q, K, V, O, m, d);
      const double tolerance = oracle::softmax_tolerance(size, keys, head_dim) * 4 * (sum + 1);
      EXPECT_NEAR(m[0], max, tolerance);
      EXPECT_NEAR(d[0], sum, tolerance);
      EXPECT_TRUE(all_close(Floats(O.begin(), O.begin() + head_dim), expected, tolerance));
    }
}

TEST(FastDecode, MatchesTheOracleForAnyNumberOfThreads) {
  for (const AttentionShape& s : {AttentionShape{2, 4, 2, 1, 2500, 20, 0.22f, true},
                                  {1, 6, 2, 3, 1025, 8, 0.35f, true},
                                  {1, 3, 3, 4, 67, 40, 0.16f, false},
                                  {1, 8, 1, 2, 1024, 128, 0.09f, true},
                                  {1, 2, 2, 3, 0, 5, 0.45f, false},
                                  {2, 2, 1, 7, 4, 6, 0.41f, true}})
    for (const Scores regime : kRegimes) {
      SCOPED_TRACE(name(s) + ", " + name(regime));
      const Case this_case(s);
      const AttentionData d = attention_data(s, regime);
      const oracle::Forward truth = oracle::forward(s, d.Q, d.K, d.V);
      Result one(s), three(s);
      fast_decode(s, 1, d.Q, d.K, d.V, one.O.span(), one.lse.span());
      fast_decode(s, 3, d.Q, d.K, d.V, three.O.span(), three.lse.span());
      EXPECT_TRUE(all_close(one.O, truth.O, output_tolerance(s, truth))) << "O" << derivation(s, truth, true);
      EXPECT_TRUE(all_close(one.lse, truth.lse, lse_tolerance(s, truth))) << "lse" << derivation(s, truth, false);
      EXPECT_EQ(floats(one.O), floats(three.O));
      EXPECT_TRUE(one.O.canaries_intact() && one.lse.canaries_intact());
    }
}

TEST(FastDecode, HiddenKeysMayHoldNaN) {
  const AttentionShape s{1, 2, 1, 2, 40, 4, 0.5f, true};
  AttentionData d = attention_data(s, Scores::kNormal);
  for (const std::size_t h : {0, 1, 2, 3}) d.K[39 * 4 + h] = d.V[39 * 4 + h] = kNaN;
  Result r(s);
  fast_decode(s, 2, d.Q, d.K, d.V, r.O.span(), r.lse.span());
  for (const std::size_t row : {0, 1, 2, 3}) EXPECT_EQ(std::isnan(r.O[4 * row]), row % 2 == 1) << "row " << row;
}

TEST(ScoreGradients, AreWeightsTimesWhatDeltaLeaves) {
  // Rows with lse 1 and 3 in base 2, and one without keys; delta 10, -1 and 5.
  Floats S(3 * kBlockK, -kInf), dP(3 * kBlockK, 0);
  S[0] = 1, S[1] = 0, S[40] = -2;
  dP[0] = 12, dP[1] = 6, dP[40] = 18;
  S[kBlockK] = 4, dP[kBlockK] = 3;
  S[2 * kBlockK] = 500, dP[2 * kBlockK] = 7;
  score_gradients(3, 41, Floats{1, 3, kInf}, Floats{10, -1, 5}, S, dP);
  EXPECT_EQ((Floats{S[0], S[1], S[40], S[39], S[kBlockK], S[2 * kBlockK]}), (Floats{1, 0.5f, 0.125f, 0, 2, 0}));
  EXPECT_EQ((Floats{dP[0], dP[1], dP[40], dP[39], dP[kBlockK], dP[2 * kBlockK]}), (Floats{2, -2, 1, 0, 8, 0}));
}

TEST(FastBackward, MatchesTheOracleForAnyNumberOfThreads) {
  std::vector<AttentionShape> shapes = attention_shapes(true);
  for (const bool causal : {false, true}) {
    shapes.push_back({1, 4, 2, 130, 230, 40, 0.16f, causal});
    shapes.push_back({1, 2, 2, 230, 130, 7, 0.4f, causal});
    shapes.push_back({1, 2, 1, 97, 385, 100, 0.1f, causal});
    shapes.push_back({2, 1, 1, 5, 0, 3, 0.5f, causal});
  }
  for (const AttentionShape& s : shapes)
    for (const Scores regime : {Scores::kNormal, Scores::kGrowing, Scores::kLow}) {
      SCOPED_TRACE(name(s) + ", " + name(regime));
      const Case this_case(s, {kBlockQ, kBlockK});
      const Problem p(s, regime);
      const oracle::Backward truth = p.truth();
      const auto gradients = [&](int threads) {
        Gradients g(s);
        fast_backward(s, threads, p.data.Q, p.data.K, p.data.V, p.O, p.dO, p.lse, g.dQ.span(), g.dK.span(),
                      g.dV.span());
        EXPECT_TRUE(g.dQ.canaries_intact() && g.dK.canaries_intact() && g.dV.canaries_intact());
        return g;
      };
      const Gradients one = gradients(1), three = gradients(3);
      const double t = oracle::gradient_tolerance(s, truth);
      EXPECT_TRUE(all_close(one.dQ, truth.dQ, t * truth.dQ_magnitude, query_dims(s, {kBlockQ, kBlockK}))) << "dQ";
      EXPECT_TRUE(all_close(one.dK, truth.dK, t * truth.dK_magnitude, key_dims(s, {kBlockQ, kBlockK}))) << "dK";
      EXPECT_TRUE(all_close(one.dV, truth.dV, t * truth.dV_magnitude, key_dims(s, {kBlockQ, kBlockK}))) << "dV";
      EXPECT_EQ(floats(one.dQ), floats(three.dQ));
      EXPECT_EQ(floats(one.dK), floats(three.dK));
      EXPECT_EQ(floats(one.dV), floats(three.dV));
    }
}

TEST(FastAttention, WorkedExampleOfTheNote) {
  // Scores 0, 1 and 3 in base 2; weights 1/8, 1/4 and 1; values 8, 4 and 10.
  const float ln2 = std::log(2.0f);
  const AttentionShape s{1, 1, 1, 1, 3, 1, 1.0f, false};
  const Result r = run(s, 1, {{ln2}, {0, 1, 3}, {8, 4, 10}});
  EXPECT_NEAR(r.O[0], 12 / 1.375, 1e-5);
  EXPECT_NEAR(r.lse[0], std::log(1 + 2 + 8), 1e-6);
}

}  // namespace
}  // namespace nanolm
