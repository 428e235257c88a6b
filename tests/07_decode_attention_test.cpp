#include <gtest/gtest.h>

#include <cmath>

#include "nanolm/decode_attention.h"
#include "support/all_close.h"
#include "support/cases.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"

namespace nanolm {
namespace {

using Floats = std::vector<float>;
using Parts = std::vector<Floats>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};

// One or a few queries against caches that no number of parts divides, with and without groups and mask; in the last
// the first rows see nothing, and in the one before there is no cache.
const AttentionShape kShapes[] = {{2, 4, 2, 1, 101, 20, 0.22f, true}, {1, 6, 2, 3, 257, 8, 0.35f, true},
                                  {2, 3, 3, 4, 67, 40, 0.16f, false}, {1, 2, 1, 5, 64, 3, 0.58f, true},
                                  {3, 8, 1, 2, 31, 128, 0.09f, true}, {1, 2, 2, 3, 0, 5, 0.45f, false},
                                  {2, 2, 1, 7, 4, 6, 0.41f, true}};

std::vector<Dim> dims(const AttentionShape& s) {
  return {{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q}, {"column", s.head_dim}};
}

struct Result {
  explicit Result(const AttentionShape& s) : O(q_size(s)), lse(lse_size(s)) {}
  Output O, lse;
};
Result part(const AttentionShape& s, const KeyRange& keys, const AttentionData& d) {
  Result r(s);
  attention_part(s, keys, d.Q, d.K, d.V, r.O.span(), r.lse.span());
  EXPECT_TRUE(r.O.canaries_intact() && r.lse.canaries_intact());
  return r;
}
Result decode(const AttentionShape& s, std::int64_t num_splits, const AttentionData& d) {
  Result r(s);
  decode_attention(s, num_splits, d.Q, d.K, d.V, r.O.span(), r.lse.span());
  EXPECT_TRUE(r.O.canaries_intact() && r.lse.canaries_intact());
  return r;
}

// Merges parts of one row; each part is its lse followed by its O.
Parts merge_row(const Parts& parts) {
  const auto dim = static_cast<std::int64_t>(parts.at(0).size()) - 1;
  Floats O_parts, lse_parts;
  for (const Floats& p : parts) {
    lse_parts.push_back(p[0]);
    O_parts.insert(O_parts.end(), p.begin() + 1, p.end());
  }
  Output O(dim), lse(1);
  merge_partials(static_cast<std::int64_t>(parts.size()), 1, dim, O_parts, lse_parts, O.span(), lse.span());
  EXPECT_TRUE(O.canaries_intact() && lse.canaries_intact());
  return {{lse[0]}, {O.span().begin(), O.span().end()}};
}

TEST(DecodeAttention, GivenChecksRefuseWrongSizes) {
  const AttentionShape shape{2, 4, 2, 3, 5, 2, 1.0f, true};
  AttentionShape indivisible = shape;
  indivisible.kv_heads = 3;
  const AttentionData d = attention_data(shape, Scores::kNormal);
  Result r(shape);
  const Floats wrong(7);
  const auto call = [&](const AttentionShape& s, std::int64_t splits, std::span<const float> K) {
    decode_attention(s, splits, d.Q, K, d.V, r.O.span(), r.lse.span());
  };
  EXPECT_THROW(call(shape, 0, d.K), std::invalid_argument);
  EXPECT_THROW(call(shape, -2, d.K), std::invalid_argument);
  EXPECT_THROW(call(shape, std::int64_t{1} << 60, d.K), std::invalid_argument);
  EXPECT_THROW(call(shape, 2, wrong), std::invalid_argument);
  EXPECT_THROW(call(indivisible, 2, d.K), std::invalid_argument);
  for (const KeyRange& keys : {KeyRange{-1, 2}, {3, 2}, {0, 6}})
    EXPECT_THROW(attention_part(shape, keys, d.Q, d.K, d.V, r.O.span(), r.lse.span()), std::invalid_argument);
  EXPECT_THROW(merge_partials(2, 24, 2, Floats(96), wrong, r.O.span(), r.lse.span()), std::invalid_argument);
  EXPECT_THROW(part_keys(5, 2, 2), std::invalid_argument);
  EXPECT_THROW(part_keys(5, 0, 0), std::invalid_argument);
  EXPECT_TRUE(r.O.untouched() && r.lse.untouched());
  EXPECT_THROW(decode_intensity(32, 5, 8192, 2), std::invalid_argument);
  EXPECT_THROW(decode_intensity(32, 8, 8192, 0), std::invalid_argument);
  EXPECT_THROW(quantized_cache_intensity(32, 8, 8192, 2, -1), std::invalid_argument);
  EXPECT_THROW(decode_intensity_limit(32, 64, 2), std::invalid_argument);
}

TEST(DecodeAttention, PartsHoldEachKeyOnceAndDifferByAtMostOne) {
  const std::int64_t ten_in_four[] = {0, 3, 6, 8, 10};
  for (const std::int64_t p : {0, 1, 2, 3}) {
    EXPECT_EQ(part_keys(10, 4, p).first, ten_in_four[p]);
    EXPECT_EQ(part_keys(10, 4, p).last, ten_in_four[p + 1]);
  }
  for (const std::int64_t seqlen_k : {0, 1, 7, 64, 101})
    for (const std::int64_t splits : {1, 2, 3, 8, 64, 110}) {
      std::int64_t next = 0;
      for (std::int64_t p = 0; p < splits; ++p) {
        const KeyRange keys = part_keys(seqlen_k, splits, p);
        EXPECT_EQ(keys.first, next);
        EXPECT_GE(keys.last - keys.first, seqlen_k / splits);
        EXPECT_LE(keys.last - keys.first, (seqlen_k + splits - 1) / splits);
        next = keys.last;
      }
      EXPECT_EQ(next, seqlen_k);
    }
  const std::int64_t large = std::int64_t{1} << 62;  // part * seqlen_k does not fit 64 bits
  EXPECT_EQ(part_keys(large, 7, 6).last, large);
}

TEST(DecodeAttention, PartIsAttentionOverItsKeysAlone) {
  for (const Scores scores : kRegimes)
    for (const AttentionShape& s : kShapes)
      for (const KeyRange& keys : {KeyRange{0, s.seqlen_k}, {0, s.seqlen_k / 2}, {s.seqlen_k / 3, s.seqlen_k}}) {
        SCOPED_TRACE(name(s) + ", " + name(scores) + ", keys from " + std::to_string(keys.first));
        const Case this_case(s);
        const AttentionData d = attention_data(s, scores);
        const oracle::Forward truth = oracle::forward(s, d.Q, d.K, d.V);
        // The whole row's P, divided by what of it falls to the part.
        std::vector<double> O(truth.O.size()), lse(truth.lse.size(), -HUGE_VAL);
        const auto dim = static_cast<std::size_t>(s.head_dim), keys_k = static_cast<std::size_t>(s.seqlen_k);
        for (std::size_t row = 0; row < lse.size(); ++row) {
          const double* P = truth.P.data() + row * keys_k;
          const std::size_t head = row / static_cast<std::size_t>(s.seqlen_q * (s.q_heads / s.kv_heads));
          double sum = 0;
          for (std::int64_t j = keys.first; j < keys.last; ++j) sum += P[j];
          if (sum == 0) continue;
          lse[row] = truth.lse[row] + std::log(sum);
          for (auto j = static_cast<std::size_t>(keys.first); j < static_cast<std::size_t>(keys.last); ++j)
            for (std::size_t h = 0; h < dim; ++h)
              O[row * dim + h] += P[j] / sum * static_cast<double>(d.V[(head * keys_k + j) * dim + h]);
        }
        const Result r = part(s, keys, d);
        EXPECT_TRUE(all_close(r.O, O, oracle::output_tolerance(s, truth), dims(s)))
            << "O" << derivation(s, truth, true);
        EXPECT_TRUE(all_close(r.lse, lse, oracle::lse_tolerance(s, truth)));
      }
}

TEST(DecodeAttention, PartThatNoRowSeesIsWrittenAsEmpty) {
  const AttentionShape s{1, 2, 1, 3, 8, 4, 0.5f, true};  // row 0 sees keys 0 to 5, row 2 all
  const AttentionData d = attention_data(s, Scores::kNormal);
  for (const KeyRange& keys : {KeyRange{0, 0}, {3, 3}, {8, 8}}) {
    const Result r = part(s, keys, d);
    EXPECT_TRUE(all_close(r.O, Floats(24, 0), 0));
    EXPECT_TRUE(all_close(r.lse, Floats(6, -kInf), 0));
  }
  const Result tail = part(s, {6, 8}, d);
  for (const std::size_t h : {0, 1, 2, 3}) EXPECT_EQ(tail.O[h], 0);
  EXPECT_EQ(tail.lse[0], -kInf);
  EXPECT_TRUE(std::isfinite(tail.lse[1]) && std::isfinite(tail.lse[2]));
}

TEST(DecodeAttention, WorkedExampleOfTheNote) {
  // Four keys with scores 0, ln 3, ln 2, ln 6 in two parts; their values are 4, 8, 3, 9.
  const float ln2 = std::log(2.0f), ln3 = std::log(3.0f);
  const AttentionShape s{1, 1, 1, 1, 4, 1, 1.0f, false};
  const AttentionData d{{1}, {0, ln3, ln2, ln2 + ln3}, {4, 8, 3, 9}};
  const Result left = part(s, {0, 2}, d), right = part(s, {2, 4}, d), whole = decode(s, 2, d);
  EXPECT_NEAR(left.O[0], 7, 1e-5);
  EXPECT_NEAR(left.lse[0], std::log(4), 1e-6);
  EXPECT_NEAR(right.O[0], 7.5, 1e-5);
  EXPECT_NEAR(right.lse[0], std::log(8), 1e-6);
  EXPECT_NEAR(whole.O[0], 22.0 / 3, 1e-5);
  EXPECT_NEAR(whole.lse[0], std::log(12), 1e-6);
}

TEST(DecodeAttention, MergeWeighsPartsByTheirSums) {
  // Sums 1 and 3: weights 1/4 and 3/4, and ln 4.
  const Parts merged = merge_row({{0, 8, -4}, {std::log(3.0f), 16, 0}});
  EXPECT_TRUE(all_close(merged[0], Floats{std::log(4.0f)}, 1e-6));
  EXPECT_TRUE(all_close(merged[1], Floats{14, -1}, 1e-5));
}

TEST(DecodeAttention, MergeKeepsRowsAndPartsApart) {
  // Two parts of three rows; lse is 0 everywhere, so each row is the mean of its two parts.
  const Floats O_parts{1, 2, 3, 4, 5, 6, 11, 22, 33, 44, 55, 66}, lse_parts(6, 0);
  Output O(6), lse(3);
  merge_partials(2, 3, 2, O_parts, lse_parts, O.span(), lse.span());
  EXPECT_TRUE(all_close(O, Floats{6, 12, 18, 24, 30, 36}, 1e-5));
  EXPECT_TRUE(all_close(lse, Floats(3, std::log(2.0f)), 1e-6));
}

TEST(DecodeAttention, MergeWithEmptyPartsChangesNothing) {
  for (const float lse : {-700.5f, 0.0f, 3e4f}) {
    const Floats full{lse, 0.3f, -7}, empty{-kInf, 0, 0}, stale{-kInf, kNaN, kInf};
    for (const Parts& parts : {Parts{full}, Parts{full, empty}, Parts{empty, full}, Parts{empty, stale, full, empty}})
      EXPECT_EQ(merge_row(parts), (Parts{{lse}, {0.3f, -7}}));
  }
}

TEST(DecodeAttention, MergeOfEmptyPartsIsEmpty) {
  const Parts nothing{{-kInf}, {0, 0}};
  EXPECT_EQ(merge_row({{-kInf, 0, 0}}), nothing);
  EXPECT_EQ(merge_row({{-kInf, 0, 0}, {-kInf, kNaN, 0}}), nothing);
}

TEST(DecodeAttention, MergeSurvivesHugeDifferences) {
  EXPECT_EQ(merge_row({{1000, 1}, {-1000, 2}}), (Parts{{1000}, {1}}));
  EXPECT_EQ(merge_row({{-3e38f, 1}, {3e38f, 2}}), (Parts{{3e38f}, {2}}));
  EXPECT_TRUE(all_close(merge_row({{-1000, 1}, {-1000, 2}})[1], Floats{1.5f}, 1e-6));
}

TEST(DecodeAttention, MergeDoesNotHideNaN) {
  for (const Parts& parts : {Parts{{kNaN, 1}, {0, 2}}, Parts{{0, 2}, {kNaN, 1}}, Parts{{-kInf, 0}, {kNaN, 1}}})
    for (const Floats& out : merge_row(parts)) EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(merge_row({{0, 2}, {-5, kNaN}})[1][0]));
}

