#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "nanolm/online_softmax.h"
#include "support/all_close.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"
#include "support/trace.h"

namespace nanolm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Case {
  std::string name;
  std::vector<float> scores, values;
  std::int64_t dim;
};

// Rows in every regime that breaks a wrong softmax; dim differs from n and is no power of two.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t n : {1, 2, 15, 16, 17, 101}) {
    const std::int64_t dim = 5;
    const auto add = [&](const std::string& name, auto score) {
      Case c{name + ", n = " + std::to_string(n), normal(n), normal(n * dim), dim};
      for (std::int64_t j = 0; j < n; ++j)
        c.scores[static_cast<std::size_t>(j)] = score(j, c.scores[static_cast<std::size_t>(j)]);
      all.push_back(std::move(c));
    };
    add("normal scores", [](std::int64_t, float s) { return s; });
    add("scores near 1000", [](std::int64_t, float s) { return 1000 + 8 * s; });
    add("scores near -1000", [](std::int64_t, float s) { return -1000 + 8 * s; });
    add("growing scores", [](std::int64_t j, float s) { return 9 * static_cast<float>(j) + s; });
    add("falling scores", [](std::int64_t j, float s) { return -9 * static_cast<float>(j) + s; });
    add("equal scores", [](std::int64_t, float) { return 0.5f; });
  }
  return all;
}

double tolerance(const Case& c, const oracle::Row& truth) {
  return oracle::softmax_tolerance(truth.score_magnitude, static_cast<std::int64_t>(c.scores.size())) *
         truth.value_magnitude;
}

OnlineSoftmax state_of(std::span<const float> scores, std::span<const float> values, std::int64_t dim) {
  OnlineSoftmax state(dim);
  update(state, scores, values);
  return state;
}

std::vector<float> result(const OnlineSoftmax& state) {
  Output out(static_cast<std::int64_t>(state.acc.size()));
  finish(state, out.span());
  EXPECT_TRUE(out.canaries_intact()) << "finish() wrote outside out";
  return {out.span().begin(), out.span().end()};
}

TEST(OnlineSoftmax, GivenNewStateIsEmpty) {
  const OnlineSoftmax state(3);
  EXPECT_EQ(state.row_max, -kInf);
  EXPECT_EQ(state.row_sum, 0.0f);
  EXPECT_EQ(state.acc, std::vector<float>(3, 0.0f));
}

TEST(OnlineSoftmax, GivenChecksRefuseWrongSizes) {
  const std::vector<float> scores(3), values(6);
  OnlineSoftmax state(4), other(5);
  Output out(3);
  EXPECT_THROW(update(state, scores, values), std::invalid_argument);
  EXPECT_THROW(merge(state, other), std::invalid_argument);
  EXPECT_THROW(finish(state, out.span()), std::invalid_argument);
  EXPECT_THROW(online_softmax_weighted_sum(scores, values, 0), std::invalid_argument);
  EXPECT_THROW(online_softmax_weighted_sum(scores, values, -1), std::invalid_argument);
  EXPECT_THROW(online_softmax_weighted_sum(scores, std::vector<float>(7), 2), std::invalid_argument);
  EXPECT_THROW(online_softmax_weighted_sum({}, std::vector<float>(1), 2), std::invalid_argument);
  EXPECT_TRUE(out.untouched());
  EXPECT_EQ(state.row_max, -kInf);
}

TEST(OnlineSoftmax, UpdateKeepsMaximumSumAndOutput) {
  // exp(1 - 3), exp(3 - 3), exp(2 - 3) against rows of values 1, 7; 10, 5; 100, 20.
  OnlineSoftmax state(2);
  update(state, std::vector<float>{1, 3, 2}, std::vector<float>{1, 7, 10, 5, 100, 20});
  EXPECT_EQ(state.row_max, 3.0f);
  EXPECT_NEAR(state.row_sum, std::exp(-2.0) + 1 + std::exp(-1.0), 1e-6);
  EXPECT_NEAR(state.acc[0], std::exp(-2.0) + 10 + 100 * std::exp(-1.0), 1e-4);
  EXPECT_NEAR(state.acc[1], 7 * std::exp(-2.0) + 5 + 20 * std::exp(-1.0), 1e-4) << "column 1 of 3 rows of 2 values";
}

