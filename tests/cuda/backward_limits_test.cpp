// What the backward pass of each rung must bear: streams, relaunches, odd pointers, large logits, NaN in its inputs.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_backward.h"

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return {1, 1, 1, seqlen_q, seqlen_k, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}
// Row `row` of a tensor whose rows hold `dim` elements.
void fill_row(Floats& tensor, std::int64_t row, std::int64_t dim, float value) {
  std::fill_n(tensor.begin() + row * dim, dim, value);
}
void expect_same_bits(const Gradients& actual, const Gradients& expected) {
  EXPECT_TRUE(same_bits(actual.dV, expected.dV)) << "dV";
  EXPECT_TRUE(same_bits(actual.dK, expected.dK)) << "dK";
  EXPECT_TRUE(same_bits(actual.dQ, expected.dQ)) << "dQ";
}
// Each row is all NaN where hit(row) says so, else bit-equal to the clean one.
template <class Hit>
void expect_only(const char* which, const Floats& actual, const Floats& clean, std::int64_t dim, Hit hit) {
  for (std::int64_t row = 0; row * dim < static_cast<std::int64_t>(actual.size()); ++row) {
    const Floats is(actual.begin() + row * dim, actual.begin() + (row + 1) * dim);
    const Floats was(clean.begin() + row * dim, clean.begin() + (row + 1) * dim);
    if (hit(row))
      EXPECT_TRUE(std::all_of(is.begin(), is.end(), [](float x) { return std::isnan(x); }))
          << "row " << row << " of " << which << " meets a NaN and hides it";
    else
      EXPECT_TRUE(same_bits(is, was)) << "row " << row << " of " << which << " meets no NaN";
  }
}

