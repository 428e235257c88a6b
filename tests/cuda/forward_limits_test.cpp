// What the forward pass of each rung must bear: streams, relaunches, odd pointers, large logits, NaN in its inputs.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_forward.h"

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return {1, 1, 1, seqlen_q, seqlen_k, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}
std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size), value);
}
// Rows first to last - 1 of a tensor whose rows hold `row` elements.
void fill_rows(std::vector<float>& tensor, std::int64_t row, std::int64_t first, std::int64_t last, float value) {
  std::fill(tensor.begin() + row * first, tensor.begin() + row * last, value);
}

// Each row of O and its lse is NaN where `poisoned` says so, else bit-equal to the clean one. poisoned(row index).
template <class Poisoned>
void expect_only(const AttentionShape& s, const Result& r, const Result& clean, bool lse_too, Poisoned poisoned) {
  const auto row_of = [&s](const Result& result, std::int64_t row) {
    const auto first = result.O.begin() + row * s.head_dim;
    return std::vector<float>(first, first + s.head_dim);
  };
  const auto is_nan = [](float x) { return std::isnan(x); };
  for (std::int64_t row = 0; row < lse_size(s); ++row) {
    const bool hit = poisoned(row);
    const std::vector<float> O = row_of(r, row);
    const float lse = r.lse[static_cast<std::size_t>(row)], clean_lse = clean.lse[static_cast<std::size_t>(row)];
    if (hit)
      EXPECT_TRUE(std::all_of(O.begin(), O.end(), is_nan)) << "row " << row << " of O sees a NaN and hides it";
    else
      EXPECT_TRUE(same_bits(O, row_of(clean, row))) << "row " << row << " of O sees no NaN";
    if (hit && lse_too)
      EXPECT_TRUE(std::isnan(lse)) << "row " << row << " sees a NaN, its lse is " << lse;
    else
      EXPECT_TRUE(same_bits({lse}, {clean_lse})) << "lse of row " << row;
  }
}

TEST(Streams, OneThatIsNotTheDefault) {
  for (const Forward& f : forwards()) {
    const AttentionShape s = head(33, 70, 64, true);
    SCOPED_TRACE(f.name() + ", " + name(s));
    const AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ForwardCall call(f, s, data);
    call.launch(stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    expect_close(f, s, data, call.result());
    CUDA_CHECK(cudaStreamDestroy(stream));
  }
}

TEST(Streams, TwoLaunchesInFlightDoNotMeet) {
  for (const Forward& f : forwards()) {
    const AttentionShape s1 = head(65, 70, 64), s2 = f.served({2, 2, 1, 17, 33, 20, 0.3f, true});
    const AttentionData data1 = f.rounded(attention_data(s1, Scores::kNormal));
    const AttentionData data2 = f.rounded(attention_data(s2, Scores::kGrowing));
    cudaStream_t streams[2] = {};
    for (cudaStream_t& stream : streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ForwardCall call1(f, s1, data1), call2(f, s2, data2);
    call1.launch(streams[0]);
    call2.launch(streams[1]);
    {
      SCOPED_TRACE(f.name() + ", first stream, " + name(s1));
      expect_close(f, s1, data1, call1.result());
    }
    SCOPED_TRACE(f.name() + ", second stream, " + name(s2));
    expect_close(f, s2, data2, call2.result());
    for (const cudaStream_t stream : streams) CUDA_CHECK(cudaStreamDestroy(stream));
  }
}

TEST(Relaunch, GivesTheSameBitsInUnclearedMemory) {
  for (const Forward& f : forwards()) {
    const AttentionShape s{1, 2, 1, 35, 70, 64, 0.125f, true};
    SCOPED_TRACE(f.name() + ", " + name(s));
    const AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
    ForwardCall call(f, s, data);
    call.launch();
    const Result first = call.result();
    expect_close(f, s, data, first);
    for (int i = 0; i < 2; ++i) {
      call.launch();
      const Result again = call.result();
      EXPECT_TRUE(same_bits(again.O, first.O)) << "O";
      EXPECT_TRUE(same_bits(again.lse, first.lse)) << "lse";
    }
  }
}

TEST(Pointers, OffByOneElementAreServedOrRefused) {
  for (const Forward& f : forwards())
    for (const AttentionShape& s : {head(9, 33, 64), f.served(head(9, 5, 4, true))})
      for (const unsigned shifted : {+kQ, +kK, +kV, +kO, +kLse, +kAll}) {
        SCOPED_TRACE(f.name() + ", " + name(s) + ", shifted tensors " + std::to_string(shifted));
        const AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
        ForwardCall call(f, s, data, {true, shifted});
        try {
          call.launch();
          expect_close(f, s, data, call.result());
        } catch (const std::invalid_argument&) {
          EXPECT_TRUE(call.untouched());
          EXPECT_EQ(cudaGetLastError(), cudaSuccess);
        }
      }
}

// One key is far above all others, at a score of about 1e5. Its weight is exp(0) = 1 and theirs are 0, so O is its
// value row, bit for bit. exp2(fma(s, c, -m * c)) is not: the rounding of m * c, up to 0.008 here, is left over.
TEST(Logits, TheLargestOf100000HasTheWeightOne) {
  for (const Forward& f : forwards())
    for (const std::int64_t winner : {0, 37, 69}) {
      const AttentionShape s = head(33, 70, 64);
      SCOPED_TRACE(f.name() + ", " + name(s) + ", key " + std::to_string(winner) + " above all others");
      AttentionData data{filled(33 * 64, 0), filled(70 * 64, 0), normal(70 * 64)};
      for (std::int64_t i = 0; i < 33; ++i) fill_rows(data.Q, 64, i, i + 1, 111.3f + 0.1f * static_cast<float>(i));
      for (std::int64_t j = 0; j < 70; ++j) fill_rows(data.K, 64, j, j + 1, j == winner ? 113.7f : 100.1f);
      data = f.rounded(data);
      const Result r = run(f, s, data);
      for (std::int64_t i = 0; i < 33; ++i)
        EXPECT_TRUE(same_bits({r.O.begin() + 64 * i, r.O.begin() + 64 * (i + 1)},
                              {data.V.begin() + 64 * winner, data.V.begin() + 64 * (winner + 1)}))
            << "row " << i;
      expect_close(f, s, data, r);
    }
}

TEST(Logits, OneKeyAt140000000000GivesItsValue) {
  // The score is 64 * 133120^2 / 8 = 1.4e11; the rounding of m * c is in the thousands there.
  for (const Forward& f : forwards()) {
    const AttentionShape s = head(2, 1, 64);
    const Result r = run(f, s, {filled(2 * 64, 133120), filled(64, 133120), filled(64, 133120)});
    EXPECT_TRUE(same_bits(r.O, filled(2 * 64, 133120))) << f.name();
  }
}

// All scores are alike, and below any number that may stand for minus infinity: as with Q = 0, O is the mean of V.
TEST(Logits, FarBelowZeroWeighAsAtZero) {
  for (const Forward& f : forwards())
    for (const float size : {400.0f, 1e15f}) {  // scores of -1.3e6 and -8e30
      const AttentionShape s = head(33, 70, 64, true);
      SCOPED_TRACE(f.name() + ", " + name(s) + ", scores of -8 * " + std::to_string(size) + "^2");
      const AttentionData data =
          f.rounded(AttentionData{filled(q_size(s), size), filled(kv_size(s), -size), normal(kv_size(s))});
      const Result r = run(f, s, data);
      const oracle::Forward truth = oracle::forward(s, filled(q_size(s), 0), data.K, data.V);
      EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(f, s, truth))) << "O" << derivation(s, truth, true);
      for (const float lse : r.lse) EXPECT_TRUE(is_near(lse, -8.0 * data.Q[0] * data.Q[0], 1e-5)) << "lse";
    }
}