TEST(OnlineSoftmax, UpdateRescalesWhatWasSummedWhenTheMaximumGrows) {
  OnlineSoftmax state(1);
  update(state, std::vector<float>{1}, std::vector<float>{7});
  update(state, std::vector<float>{3}, std::vector<float>{5});
  EXPECT_EQ(state.row_max, 3.0f);
  EXPECT_NEAR(state.row_sum, std::exp(-2.0) + 1, 1e-6);
  EXPECT_NEAR(state.acc[0], 7 * std::exp(-2.0) + 5, 1e-5);
  update(state, std::vector<float>{2}, std::vector<float>{1});
  EXPECT_EQ(state.row_max, 3.0f) << "a smaller score must not move the maximum";
  EXPECT_NEAR(state.row_sum, std::exp(-2.0) + 1 + std::exp(-1.0), 1e-6);
}

TEST(OnlineSoftmax, UpdateWithAnEmptyBlockChangesNothing) {
  OnlineSoftmax state = state_of(std::vector<float>{1, 2}, std::vector<float>{3, 4}, 1);
  const OnlineSoftmax before = state;
  update(state, {}, {});
  EXPECT_EQ(state.row_max, before.row_max);
  EXPECT_EQ(state.row_sum, before.row_sum);
  EXPECT_EQ(state.acc, before.acc);
}

TEST(OnlineSoftmax, FinishDividesByTheSum) {
  OnlineSoftmax state(2);
  state.row_max = 5;
  state.row_sum = 4;
  state.acc = {2, -6};
  EXPECT_EQ(result(state), (std::vector<float>{0.5f, -1.5f}));
}

TEST(OnlineSoftmax, FinishOfAnEmptyStateIsZero) { EXPECT_EQ(result(OnlineSoftmax(3)), std::vector<float>(3, 0.0f)); }

TEST(OnlineSoftmax, LogSumExpIsTheNaturalLogarithmWithTheMaximum) {
  OnlineSoftmax state(1);
  state.row_max = 5;
  state.row_sum = 2;
  EXPECT_NEAR(logsumexp(state), 5 + std::log(2.0), 1e-6);
  state.row_max = -2000;
  state.row_sum = 1;
  EXPECT_EQ(logsumexp(state), -2000.0f);
}

TEST(OnlineSoftmax, LogSumExpOfAnEmptyStateIsMinusInfinity) { EXPECT_EQ(logsumexp(OnlineSoftmax(1)), -kInf); }

TEST(OnlineSoftmax, LogSumExpMatchesDirectComputation) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const oracle::Row truth = oracle::softmax_row(c.scores, c.values);
    const double allowed = oracle::softmax_tolerance(truth.score_magnitude, static_cast<std::int64_t>(c.scores.size()));
    EXPECT_NEAR(logsumexp(state_of(c.scores, c.values, c.dim)), truth.lse, allowed);
  }
}

TEST(OnlineSoftmax, MatchesDirectComputation) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const oracle::Row truth = oracle::softmax_row(c.scores, c.values);
    EXPECT_TRUE(all_close(online_softmax_weighted_sum(c.scores, c.values, 4), truth.out, tolerance(c, truth)))
        << "result" << oracle::derivation(truth.score_magnitude, std::ssize(c.scores), 0, truth.value_magnitude)
        << (testing::Test::HasFailure() ? "" : first_off_trace(c.scores, c.values, 4));
  }
}

TEST(OnlineSoftmax, BlockSizeDoesNotMatter) {
  for (const Case& c : cases()) {
    const oracle::Row truth = oracle::softmax_row(c.scores, c.values);
    for (const std::int64_t block_size : {1, 2, 3, 7, 16, 100, 101, 1000}) {
      SCOPED_TRACE(c.name + ", block size " + std::to_string(block_size));
      EXPECT_TRUE(
          all_close(online_softmax_weighted_sum(c.scores, c.values, block_size), truth.out, tolerance(c, truth)));
    }
  }
}