TEST(Streams, TwoLaunchesInFlightDoNotMeet) {
  for (const Backward& b : backwards()) {
    SCOPED_TRACE(b.name());
    const Problem p1(head(65, 70, 64), Scores::kNormal), p2({2, 2, 1, 17, 33, 20, 0.3f, true}, Scores::kGrowing);
    cudaStream_t streams[2] = {};
    for (cudaStream_t& stream : streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    BackwardCall call1(b, p1), call2(b, p2);
    call1.launch(streams[0]);
    call2.launch(streams[1]);
    expect_close(p1, call1.result());
    expect_close(p2, call2.result());
    for (const cudaStream_t stream : streams) CUDA_CHECK(cudaStreamDestroy(stream));
  }
}

TEST(Relaunch, GivesTheSameBitsInUnclearedMemory) {
  for (const Backward& b : backwards()) {
    const Problem p({1, 4, 2, 70, 135, 64, 0.125f, true}, Scores::kNormal);
    SCOPED_TRACE(b.name() + ", " + name(p.shape));
    BackwardCall call(b, p);
    call.launch();
    const Gradients first = call.result();
    expect_close(p, first);
    for (int i = 0; i < 2; ++i) {
      call.launch();
      expect_same_bits(call.result(), first);
    }
  }
}

TEST(Pointers, OffByOneElementAreServedOrRefused) {
  for (const Backward& b : backwards()) {
    const Problem p(head(9, 33, 64), Scores::kNormal);
    for (unsigned shifted = kQ; shifted <= kAll; shifted = shifted == kGradientV ? +kAll : 2 * shifted) {
      SCOPED_TRACE(b.name() + ", shifted tensors " + std::to_string(shifted));
      BackwardCall call(b, p, {true, shifted});
      try {
        call.launch();
        expect_close(p, call.result());
      } catch (const std::invalid_argument&) {
        EXPECT_TRUE(call.untouched());
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      }
    }
  }
}

// One key is far above all others, at a score of 64 * 111 * 113 / 8 = 100344, which float holds: its weight is exp(0) =
// 1 and theirs are 0. So its row of dV is the sum of dO, bit for bit, and the others are 0.
TEST(Logits, TheLargestOf100000HasTheWeightOne) {
  for (const Backward& b : backwards()) {
    SCOPED_TRACE(b.name());
    Problem p(head(1, 70, 64), Scores::kNormal);
    p.data.Q.assign(64, 111);
    for (std::int64_t key = 0; key < 70; ++key) fill_row(p.data.K, key, 64, key == 37 ? 113.0f : 100.0f);
    p.lse = {100344};
    p.O.assign(p.data.V.begin() + 37 * 64, p.data.V.begin() + 38 * 64);
    Floats expected(70 * 64, 0);
    std::copy(p.dO.begin(), p.dO.end(), expected.begin() + 37 * 64);
    EXPECT_TRUE(same_bits(run(b, p).dV, expected));
  }
}

// With scores of 8e30 and lse the same, all weights are finite only if the difference is taken before exp2.
TEST(Logits, FarBelowZeroWeighAsTheirLseSays) {
  for (const Backward& b : backwards()) {
    SCOPED_TRACE(b.name());
    Problem p(head(1, 1, 64), Scores::kNormal);
    p.data.Q.assign(64, 0x1p50f);
    p.data.K.assign(64, -0x1p50f);
    p.lse = {-0x1p103f};  // 64 * 2^100 / 8
    p.O = p.data.V;
    EXPECT_TRUE(same_bits(run(b, p).dV, p.dO)) << "one key has the weight 1";
  }
}

TEST(EmptyRows, SayTheirLseAndAddNothing) {
  // Row 70 is empty because its lse says so. Causal, 140 queries and 75 keys: rows 0 to 64 see none.
  for (const Backward& b : backwards())
    for (const auto& [head_dim, causal] : {std::pair{4, true}, std::pair{64, true}, std::pair{64, false}}) {
      Problem p(head(140, causal ? 75 : 128, head_dim, causal), Scores::kNormal);
      SCOPED_TRACE(b.name() + ", " + name(p.shape));
      const auto is_empty = [causal = causal](std::int64_t row) { return (causal && row < 65) || row == 70; };
      p.lse[70] = -kInf;
      Problem poisoned = p;
      for (std::int64_t row = 0; row < 140; ++row) {
        if (!is_empty(row)) continue;
        for (Floats* tensor : {&p.O, &p.dO}) fill_row(*tensor, row, head_dim, 0);
        for (Floats* tensor : {&poisoned.data.Q, &poisoned.dO}) fill_row(*tensor, row, head_dim, kNaN);
      }
      const Gradients expected = run(b, p), g = run(b, poisoned);
      expect_same_bits(g, expected);
      for (std::int64_t row = 0; row < 140; ++row) {
        if (causal && row == 65) continue;  // it has one key, of the weight 1: dS is 0 but for rounding
        const auto first = g.dQ.begin() + row * head_dim;
        const bool zeros = std::count(first, first + head_dim, 0.0f) == head_dim;
        EXPECT_EQ(zeros, is_empty(row)) << "row " << row << " of dQ";
      }
    }
}

// Causal, 135 x 135 in two heads of one kv head, as the forward pass leaves it: a NaN in row 40 of head 1 has spread to
// its O and lse, one in key 70 to those of the rows that see it.
TEST(NaN, InAQueryReachesTheKeysThatItSees) {
  for (const Backward& b : backwards()) {
    const AttentionShape s{1, 2, 2, 135, 135, 20, 0.2f, true};
    const Problem clean(s, Scores::kNormal);
    const Gradients expected = run(b, clean);
    expect_close(clean, expected);
    const std::int64_t row = 135 + 40;
    for (const bool in_dO : {false, true}) {
      SCOPED_TRACE(b.name() + (in_dO ? ", in dO" : ", in Q, O and lse"));
      Problem p = clean;
      fill_row(in_dO ? p.dO : p.data.Q, row, 20, kNaN);
      if (!in_dO) fill_row(p.O, row, 20, kNaN), p.lse[static_cast<std::size_t>(row)] = kNaN;
      const Gradients g = run(b, p);
      expect_only("dQ", g.dQ, expected.dQ, 20, [&](std::int64_t r) { return r == row; });
      for (const auto& [which, actual, was] :
           {std::tuple{"dV", &g.dV, &expected.dV}, std::tuple{"dK", &g.dK, &expected.dK}})
        expect_only(which, *actual, *was, 20, [&](std::int64_t key) { return key >= 135 && key <= row; });
    }
  }
}

TEST(NaN, InAKeyReachesTheQueriesThatSeeIt) {
  for (const Backward& b : backwards()) {
    const AttentionShape s{1, 2, 2, 135, 135, 20, 0.2f, true};
    SCOPED_TRACE(b.name());
    const Problem clean(s, Scores::kNormal);
    const Gradients expected = run(b, clean);
    Problem p = clean;
    const auto sees = [](std::int64_t row) { return row >= 135 + 70; };
    fill_row(p.data.K, 135 + 70, 20, kNaN);
    fill_row(p.data.V, 135 + 70, 20, kNaN);
    for (std::int64_t row = 135 + 70; row < 270; ++row)
      fill_row(p.O, row, 20, kNaN), p.lse[static_cast<std::size_t>(row)] = kNaN;
    expect_only("dQ", run(b, p).dQ, expected.dQ, 20, sees);
  }
}

// One NaN in a padded place: head_dim 7 has a column behind the row, the last tile rows behind the tensor.
TEST(NaN, BehindATensorIsNotRead) {
  for (const Backward& b : backwards())
    expect_matches_oracle(b, head(3, 5, 7), Scores::kNormal, kOfAll, {true});  // NaNs stand around each input
}

}  // namespace
}  // namespace nanolm::cuda