TEST(DecodeAttention, NumberOfSplitsDoesNotMatter) {
  for (const Scores scores : kRegimes)
    for (const AttentionShape& s : kShapes) {
      const AttentionData d = attention_data(s, scores);
      const oracle::Forward truth = oracle::forward(s, d.Q, d.K, d.V);
      for (const std::int64_t splits : {1, 2, 3, 7, 64, 300}) {
        SCOPED_TRACE(name(s) + ", " + name(scores) + ", " + std::to_string(splits) + " parts");
        const Case this_case(s);
        const Result r = decode(s, splits, d);
        EXPECT_TRUE(all_close(r.O, truth.O, oracle::output_tolerance(s, truth), dims(s)))
            << "O" << derivation(s, truth, true);
        EXPECT_TRUE(all_close(r.lse, truth.lse, oracle::lse_tolerance(s, truth)));
      }
    }
}

TEST(DecodeAttention, LogSumExpIsTheNaturalLogarithm) {
  // Eight keys of score 0 in parts of 3, 3 and 2: ln 8, where base 2 would give 3.
  EXPECT_NEAR(decode({1, 1, 1, 1, 8, 1, 1.0f, false}, 3, {{0}, Floats(8, 1), Floats(8, 1)}).lse[0], std::log(8), 1e-6);
}