TEST(OnlineSoftmax, HandlesLargeLogits) {
  const std::vector<float> values{1, 2};
  const auto pair = [&](float a, float b) {
    return online_softmax_weighted_sum(std::vector<float>{a, b}, values, 1).at(0);
  };
  const double small = 1 / (1 + std::exp(1.0));  // weight of the smaller of two logits that differ by 1
  EXPECT_NEAR(pair(1000, 999), 1 + small, 1e-6);
  EXPECT_NEAR(pair(-1000, -1001), 1 + small, 1e-6);
  EXPECT_NEAR(pair(-200, -201), 1 + small, 1e-6);
  EXPECT_NEAR(pair(-10000, -10000), 1.5, 1e-6);
  EXPECT_NEAR(pair(90, 2), 1.0, 1e-6);
  EXPECT_NEAR(pair(1e30f, -1e30f), 1.0, 0);
}

TEST(OnlineSoftmax, FullyMaskedBlockGivesNoNaN) {
  const std::vector<float> masked{-kInf, -kInf}, masked_values{5, 7, 5, 7};
  const std::vector<float> scores{0.25f, -0.5f}, block_values{1, 2, 3, 4};
  const oracle::Row truth = oracle::softmax_row(scores, block_values);
  for (const std::string order : {"masked first", "masked in the middle", "masked last"}) {
    SCOPED_TRACE(order);
    OnlineSoftmax state(2);
    if (order == "masked first") update(state, masked, masked_values);
    update(state, std::span(scores).first(1), std::span(block_values).first(2));
    if (order == "masked in the middle") update(state, masked, masked_values);
    update(state, std::span(scores).last(1), std::span(block_values).last(2));
    if (order == "masked last") update(state, masked, masked_values);
    EXPECT_TRUE(all_close(result(state), truth.out, 1e-6));
    EXPECT_NEAR(logsumexp(state), truth.lse, 1e-6);
  }
  OnlineSoftmax all = state_of(masked, masked_values, 2);
  update(all, masked, masked_values);
  EXPECT_EQ(result(all), std::vector<float>(2, 0.0f)) << "every block masked";
  EXPECT_EQ(logsumexp(all), -kInf) << "every block masked";
}

TEST(OnlineSoftmax, EmptyStateKeepsMinusInfinityAsItsMaximum) {
  // A stored 0 would be larger than every score that follows, and exp(-1000 - 0) is 0.
  const std::vector<float> masked{-kInf}, anything{7}, low{-1000, -1001}, values{1, 2};
  const double expected = 1 + 1 / (1 + std::exp(1.0));
  OnlineSoftmax updated = state_of(masked, anything, 1);
  EXPECT_EQ(updated.row_max, -kInf) << "after a masked block";
  update(updated, low, values);
  EXPECT_NEAR(result(updated)[0], expected, 1e-6) << "scores near -1000 after a masked block";
  OnlineSoftmax merged(1);
  merge(merged, OnlineSoftmax(1));
  EXPECT_EQ(merged.row_max, -kInf) << "after merging two empty states";
  merge(merged, state_of(low, values, 1));
  EXPECT_NEAR(result(merged)[0], expected, 1e-6) << "scores near -1000 merged into an empty state";
}

TEST(OnlineSoftmax, MaskedValuesAreNotRead) {
  const std::vector<float> scores{1, -kInf, 2}, values{1, kNaN, 3}, clean{1, 0, 3};
  for (const std::int64_t block_size : {1, 2, 3})
    EXPECT_EQ(online_softmax_weighted_sum(scores, values, block_size),
              online_softmax_weighted_sum(scores, clean, block_size));
}

TEST(OnlineSoftmax, NaNScoreIsNotHidden) {
  for (const std::vector<float>& scores :
       {std::vector<float>{1, kNaN, 2}, {kNaN, 1, 2}, {1, 2, kNaN}, {kNaN, -kInf, -kInf}})
    for (const std::int64_t block_size : {1, 3}) {
      const float out = online_softmax_weighted_sum(scores, std::vector<float>{1, 2, 3}, block_size).at(0);
      EXPECT_TRUE(std::isnan(out)) << out << " instead of NaN for scores " << testing::PrintToString(scores)
                                   << ", block size " << block_size;
    }
}

