#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nanolm/critical_batch.h"
#include "support/all_close.h"

namespace nanolm {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kGiB = 0x1p30, kMiB = 0x1p20;
constexpr double kBf16 = 2, kInt8 = 1, kInt4 = 0.5;  // bytes
// The programme's figures.
constexpr Machine kH100{989e12, 3.35e12};
constexpr Machine kH100Int8{1979e12, 3.35e12};
constexpr Machine kA100{312e12, 2.04e12};

// Llama-3-8B: vocabulary 128256, width 4096, 32 layers, 8 of 32 heads for keys and values, 14336 in the MLP.
constexpr double kParameters =
    2 * 128256.0 * 4096 + 32 * (2 * 4096.0 * 4096 + 2 * 4096 * 1024 + 3 * 4096.0 * 14336 + 2 * 4096) + 4096;
constexpr double kWeightBytes = kParameters * kBf16;
constexpr double kKv = 131072;  // bytes a token

TEST(CriticalBatch, GivenSizesOfLlama3) {
  EXPECT_EQ(kParameters, 8030261248);
  EXPECT_EQ(kWeightBytes, 16060522496);
}

TEST(CriticalBatch, GivenChecksRefuseBadInput) {
  for (const double bad : {-1.0, kInf, kNaN}) {
    EXPECT_THROW(critical_batch(kH100, bad), std::invalid_argument);
    EXPECT_THROW(critical_batch({bad, 1}, 2), std::invalid_argument);
    EXPECT_THROW(critical_batch({1, bad}, 2), std::invalid_argument);
    EXPECT_THROW(prefill_tokens(bad, 1), std::invalid_argument);
    EXPECT_THROW(decode_tokens(bad), std::invalid_argument);
    EXPECT_THROW(speculative_tokens(1, bad), std::invalid_argument);
    EXPECT_THROW(kv_cache_bytes_per_token(1, bad, 1, 1), std::invalid_argument);
    EXPECT_THROW(sequences_that_fit(bad, 1, 1, 1), std::invalid_argument);
    EXPECT_THROW(sequences_that_fit(1, 1, 1, bad), std::invalid_argument);
    EXPECT_THROW(exact_critical_batch(kH100, bad, 1, 2, 2), std::invalid_argument);
    EXPECT_THROW(decode_step_time_s(kH100, 1, 2, bad, 1), std::invalid_argument);
    EXPECT_THROW(decode_tokens_per_s(kH100, bad, 2, 1, 1), std::invalid_argument);
  }
  EXPECT_THROW(critical_batch({1, 0}, 2), std::invalid_argument);
  EXPECT_THROW(critical_batch(kH100, 0), std::invalid_argument);
  EXPECT_THROW(sequences_that_fit(80e9, 16e9, kKv, 0), std::invalid_argument);
  EXPECT_THROW(sequences_that_fit(80e9, 16e9, 0, 8192), std::invalid_argument);
  EXPECT_THROW(sequences_that_fit(1e300, 0, 1, 1), std::invalid_argument) << "more than 64 bits hold";
}

TEST(CriticalBatch, IsPeakTimesBytesOverTwiceTheBandwidth) {
  EXPECT_TRUE(is_near(critical_batch(kH100, kBf16), 295.223880597));
  EXPECT_TRUE(is_near(critical_batch(kA100, kBf16), 152.941176471));
  EXPECT_TRUE(is_near(critical_batch({312e12, 2.039e12}, kBf16), 153.016184404));
  EXPECT_TRUE(is_near(critical_batch({312e12, 1.555e12}, kBf16), 200.643086817));
  EXPECT_TRUE(is_near(critical_batch({312e12, 1.5e12}, kBf16), 208));
  EXPECT_TRUE(is_near(critical_batch({2250e12, 8e12}, kBf16), 281.25));
  EXPECT_TRUE(is_near(critical_batch({197e12, 820e9}, kBf16), 240.243902439)) << "TPU v5e";
}

TEST(CriticalBatch, FewerBytesAWeightLowerItAndFasterArithmeticRaisesIt) {
  EXPECT_TRUE(is_near(critical_batch(kH100, kInt8), 147.611940299)) << "int8 weights, bf16 arithmetic";
  EXPECT_TRUE(is_near(critical_batch(kH100, kInt4), 73.805970149)) << "int4 weights, bf16 arithmetic";
  EXPECT_TRUE(is_near(critical_batch(kH100Int8, kInt8), 295.373134328)) << "int8 weights, int8 arithmetic";
}

TEST(CriticalBatch, PrefillPassesEveryPromptToken) {
  EXPECT_EQ(prefill_tokens(1, 2000), 2000);
  EXPECT_EQ(prefill_tokens(3, 500), 1500);
}

TEST(CriticalBatch, DecodePassesOneTokenASequence) { EXPECT_EQ(decode_tokens(64), 64); }

TEST(CriticalBatch, SpeculationPassesTheDraftAndOneMore) {
  EXPECT_EQ(speculative_tokens(64, 4), 320);
  EXPECT_EQ(speculative_tokens(60, 0), 60) << "no draft is plain decode";
}

TEST(CriticalBatch, OnePromptIsAboveItAndSixtyFourUsersAreBelow) {
  EXPECT_GT(prefill_tokens(1, 2000), critical_batch(kH100, kBf16));
  EXPECT_LT(decode_tokens(64), critical_batch(kH100, kBf16));
  EXPECT_LT(decode_tokens(64), critical_batch(kA100, kBf16));
  EXPECT_GT(speculative_tokens(64, 4), critical_batch(kH100, kBf16));
}

TEST(CriticalBatch, CacheHoldsKeysAndValuesOfEveryLayer) {
  EXPECT_EQ(kv_cache_bytes_per_token(32, 8, 128, kBf16), 131072);
  EXPECT_EQ(kv_cache_bytes_per_token(32, 32, 128, kBf16), 524288) << "as many kv heads as query heads";
  EXPECT_EQ(kv_cache_bytes_per_token(3, 5, 7, kInt4), 105);
}

TEST(CriticalBatch, FiftyNineSequencesOfLlama3FitOnAnH100) {
  EXPECT_EQ(sequences_that_fit(80e9, 16e9, kKv, 8192), 59);
  EXPECT_EQ(sequences_that_fit(80e9, kWeightBytes, kKv, 8192), 59);
}

TEST(CriticalBatch, OtherReadingsOfTheSameQuestionGiveOtherNumbers) {
  const struct {
    const char* reading;
    double memory, weights, kv, context;
    std::int64_t fit;
  } readings[] = {{"80 GiB of memory", 80 * kGiB, kWeightBytes, kKv, 8192, 65},
                  {"memory and weights in GiB", 80 * kGiB, 16 * kGiB, kKv, 8192, 64},
                  {"what a real H100 reports", 81559 * kMiB, kWeightBytes, kKv, 8192, 64},
                  {"weights alone in GiB", 80e9, 16 * kGiB, kKv, 8192, 58},
                  {"8k as 8000, rounded weights", 80e9, 16e9, kKv, 8000, 61},
                  {"8k as 8000", 80e9, kWeightBytes, kKv, 8000, 60},
                  {"a tenth kept back", 0.9 * 80e9, kWeightBytes, kKv, 8192, 52},
                  {"a tenth of 80 GiB kept back", 0.9 * 80 * kGiB, kWeightBytes, kKv, 8192, 57},
                  {"a tenth of what it reports kept back", 0.9 * 81559 * kMiB, kWeightBytes, kKv, 8192, 56},
                  {"32 kv heads", 80e9, kWeightBytes, 4 * kKv, 8192, 14},
                  {"keys without values, or an int8 cache", 80e9, kWeightBytes, kKv / 2, 8192, 119},
                  {"int8 weights", 80e9, kWeightBytes / 2, kKv, 8192, 67},
                  {"an fp32 cache", 80e9, kWeightBytes, 2 * kKv, 8192, 29},
                  {"no weights", 80e9, 0, kKv, 8192, 74},
                  {"one layer", 80e9, kWeightBytes, kKv / 32, 8192, 1905}};
  for (const auto& r : readings)
    EXPECT_EQ(sequences_that_fit(r.memory, r.weights, r.kv, r.context), r.fit) << r.reading;
}

TEST(CriticalBatch, OnlyWholeSequencesCountAndNeverFewerThanNone) {
  EXPECT_EQ(sequences_that_fit(1000, 400, 2, 100), 3) << "an exact fit";
  EXPECT_EQ(sequences_that_fit(999, 400, 2, 100), 2) << "one byte short";
  EXPECT_EQ(sequences_that_fit(599, 400, 2, 100), 0);
  EXPECT_EQ(sequences_that_fit(400, 400, 2, 100), 0) << "the weights fill the memory";
  EXPECT_EQ(sequences_that_fit(100, 400, 2, 100), 0) << "the weights are larger than the memory";
  EXPECT_EQ(sequences_that_fit(399, 400, 2, 100), 0);
  EXPECT_EQ(sequences_that_fit(80e12, 0, 1, 1), 80000000000000) << "more than 32 bits hold";
}

// Beyond the week's hours

TEST(CriticalBatch, ExactCountsActivationTraffic) {
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 4096, 14336, kBf16, kBf16), 325.376281408));
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 4096, 4096, kBf16, kBf16), 344.949078647));
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 4096, 1024, kBf16, kBf16), 461.562, 1e-5));
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 8192, 28672, kBf16, kBf16), 309.568, 1e-5));
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 1024, 1024, kBf16, kBf16), 697.284, 1e-5));
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 4096, 14336, kInt8, kBf16), 162.688140704)) << "int8 weights";
}

