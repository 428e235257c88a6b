// What the decode of each rung must bear: streams, relaunches, odd pointers, large logits, NaN in its inputs.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_decode.h"

namespace nanolm::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

AttentionShape cache(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t keys,
                     std::int64_t head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, 1, keys, head_dim, scale, false};
}
std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size), value);
}

TEST(Streams, TwoLaunchesInFlightDoNotMeet) {
  for (const Decode& d : decodes()) {
    const AttentionShape s1 = cache(2, 4, 2, 130, 64), s2 = cache(1, 8, 1, 33, 128);
    const AttentionData data1 = d.rounded(attention_data(s1, Scores::kNormal));
    const AttentionData data2 = d.rounded(attention_data(s2, Scores::kGrowing));
    cudaStream_t streams[2] = {};
    for (cudaStream_t& stream : streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DecodeCall call1(d, s1, 5, data1), call2(d, s2, 3, data2);
    call1.launch(streams[0]);
    call2.launch(streams[1]);
    SCOPED_TRACE(d.name());
    expect_close(d, s1, data1, call1.result());
    expect_close(d, s2, data2, call2.result());
    for (const cudaStream_t stream : streams) CUDA_CHECK(cudaStreamDestroy(stream));
  }
}

TEST(Relaunch, GivesTheSameBitsInUnclearedMemory) {
  for (const Decode& d : decodes())
    for (const int splits : {1, 6}) {
      const AttentionShape s = cache(1, 4, 1, 170, 128);
      SCOPED_TRACE(d.name() + ", splits " + std::to_string(splits));
      const AttentionData data = d.rounded(attention_data(s, Scores::kNormal));
      DecodeCall call(d, s, splits, data);
      call.launch();
      const Decoded first = call.result();
      expect_close(d, s, data, first);
      for (int i = 0; i < 2; ++i) {
        call.launch();
        const Decoded again = call.result();
        EXPECT_TRUE(same_bits(again.O, first.O)) << "O";
        EXPECT_TRUE(same_bits(again.lse, first.lse)) << "lse";
      }
    }
}

TEST(Pointers, OffByOneElementAreServedOrRefused) {
  for (const Decode& d : decodes())
    for (const unsigned shifted : {+kQ, +kK, +kV, +kO, +kLse, +kAll}) {
      const AttentionShape s = cache(2, 2, 1, 33, 64);
      SCOPED_TRACE(d.name() + ", shifted tensors " + std::to_string(shifted));
      const AttentionData data = d.rounded(attention_data(s, Scores::kNormal));
      DecodeCall call(d, s, 2, data, {true, shifted});
      try {
        call.launch();
        expect_close(d, s, data, call.result());
      } catch (const std::invalid_argument&) {
        EXPECT_TRUE(call.untouched());
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      }
    }
}

// One key is far above all others, at a score of about 1e5: its weight is exp(0) = 1, theirs are 0, so O is its value
// row, bit for bit, whichever split it is in.
TEST(Logits, TheLargestOf100000HasTheWeightOne) {
  for (const Decode& d : decodes())
    for (const std::int64_t winner : {0, 37, 69})
      for (const int splits : {1, 4}) {
        const AttentionShape s = cache(1, 1, 1, 70, 64);
        SCOPED_TRACE(d.name() + ", key " + std::to_string(winner) + " above all others, splits " +
                     std::to_string(splits));
        AttentionData data{filled(64, 111.3f), filled(70 * 64, 100.1f), normal(70 * 64)};
        std::fill_n(data.K.begin() + 64 * winner, 64, 113.7f);
        data = d.rounded(data);
        const Decoded r = run(d, s, splits, data);
        EXPECT_TRUE(same_bits(r.O, {data.V.begin() + 64 * winner, data.V.begin() + 64 * (winner + 1)}));
        expect_close(d, s, data, r);
      }
}

// All scores are alike, and below any number that may stand for minus infinity: as with Q = 0, O is the mean of V.
TEST(Logits, FarBelowZeroWeighAsAtZero) {
  for (const Decode& d : decodes())
    for (const float size : {400.0f, 1e15f}) {  // scores of -1.3e6 and -8e30
      const AttentionShape s = cache(1, 2, 1, 70, 64);
      SCOPED_TRACE(d.name() + ", scores of -8 * " + std::to_string(size) + "^2");
      const AttentionData data =
          d.rounded(AttentionData{filled(q_size(s), size), filled(kv_size(s), -size), normal(kv_size(s))});
      const Decoded r = run(d, s, 3, data);
      const oracle::Forward truth = oracle::forward(s, filled(q_size(s), 0), data.K, data.V);
      EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(d, s, truth))) << "O" << derivation(s, truth, true);
    }
}

// A NaN in one row of Q, or in the cache of one kv head, reaches the rows that read it and no other.
TEST(NaN, ReachesOnlyTheRowsThatReadIt) {
  for (const Decode& d : decodes()) {
    const AttentionShape s = cache(2, 4, 2, 45, 64);
    const AttentionData clean = d.rounded(attention_data(s, Scores::kNormal));
    const Decoded expected = run(d, s, 3, clean);
    expect_close(d, s, clean, expected);
    const auto expect_only = [&](const AttentionData& data, std::int64_t first, std::int64_t last) {
      const Decoded r = run(d, s, 3, data);
      for (std::int64_t row = 0; row < 8; ++row) {
        const auto of = [&](const Decoded& x) {
          return std::vector<float>(x.O.begin() + 64 * row, x.O.begin() + 64 * (row + 1));
        };
        const std::vector<float> O = of(r);
        if (row >= first && row < last)
          EXPECT_TRUE(std::all_of(O.begin(), O.end(), [](float x) { return std::isnan(x); })) << "row " << row;
        else
          EXPECT_TRUE(same_bits(O, of(expected))) << "row " << row;
      }
    };
    SCOPED_TRACE(d.name());
    AttentionData data = clean;
    data.Q[5 * 64 + 9] = kNaN;
    expect_only(data, 5, 6);
    data = clean;
    data.K[(2 * 45 + 44) * 64 + 63] = kNaN;  // batch 1, kv head 0, the last key
    expect_only(data, 4, 6);
    data = clean;
    std::fill_n(data.V.begin() + (1 * 45 + 3) * 64, 64, kNaN);  // batch 0, kv head 1
    expect_only(data, 2, 4);
  }
}

}  // namespace
}  // namespace nanolm::cuda