TEST(DecodeAttention, MaskedKeysAreNotRead) {
  const AttentionShape s{1, 4, 2, 3, 20, 4, 0.5f, true};  // row 0 sees keys 0 to 17, row 1 to 18, row 2 all
  const AttentionData clean = attention_data(s, Scores::kNormal);
  AttentionData d = clean;
  for (const std::size_t h : {0, 1, 2, 3}) d.K[19 * 4 + h] = d.V[18 * 4 + h] = kNaN;  // of kv head 0
  for (const std::int64_t splits : {1, 3, 10, 20}) {
    const Result r = decode(s, splits, d), expected = decode(s, splits, clean);
    for (std::size_t row = 0; row < 12; ++row) {
      const bool reached = row / 6 == 0 && row % 3 > 0;  // heads 0 and 1 read kv head 0
      EXPECT_EQ(std::isnan(r.O[row * 4]), reached) << "row " << row << ", " << splits << " parts";
      if (!reached) {
        EXPECT_NEAR(r.O[row * 4], expected.O[row * 4], 1e-6);
      }
    }
  }
}

TEST(DecodeAttention, MaskedKeyDoesNotSetTheMaximum) {
  const Result r = decode({1, 1, 1, 2, 2, 1, 1.0f, true}, 1, {{1, 1}, {0, 1000}, {5, 7}});
  EXPECT_TRUE(all_close(r.O, Floats{5, 7}, 0));
  EXPECT_TRUE(all_close(r.lse, Floats{0, 1000}, 0));
}