TEST(CriticalBatch, ExactIsInfiniteWhereNoBatchReachesTheRidge) {
  EXPECT_EQ(exact_critical_batch(kH100, 512, 512, kBf16, kBf16), kInf) << "at most 256 FLOP a byte";
  EXPECT_EQ(exact_critical_batch({8, 1}, 16, 16, 2, 2), kInf) << "8 FLOP a byte, the ridge itself, but in the limit";
  EXPECT_TRUE(is_near(exact_critical_batch({8, 1}, 17, 17, 2, 2), 8 * 2 * 289.0 / (2 * 289 - 8 * 2 * 34))) << "just so";
}

TEST(CriticalBatch, ExactBatchReachesTheRidgeAndNearsTheRule) {
  const double ridge = 989 / 3.35;
  for (double size = 1024, before = kInf; size <= 0x1p22; size *= 2) {
    const double B = exact_critical_batch(kH100, size, 3 * size, kInt8, kBf16);
    const double flop = 2 * B * size * 3 * size, bytes = kBf16 * B * 4 * size + kInt8 * size * 3 * size;
    EXPECT_TRUE(is_near(flop / bytes, ridge));
    EXPECT_GT(B, 147.611940298);
    EXPECT_LT(B, before);
    before = B;
  }
  EXPECT_TRUE(is_near(exact_critical_batch(kH100, 1e9, 1e9, kInt8, kBf16), 147.611940299, 1e-6));
}

