#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "nanolm/roofline.h"
#include "support/all_close.h"

namespace nanolm {
namespace {

using Refused = std::invalid_argument;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kBf16 = 2, kFp32 = 4;  // bytes
// The programme's figures; the device rows carry one digit more.
constexpr Machine kH100{989e12, 3.35e12};
constexpr Machine kH100Vector{66.9e12, 3.35e12};

// Whether a call is refused with a message that says so.
template <class Call>
bool refused(Call call, const std::string& says) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find(says) != std::string::npos;
  }
  return false;
}
testing::AssertionResult costs(const Cost& cost, double flop, double bytes) {
  if (is_near(cost.flop, flop) && is_near(cost.bytes, bytes)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << cost.flop << " FLOP and " << cost.bytes << " bytes, expected " << flop
                                     << " and " << bytes;
}

TEST(Roofline, GivenPeaksAreSmsTimesFlopPerClockTimesClock) {
  for (const Device& d : devices())
    for (const Peak& p : d.peaks)
      EXPECT_TRUE(is_near(d.sms * p.flop_per_clock_sm * p.clock_hz, p.flop_per_s, 6e-3)) << d.name << name(p.format);
}

TEST(Roofline, GivenDeviceRowsAreComplete) {
  for (const char* const name : {"T4", "A100 40GB SXM", "A100 80GB SXM", "A100 80GB PCIe", "H100 SXM", "H100 PCIe",
                                 "H200", "B200", "RTX 4090", "MI300X"}) {
    const Device& d = device(name);
    SCOPED_TRACE(name);
    EXPECT_GT(peak(d, Format::kFp16).flop_per_s, peak(d, Format::kFp32).flop_per_s);
    EXPECT_GT(d.memory_bytes, 100 * d.l2_bytes);
    EXPECT_TRUE(d.l2_bytes > d.register_bytes_sm && d.register_bytes_sm > d.sram_bytes_sm);
    EXPECT_FALSE(d.source.empty() || d.recorded.empty());
  }
  EXPECT_EQ(devices().size(), 10u);
  const Device& d = device("H100 SXM");  // (228 + 256) KiB x 132 of 80 GB
  EXPECT_TRUE(is_near((d.sram_bytes_sm + d.register_bytes_sm) * d.sms / d.memory_bytes, 0.0818e-2, 1e-3));
}

TEST(Roofline, GivenUnknownDevicesAndFormatsAreRefused) {
  EXPECT_TRUE(refused([] { device("H1000"); }, "H100 SXM, H100 PCIe, H200"));
  EXPECT_TRUE(refused([] { machine(device("T4"), Format::kBf16); }, "no bf16 rate; it has fp32, fp16, int8"));
}

TEST(Roofline, GivenSparsePeakIsRefused) {
  const Device& d = device("H100 SXM");
  EXPECT_EQ(machine(d, Format::kBf16, 989e12).flop_per_s, 989e12);
  EXPECT_EQ(machine(d, Format::kFp8, 1979e12).bytes_per_s, 3.35e12);
  EXPECT_TRUE(refused([&] { machine(d, Format::kBf16, 1979e12); }, "sparse"));
  EXPECT_TRUE(refused([&] { machine(d, Format::kBf16, 1000e12); }, "times the dense bf16 peak"));
  EXPECT_FALSE(refused([&] { machine(d, Format::kBf16, 1000e12); }, "sparse"));
  for (const double rate : {0.0, -1.0, kInf, kNaN}) EXPECT_THROW(machine(d, Format::kBf16, rate), Refused) << rate;
}

TEST(Roofline, GivenChecksRefuseBadCountsAndRates) {
  for (const double bad : {-1.0, kInf, kNaN}) {
    for (const auto two : {unary_cost, binary_cost}) EXPECT_THROW(two(1, bad), Refused);
    for (const auto three : {naive_attention_cost, flash_attention_cost}) EXPECT_THROW(three(bad, 1, 4), Refused);
    for (const auto four : {matmul_cost, chain_cost, fused_chain_cost}) EXPECT_THROW(four(1, 1, bad, 1), Refused);
    EXPECT_THROW(time_bound_s({bad, 1}, kH100), Refused);
    EXPECT_THROW(attainable_flop_per_s({1, 1}, {1, bad}), Refused);
  }
  EXPECT_THROW(ridge({1, 0}), Refused);
  EXPECT_THROW(intensity({1, 0}), Refused);
  EXPECT_THROW(bound_by({0, 0}, kH100), Refused);
}

TEST(Roofline, MatmulCountsTwoFlopAMultiplyAddAndEachMatrixOnce) {
  EXPECT_TRUE(costs(matmul_cost(2, 3, 5, kFp32), 60, 4 * (10 + 15 + 6)));
  const auto per_byte = [](double m, double n, double k, double b) {
    return matmul_cost(m, n, k, b).flop / matmul_cost(m, n, k, b).bytes;
  };
  EXPECT_TRUE(is_near(per_byte(4096, 4096, 4096, kBf16), 4096.0 / 3));
  EXPECT_TRUE(is_near(per_byte(4096, 4096, 4096, kFp32), 4096.0 / 6));
  EXPECT_TRUE(is_near(per_byte(1, 4096, 4096, kBf16), 0.999512, 1e-6)) << "matrix times vector";
  EXPECT_TRUE(is_near(per_byte(4096, 4096, 64, kBf16), 62.0606060606)) << "Q K^T: the inner dimension is head_dim";
}

TEST(Roofline, UnaryReadsAndWritesEachElement) { EXPECT_TRUE(costs(unary_cost(1000, kFp32), 1000, 8000)); }

TEST(Roofline, BinaryReadsTwoAndWritesOne) { EXPECT_TRUE(costs(binary_cost(1000, kBf16), 1000, 6000)); }

TEST(Roofline, ChainMovesTheTensorForEachOperation) {
  EXPECT_TRUE(costs(chain_cost(5, 0x1p26, kFp32), 5 * 0x1p26, 2684354560));
  EXPECT_TRUE(costs(chain_cost(5, 100, kBf16, 5), 500, 2 * 15 * 100)) << "each with a second operand";
}

TEST(Roofline, FusedChainMovesTheTensorOnce) {
  EXPECT_TRUE(costs(fused_chain_cost(5, 0x1p26, kFp32), 5 * 0x1p26, 536870912));
  EXPECT_TRUE(costs(fused_chain_cost(5, 100, kBf16, 5), 500, 2 * 7 * 100)) << "each with a second operand";
}

TEST(Roofline, NaiveAttentionMovesTheScoresFourTimes) {
  EXPECT_TRUE(costs(naive_attention_cost(8, 2, kFp32), 512, 4 * (4 * 16 + 4 * 64)));
  EXPECT_TRUE(costs(naive_attention_cost(4096, 128, kBf16), 8589934592, 138412032));
}

TEST(Roofline, NaiveAttentionStaysBelowHeadDimFlopAnElement) {
  for (const double head_dim : {64.0, 128.0})
    for (double seqlen = 1; seqlen <= 0x1p20; seqlen *= 2) {
      const Cost c = naive_attention_cost(seqlen, head_dim, kBf16);
      EXPECT_LT(c.flop / c.bytes, head_dim / kBf16) << "seqlen " << seqlen;
      EXPECT_TRUE(is_near(c.flop / c.bytes, seqlen * head_dim / (kBf16 * (seqlen + head_dim))));
    }
}

TEST(Roofline, FlashAttentionMovesTheFourOperandsOnce) {
  EXPECT_TRUE(costs(flash_attention_cost(8, 2, kFp32), 512, 4 * 4 * 16));
  EXPECT_TRUE(costs(flash_attention_cost(4096, 128, kBf16), 8589934592, 4194304));
}

TEST(Roofline, NaiveMovesOnePlusSeqlenOverHeadDimTimesWhatFlashMoves) {
  for (const auto& [seqlen, head_dim, ratio] : {std::array{4096.0, 128.0, 33.0}, {4096, 64, 65}, {96, 96, 2}})
    EXPECT_TRUE(is_near(naive_attention_cost(seqlen, head_dim, kBf16).bytes,
                        ratio * flash_attention_cost(seqlen, head_dim, kBf16).bytes));
}

TEST(Roofline, IntensityIsFlopPerByte) {
  EXPECT_TRUE(is_near(intensity({6, 3}), 2));
  EXPECT_TRUE(is_near(intensity({8589934592, 138412032}), 62.0606060606));
}

TEST(Roofline, RidgeIsPeakOverBandwidth) {
  EXPECT_TRUE(is_near(ridge(kH100), 295.223880597));
  EXPECT_TRUE(is_near(ridge({312e12, 2.04e12}), 152.941176471));
  EXPECT_TRUE(is_near(ridge({2250e12, 8e12}), 281.25));
  EXPECT_TRUE(is_near(ridge({1307.4e12, 5.3e12}), 246.679245283));
}

TEST(Roofline, RidgesOfTheDeviceRows) {
  const auto of = [](const char* name, Format format) { return ridge(machine(device(name), format)); };
  EXPECT_TRUE(is_near(of("T4", Format::kFp16), 203.125));
  EXPECT_TRUE(is_near(of("A100 80GB SXM", Format::kBf16), 153.016184404));
  EXPECT_TRUE(is_near(of("H100 SXM", Format::kBf16), 295.343, 1e-5));
  EXPECT_TRUE(is_near(of("H100 SXM", Format::kFp32), 19.970, 1e-4)) << "the vector units', for elementwise work";
}

TEST(Roofline, AttainableIsTheLowerRoof) {
  EXPECT_TRUE(is_near(attainable_flop_per_s({8589934592, 138412032}, kH100), 207.903030303e12)) << "under the slope";
  EXPECT_TRUE(is_near(attainable_flop_per_s({8589934592, 4194304}, kH100), 989e12)) << "under the flat roof";
}

TEST(Roofline, TimeIsTheLongerOfArithmeticAndTraffic) {
  // 32 heads of 4096 tokens, head_dim 128, bf16: naive traffic, ideal flash traffic.
  EXPECT_TRUE(is_near(time_bound_s({274877906944, 4429185024}, kH100), 1322.1e-6, 1e-4));
  EXPECT_TRUE(is_near(time_bound_s({274877906944, 134217728}, kH100), 277.94e-6, 1e-4));
  EXPECT_TRUE(is_near(time_bound_s({5 * 0x1p26, 2684354560}, kH100Vector), 0.8013e-3, 1e-4)) << "five kernels";
  EXPECT_TRUE(is_near(time_bound_s({5 * 0x1p26, 536870912}, kH100Vector), 0.16026e-3, 1e-4)) << "one kernel";
  EXPECT_TRUE(is_near(time_bound_s({100, 0}, {50, 1}), 2)) << "arithmetic alone";
}

TEST(Roofline, BoundByComparesIntensityWithTheRidge) {
  EXPECT_EQ(bound_by({19, 2}, {100, 10}), Bound::kMemory);
  EXPECT_EQ(bound_by({20, 2}, {100, 10}), Bound::kCompute) << "at the ridge";
}

TEST(Roofline, ComputeBoundBeginsAtMatmulsOf886AndChainsOf160) {
  EXPECT_EQ(bound_by(matmul_cost(886, 886, 886, kBf16), kH100), Bound::kCompute);
  EXPECT_EQ(bound_by(matmul_cost(885, 885, 885, kBf16), kH100), Bound::kMemory);
  EXPECT_EQ(bound_by(fused_chain_cost(160, 4096, kFp32), kH100Vector), Bound::kCompute);
  EXPECT_EQ(bound_by(fused_chain_cost(159, 4096, kFp32), kH100Vector), Bound::kMemory);
}

TEST(Roofline, VectorAddLeavesTheUnitsIdle) {
  const Cost add = binary_cost(1e6, kBf16);
  EXPECT_TRUE(is_near(attainable_flop_per_s(add, kH100) / kH100.flop_per_s, 0.056e-2, 1e-2)) << "of the tensor peak";
  EXPECT_TRUE(is_near(attainable_flop_per_s(add, kH100Vector) / kH100Vector.flop_per_s, 0.83e-2, 1e-2));
}

TEST(Roofline, WorkedExampleOfTheNote) {
  const Machine toy{16, 16};
  const Cost naive = naive_attention_cost(4, 2, 2), flash = flash_attention_cost(4, 2, 2);
  EXPECT_EQ(ridge(toy), 1);
  EXPECT_TRUE(costs(naive, 128, 192) && costs(flash, 128, 64));
  EXPECT_TRUE(is_near(intensity(naive), 2.0 / 3) && is_near(intensity(flash), 2));
  EXPECT_TRUE(is_near(time_bound_s(naive, toy), 12) && is_near(time_bound_s(flash, toy), 8));
  EXPECT_TRUE(is_near(attainable_flop_per_s(naive, toy), 32.0 / 3) && is_near(attainable_flop_per_s(flash, toy), 16));
  EXPECT_TRUE(bound_by(naive, toy) == Bound::kMemory && bound_by(flash, toy) == Bound::kCompute);
}

}  // namespace
}  // namespace nanolm