TEST(NaN, InARowOfQStaysInThatRow) {
  for (const Forward& f : forwards())
    for (const bool causal : {false, true}) {
      const AttentionShape s = f.served({1, 2, 1, 35, 70, 20, 0.2f, causal});
      SCOPED_TRACE(f.name() + ", " + name(s));
      AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
      const Result clean = run(f, s, data);
      expect_close(f, s, data, clean);
      data.Q[static_cast<std::size_t>(40 * s.head_dim + 7)] = kNaN;  // head 1, row 5
      expect_only(s, run(f, s, data), clean, true, [](std::int64_t row) { return row == 40; });
    }
}

TEST(NaN, InOneKvHeadReachesItsQueryHeadsOnly) {
  for (const Forward& f : forwards()) {
    const AttentionShape s = f.served({2, 4, 2, 9, 11, 20, 0.2f, false});
    AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
    const Result clean = run(f, s, data);
    expect_close(f, s, data, clean);
    // Batch 1, kv head 0: query heads 0 and 1 of batch 1, which are rows 36 to 53.
    const auto hit = [](std::int64_t row) { return row >= 36 && row < 54; };
    std::vector<float>* const tensors[] = {&data.K, &data.V};
    for (std::vector<float>* tensor : tensors) {
      SCOPED_TRACE(f.name() + ", " + name(s) + (tensor == &data.K ? ", in K" : ", in V"));
      const std::vector<float> kept = *tensor;
      fill_rows(*tensor, s.head_dim, 22, 33, kNaN);
      expect_only(s, run(f, s, data), clean, tensor == &data.K, hit);
      *tensor = kept;
    }
  }
}

TEST(NaN, InAMaskedKeyIsNotSeen) {
  // Row i sees keys up to i + 5: NaN in key 30 is seen from row 25 on, in the last key by the last row.
  for (const Forward& f : forwards())
    for (const std::int64_t key : {30, 69}) {
      const AttentionShape s = f.served(head(65, 70, 20, true));
      AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
      const Result clean = run(f, s, data);
      expect_close(f, s, data, clean);
      const auto hit = [key](std::int64_t row) { return row + 5 >= key; };
      SCOPED_TRACE(f.name() + ", " + name(s) + ", NaN in key " + std::to_string(key));
      fill_rows(data.K, s.head_dim, key, key + 1, kNaN);
      expect_only(s, run(f, s, data), clean, true, hit);
      if (f.is_bf16) continue;  // tensor cores multiply a masked value by its weight 0, which gives NaN
      fill_rows(data.V, s.head_dim, key, key + 1, kNaN);
      expect_only(s, run(f, s, data), clean, true, hit);
    }
}

TEST(NaN, InTheOnlyKeyIsNotSeenByRowsWithoutKeys) {
  // Causal with more queries than keys: rows 0 to 4 see no key, row 5 sees the NaN.
  for (const Forward& f : forwards()) {
    const AttentionShape s = f.served(head(6, 1, 4, true));
    SCOPED_TRACE(f.name() + ", " + name(s));
    const Result r = run(f, s, {filled(q_size(s), 1), filled(kv_size(s), kNaN), filled(kv_size(s), 1)});
    const Result zeros{filled(q_size(s), 0), filled(6, -kInf)};
    expect_only(s, r, zeros, true, [](std::int64_t row) { return row == 5; });
  }
}

}  // namespace
}  // namespace nanolm::cuda
