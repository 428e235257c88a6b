#include <gtest/gtest.h>

#include <cmath>

#include "nanolm/linear_attention.h"
#include "support/all_close.h"
#include "support/data.h"
#include "support/output.h"
#include "support/scratch.h"

namespace nanolm {
namespace {

using Floats = std::vector<float>;
using Attention = void (*)(const LinearShape&, std::span<const float>, std::span<const float>, std::span<const float>,
                           std::span<float>);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Lengths of 1, a prime and a power of two; head_dim below, at and above value_dim; batch and heads differ.
const LinearShape kShapes[] = {{1, 1, 1, 1, 1},    {2, 3, 5, 4, 7},    {3, 2, 17, 8, 3}, {1, 2, 64, 16, 16},
                               {2, 1, 101, 5, 20}, {1, 4, 2, 128, 64}, {2, 2, 33, 1, 6}, {1, 3, 40, 6, 1}};

struct Inputs {
  Floats Q, K, V;
};
Inputs inputs(const LinearShape& s, bool whole_numbers) {
  const std::int64_t rows = s.batch * s.heads * s.seqlen;
  Inputs in{normal(rows * s.head_dim), normal(rows * s.head_dim), normal(rows * s.value_dim)};
  if (whole_numbers)
    for (Floats* x : {&in.Q, &in.K, &in.V})
      for (float& value : *x) value = std::round(std::min(std::max(value, -1.5f), 1.5f) * 2);
  return in;
}

// The sum over keys written down directly, in double, and the same sum over absolute values.
struct Truth {
  std::vector<double> O;
  double magnitude = 0;
};
Truth truth(const LinearShape& s, const Inputs& in, bool causal) {
  Truth r;
  const auto at = [](const Floats& x, std::int64_t i) { return static_cast<double>(x[static_cast<std::size_t>(i)]); };
  for (std::int64_t row = 0; row < s.batch * s.heads * s.seqlen; ++row) {
    const std::int64_t first = row - row % s.seqlen, end = causal ? row + 1 : first + s.seqlen;
    for (std::int64_t c = 0; c < s.value_dim; ++c) {
      double sum = 0, terms = 0;
      for (std::int64_t key = first; key < end; ++key)
        for (std::int64_t h = 0; h < s.head_dim; ++h) {
          const double term =
              at(in.Q, row * s.head_dim + h) * at(in.K, key * s.head_dim + h) * at(in.V, key * s.value_dim + c);
          sum += term;
          terms += std::abs(term);
        }
      r.O.push_back(sum);
      r.magnitude = std::max(r.magnitude, terms);
    }
  }
  return r;
}

Floats run(Attention attention, const LinearShape& s, const Inputs& in) {
  Output O(s.batch * s.heads * s.seqlen * s.value_dim);
  attention(s, in.Q, in.K, in.V, O.span());
  EXPECT_TRUE(O.canaries_intact());
  return {O.span().begin(), O.span().end()};
}

// Sums of n products carry sqrt(n) roundings: 2^-23 (2 sqrt(n) + 8), relative to the sum of absolute values.
void expect_truth(Attention attention, bool causal) {
  for (const LinearShape& s : kShapes) {
    SCOPED_TRACE("batch " + std::to_string(s.batch) + " heads " + std::to_string(s.heads) + " seqlen " +
                 std::to_string(s.seqlen) + " dims " + std::to_string(s.head_dim) + "/" + std::to_string(s.value_dim));
    const std::vector<Dim> dims{{"batch", s.batch}, {"head", s.heads}, {"row", s.seqlen}, {"column", s.value_dim}};
    const Inputs in = inputs(s, false), whole = inputs(s, true);
    const Truth expected = truth(s, in, causal);
    const double tolerance = 0x1p-23 * (2 * std::sqrt(static_cast<double>(s.seqlen + s.head_dim)) + 8);
    EXPECT_TRUE(all_close(run(attention, s, in), expected.O, tolerance * expected.magnitude, dims));
    // Products and sums of small whole numbers are exact in any order.
    EXPECT_TRUE(all_close(run(attention, s, whole), truth(s, whole, causal).O, 0, dims)) << "whole numbers";
  }
}

// 1e30 * 1e30 overflows, 1e30 * 1e-30 does not: which product comes first shows in the result.
const Inputs kStateFirstOnly{{1e30f, 1e30f}, {1e30f, 1e30f}, {1e-30f, 3e-30f}};
const Inputs kScoresFirstOnly{{1e-30f, 1e-30f}, {1e30f, 1e30f}, {1e30f, 3e30f}};
const LinearShape kTwoTokens{1, 1, 2, 1, 1};

TEST(LinearAttention, GivenChecksRefuseWrongSizes) {
  const LinearShape shape{2, 2, 3, 4, 5};
  const Floats q(48), v(60), wrong(7);
  Output O(60), out(5), state(20);
  for (const Attention attention : {&scores_first, &state_first, &causal_linear_attention}) {
    EXPECT_THROW(attention(shape, wrong, q, v, O.span()), std::invalid_argument);
    EXPECT_THROW(attention(shape, q, wrong, v, O.span()), std::invalid_argument);
    EXPECT_THROW(attention(shape, q, q, q, O.span()), std::invalid_argument);
    EXPECT_THROW(attention(shape, q, q, v, out.span()), std::invalid_argument);
    EXPECT_THROW(attention({2, -2, 3, 4, 5}, q, q, v, O.span()), std::invalid_argument);
    EXPECT_THROW(attention({0, 2, 3, 0, 5}, {}, {}, {}, {}), std::invalid_argument);
  }
  EXPECT_THROW(linear_attention_step(Floats(4), Floats(3), Floats(5), state.span(), out.span()), std::invalid_argument);
  EXPECT_THROW(linear_attention_step(Floats(4), Floats(4), Floats(4), state.span(), out.span()), std::invalid_argument);
  EXPECT_TRUE(O.untouched() && out.untouched() && state.untouched());
  EXPECT_THROW(scores_first_flop(-1, 2, 3), std::invalid_argument);
  EXPECT_THROW(state_first_flop(1, 0, 3), std::invalid_argument);
  EXPECT_THROW(crossover_seqlen(128, std::nan("")), std::invalid_argument);
}

TEST(LinearAttention, ScoresFirstIsExact) { expect_truth(&scores_first, false); }

TEST(LinearAttention, ScoresFirstMultipliesQueriesAndKeysFirst) {
  EXPECT_TRUE(all_close(run(&scores_first, kTwoTokens, kScoresFirstOnly), Floats(2, 4e30f), 1e25));
}

TEST(LinearAttention, StateFirstIsExact) { expect_truth(&state_first, false); }

TEST(LinearAttention, StateFirstMultipliesKeysAndValuesFirst) {
  EXPECT_TRUE(all_close(run(&state_first, kTwoTokens, kStateFirstOnly), Floats(2, 4e30f), 1e25));
}

TEST(LinearAttention, StepAddsTheTokenThenReads) {
  Floats state{10, 20, 30, 40, 50, 60};
  Output out(3);
  linear_attention_step(Floats{1, -1}, Floats{2, 3}, Floats{1, 0, -2}, state, out.span());
  EXPECT_EQ(state, (Floats{12, 20, 26, 43, 50, 54}));
  EXPECT_TRUE(all_close(out, Floats{-31, -30, -28}, 0));
  EXPECT_TRUE(out.canaries_intact());
}

TEST(LinearAttention, CausalIsExact) { expect_truth(&causal_linear_attention, true); }

TEST(LinearAttention, CausalKeepsARunningState) {
  EXPECT_TRUE(all_close(run(&causal_linear_attention, kTwoTokens, kStateFirstOnly), Floats{1e30f, 4e30f}, 1e25));
}

TEST(LinearAttention, CausalDoesNotLookAhead) {
  const LinearShape s{1, 2, 9, 4, 3};
  const Inputs clean = inputs(s, true);
  Inputs in = clean;
  for (const std::size_t h : {0, 1, 2, 3}) in.K[6 * 4 + h] = kNaN;
  const Floats O = run(&causal_linear_attention, s, in), expected = run(&causal_linear_attention, s, clean);
  for (std::size_t i = 0; i < O.size(); ++i) {
    const std::size_t token = i / 3;  // 9 and above are the second head
    EXPECT_EQ(std::isnan(O[i]), token >= 6 && token < 9) << "token " << token;
    if (token < 6 || token >= 9) {
      EXPECT_EQ(O[i], expected[i]) << "token " << token;
    }
  }
}

TEST(LinearAttention, WorkedExampleOfTheNote) {
  const LinearShape s{1, 1, 3, 2, 1};
  const Inputs in{{1, 0, 1, 1, 0, 2}, {1, 2, 0, 1, 3, 1}, {1, 2, -1}};
  EXPECT_EQ(run(&scores_first, s, in), (Floats{-2, 1, 6}));
  EXPECT_EQ(run(&state_first, s, in), (Floats{-2, 1, 6}));
  EXPECT_EQ(run(&causal_linear_attention, s, in), (Floats{1, 5, 6}));
}

TEST(LinearAttention, StateFormsHoldNoScores) {
  const LinearShape s{1, 2, 1024, 4, 3};
  const Inputs in = inputs(s, false);
  Output O(2 * 1024 * 3);
  for (const Attention attention : {&state_first, &causal_linear_attention}) {
    const ScratchMeter meter;
    attention(s, in.Q, in.K, in.V, O.span());
    // A page of 4 KiB is room for the state of 48 bytes; one row of scores alone fills it.
    EXPECT_LT(meter.peak_bytes(), s.seqlen * 4);
    EXPECT_LT(static_bytes(reinterpret_cast<const void*>(attention)), s.seqlen * s.seqlen / 4);
  }
}

TEST(LinearAttention, FlopOfScoresFirst) {
  EXPECT_TRUE(is_near(scores_first_flop(4096, 128, 128), 8589934592.0));
  EXPECT_TRUE(is_near(scores_first_flop(128, 128, 128), 8388608.0));
  EXPECT_TRUE(is_near(scores_first_flop(10, 3, 5), 1600));
}

TEST(LinearAttention, FlopOfStateFirst) {
  EXPECT_TRUE(is_near(state_first_flop(4096, 128, 128), 268435456.0));
  EXPECT_TRUE(is_near(state_first_flop(128, 128, 128), 8388608.0));
  EXPECT_TRUE(is_near(state_first_flop(10, 3, 5), 600));
}

TEST(LinearAttention, CrossoverIsTheHarmonicMeanOfTheDimensions) {
  EXPECT_TRUE(is_near(crossover_seqlen(128, 128), 128));
  EXPECT_TRUE(is_near(crossover_seqlen(128, 64), 85.333333333333));
  EXPECT_TRUE(is_near(crossover_seqlen(192, 128), 153.6));
}

}  // namespace
}  // namespace nanolm