TEST(DecodeAttention, IntensityOfOneToken) {
  EXPECT_TRUE(is_near(decode_intensity(32, 8, 1, 2), 0.8));
  EXPECT_TRUE(is_near(decode_intensity(32, 8, 128, 2), 3.878787878788));
  EXPECT_TRUE(is_near(decode_intensity(32, 8, 8192, 2), 3.998047828209));
  EXPECT_TRUE(is_near(decode_intensity(32, 32, 8192, 2), 0.999877945));
  EXPECT_TRUE(is_near(decode_intensity(32, 1, 8192, 2), 31.875486381));
  EXPECT_TRUE(is_near(decode_intensity(32, 8, 8192, 4), 3.998047828209 / 2));
}

TEST(DecodeAttention, IntensityWithAQuantizedCache) {
  EXPECT_TRUE(is_near(quantized_cache_intensity(32, 8, 8192, 2, 1), 7.992195122));
  EXPECT_TRUE(is_near(quantized_cache_intensity(32, 8, 8192, 2, 2), 3.998047828209));
}

TEST(DecodeAttention, IntensityLimitIsQueryHeadsPerKvHead) {
  EXPECT_TRUE(is_near(decode_intensity_limit(32, 8, 2), 4));
  EXPECT_TRUE(is_near(decode_intensity_limit(32, 32, 2), 1));
  EXPECT_TRUE(is_near(decode_intensity_limit(32, 8, 4), 2));
  EXPECT_TRUE(is_near(decode_intensity_limit(40, 8, 1), 10));
}

}  // namespace
}  // namespace nanolm