TEST(OnlineSoftmax, MergeEqualsOnePass) {
  for (const Case& c : cases()) {
    const oracle::Row truth = oracle::softmax_row(c.scores, c.values);
    const auto n = c.scores.size(), dim = static_cast<std::size_t>(c.dim);
    for (const std::size_t cut : {n / 3, n / 2, n}) {
      SCOPED_TRACE(c.name + ", first part " + std::to_string(cut));
      const std::span scores(c.scores), values(c.values);
      OnlineSoftmax left = state_of(scores.first(cut), values.first(cut * dim), c.dim);
      merge(left, state_of(scores.subspan(cut), values.subspan(cut * dim), c.dim));
      EXPECT_TRUE(all_close(result(left), truth.out, tolerance(c, truth)));
    }
  }
}

TEST(OnlineSoftmax, MergeIsAssociative) {
  const std::vector<float> scores{3, -40, 25, 1, 60, 2}, values = normal(6);
  const std::span s(scores), v(values);
  const OnlineSoftmax a = state_of(s.first(2), v.first(2), 1), b = state_of(s.subspan(2, 2), v.subspan(2, 2), 1),
                      c = state_of(s.last(2), v.last(2), 1);
  OnlineSoftmax left = a, right = b;
  merge(left, b);
  merge(left, c);
  merge(right, c);
  OnlineSoftmax whole = a;
  merge(whole, right);
  EXPECT_EQ(left.row_max, whole.row_max);
  EXPECT_NEAR(left.row_sum, whole.row_sum, 1e-5);
  EXPECT_TRUE(all_close(result(left), result(whole), 1e-5));
}

TEST(OnlineSoftmax, MergeWithAnEmptyStateChangesNothing) {
  const OnlineSoftmax full = state_of(std::vector<float>{-500, -501}, std::vector<float>{1, 2}, 1);
  OnlineSoftmax right = full, left(1), both(1);
  merge(right, OnlineSoftmax(1));
  merge(left, full);
  merge(both, OnlineSoftmax(1));
  for (const OnlineSoftmax& state : {right, left}) {
    EXPECT_EQ(state.row_max, full.row_max);
    EXPECT_EQ(state.row_sum, full.row_sum);
    EXPECT_EQ(state.acc, full.acc);
  }
  EXPECT_EQ(logsumexp(both), -kInf);
  EXPECT_EQ(result(both), std::vector<float>(1, 0.0f));
}

TEST(OnlineSoftmax, NoScoresGiveAnEmptyResult) {
  // Two scores must give a result, so that returning nothing at all, or the values, does not pass.
  EXPECT_EQ(online_softmax_weighted_sum(std::vector<float>{3, 3}, std::vector<float>{4, 5, 6, 9}, 2),
            (std::vector<float>{5, 7}));
  EXPECT_TRUE(online_softmax_weighted_sum({}, {}, 2).empty());
}

TEST(OnlineSoftmax, WorkedExampleOfTheNote) {
  const std::vector<float> scores{1, 3, 2, 5}, values{10, 20, 30, 40};
  const std::span s(scores), v(values);
  OnlineSoftmax state = state_of(s.first(2), v.first(2), 1);
  EXPECT_EQ(state.row_max, 3.0f);
  EXPECT_NEAR(state.row_sum, 1.13534, 5e-6);
  EXPECT_NEAR(state.acc[0], 21.35335, 5e-5);
  update(state, s.last(2), v.last(2));
  EXPECT_EQ(state.row_max, 5.0f);
  EXPECT_NEAR(state.row_sum, 1.20344, 5e-6);
  EXPECT_NEAR(state.acc[0], 44.38347, 5e-5);
  EXPECT_NEAR(result(state)[0], 36.88057, 5e-5);
  EXPECT_NEAR(logsumexp(state), 5.18518, 5e-5);
}

}  // namespace
}  // namespace nanolm