TEST(CriticalBatch, DecodeStepReadsTheWeightsOnceAndEachCache) {
  const auto ms = [](double B) { return 1e3 * decode_step_time_s(kH100, kParameters, kBf16, B, kGiB); };
  EXPECT_TRUE(is_near(ms(1), 5.114705, 1e-6));
  EXPECT_TRUE(is_near(ms(15), 9.601985, 1e-6));
  EXPECT_TRUE(is_near(ms(59), 23.70486272, 1e-9));
}

TEST(CriticalBatch, DecodeStepWithoutCacheTurnsToArithmeticAtTheCriticalBatch) {
  const auto step = [](double B) { return decode_step_time_s(kH100, 1e9, kBf16, B, 0); };
  EXPECT_TRUE(is_near(step(1), 2e9 / 3.35e12));
  EXPECT_TRUE(is_near(step(295), step(1))) << "below: one reading of the weights";
  EXPECT_TRUE(is_near(step(590.447761194), 2 * step(1))) << "above: twice the tokens, twice the time";
}

TEST(CriticalBatch, DecodeTokensPerSecondCountAllSequences) {
  const auto rate = [](double B) { return decode_tokens_per_s(kH100, kParameters, kBf16, B, kGiB); };
  EXPECT_TRUE(is_near(rate(1), 195.514, 1e-5));
  EXPECT_TRUE(is_near(rate(15), 1562.19, 1e-5));
  EXPECT_TRUE(is_near(rate(59), 2488.94, 1e-5));
  EXPECT_TRUE(is_near(decode_tokens_per_s(kH100, 1e9, kBf16, 1e6, 0), 989e12 / 2e9)) << "arithmetic alone";
}

TEST(CriticalBatch, WorkedExampleOfTheNote) {
  // notes/02_critical_batch.md
  const Machine toy{600, 10};
  EXPECT_EQ(critical_batch(toy, 2), 60);
  EXPECT_EQ(critical_batch(toy, 1), 30);
  EXPECT_EQ(decode_tokens(20), 20);
  EXPECT_EQ(speculative_tokens(20, 3), 80);
  EXPECT_EQ(prefill_tokens(2, 100), 200);
  EXPECT_EQ(kv_cache_bytes_per_token(2, 1, 4, 2), 32);
  EXPECT_EQ(sequences_that_fit(10000, 2000, 32, 100), 2);
}

}  // namespace
}  // namespace nanolm
