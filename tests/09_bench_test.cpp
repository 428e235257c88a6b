#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "nanolm/bench.h"
#include "support/all_close.h"
#include "support/data.h"

namespace nanolm {
namespace {

using Samples = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A clock that is read from a list, and a record of who was called: F fn, S sync, N now.
struct Script {
  std::vector<std::int64_t> times;
  std::string log = {};
  std::size_t read = 0;

  BenchResult time(std::int64_t warmup, std::int64_t repetitions) {
    return time_fn([this] { log += 'F'; }, warmup, repetitions, [this] { log += 'S'; },
                   [this] {
                     log += 'N';
                     return times.at(read++);
                   });
  }
};

TEST(StudentT, GivenCdfMatchesClosedForms) {
  for (const double t : {-1e6, -40.0, -2.5, -0.3, 0.0, 1e-9, 0.7, 1.0, 1.96, 6.0, 300.0}) {
    SCOPED_TRACE(t);
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-15);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / std::sqrt(2 + t * t) / 2, 1e-15);
    const double sine = t / std::sqrt(4 + t * t), cosine_squared = 4 / (4 + t * t);
    EXPECT_NEAR(student_t_cdf(t, 4), 0.5 + sine * (1 + cosine_squared / 2) / 2, 1e-15);
    EXPECT_NEAR(student_t_cdf(t, kInf), std::erfc(-t / std::sqrt(2.0)) / 2, 1e-15);
    for (const double dof : {0.05, 7.35, 39.9, 1e4, 1e9}) EXPECT_EQ(student_t_tail(t, dof), student_t_tail(-t, dof));
  }
  EXPECT_TRUE(std::isnan(student_t_cdf(kNaN, 3)));
  EXPECT_EQ(student_t_cdf(kInf, 3), 1);
  EXPECT_EQ(student_t_cdf(-kInf, 3), 0);
}

TEST(StudentT, GivenCdfAndTailMatchHighPrecision) {
  // Right values in 40-digit arithmetic; both sides of the change of method at dof = 40, and the tail's worst point.
  const double cdf[][3] = {
      {2.5, 4.5, 0.97004715674889972778},  {0.1, 0.5, 0.52683418943569679916}, {-1.7, 7.35, 0.065442542159896625387},
      {-3, 39, 0.0023432839701823438635},  {3, 39.999, 0.9976849026811612913}, {3, 40, 0.99768493010792193112},
      {3, 40.001, 0.99768495753314984562}, {1, 120, 0.84033863806778938118},   {1.96, 1e5, 0.97500071840284918098},
      {2, 1e9, 0.97724986791684337645},    {0.5, 0.05, 0.53672496695745992225}};
  for (const auto& [t, dof, right] : cdf) EXPECT_NEAR(student_t_cdf(t, dof), right, 1e-15) << t << ", dof " << dof;
  const double tail[][3] = {
      {50, 10, 2.4743103293026799747e-13},   {200, 4.5, 4.6386832564206783829e-10},
      {12, 60, 1.3786322641817738458e-17},   {30, 1000, 1.5374687444043482211e-141},
      {1e6, 0.5, 0.00064140195082839769553}, {26.047734328868216, 408284055.89189386, 1.4276633737298186864e-149}};
  for (const auto& [t, dof, right] : tail)
    EXPECT_TRUE(is_near(student_t_tail(t, dof), right, 1e-12)) << t << ", dof " << dof;
}

TEST(Bench, GivenChecksRefuseBadInput) {
  const Samples none, pair{1, 2}, with_nan{1, kNaN, 2}, with_inf{3, kInf};
  const std::vector<Goal> goals(2, Goal::kMinimize);
  for (const Samples& bad : {none, with_nan, with_inf}) {
    EXPECT_THROW(percentile(bad, 50), std::invalid_argument);
    EXPECT_THROW(summarize(bad), std::invalid_argument);
    EXPECT_THROW(welch(bad, pair), std::invalid_argument);
    EXPECT_THROW(welch(pair, bad), std::invalid_argument);
    EXPECT_THROW(paired(bad, bad), std::invalid_argument);
  }
  for (const double p : {-0.1, 100.1, kNaN}) EXPECT_THROW(percentile(pair, p), std::invalid_argument);
  for (const double dof : {0.0, -1.0, -kInf, kNaN}) {
    EXPECT_THROW(t_critical_95(dof), std::invalid_argument);
    EXPECT_THROW(student_t_cdf(1, dof), std::invalid_argument);
  }
  EXPECT_THROW(welch(Samples{1}, pair), std::invalid_argument);
  EXPECT_THROW(paired(pair, Samples{1, 2, 3}), std::invalid_argument);
  for (const double threshold : {-1.0, kNaN}) EXPECT_THROW(verdict({}, threshold), std::invalid_argument);
  EXPECT_THROW(pareto_frontier({}, {}), std::invalid_argument);
  EXPECT_THROW(pareto_frontier({{1, 2}, {1, 2, 3}}, goals), std::invalid_argument);
  EXPECT_THROW(pareto_frontier({{1, 2}, {}}, goals), std::invalid_argument);
}

TEST(TimeFn, GivenBadArgumentsCallNothing) {
  Script script{{1, 2}};
  EXPECT_THROW(script.time(-1, 1), std::invalid_argument);
  EXPECT_THROW(script.time(0, 0), std::invalid_argument);
  EXPECT_THROW(script.time(3, -2), std::invalid_argument);
  EXPECT_EQ(script.log, "");
  EXPECT_THROW(time_fn(nullptr, 0, 1), std::invalid_argument);
  EXPECT_THROW(time_fn([&] { script.log += 'F'; }, 0, 1, nullptr), std::invalid_argument);
  EXPECT_THROW(time_fn([&] { script.log += 'F'; }, 0, 1, [] {}, nullptr), std::invalid_argument);
  EXPECT_EQ(script.log, "");
}

TEST(Percentile, InterpolatesBetweenOrderStatistics) {
  Samples twenty(20);
  std::iota(twenty.begin(), twenty.end(), 1);
  std::shuffle(twenty.begin(), twenty.end(), rng());
  const Samples before = twenty;
  // Other rules give 19.95 (type 6) or 19 (nearest rank) for p95.
  const double right[][2] = {{0, 1}, {25, 5.75}, {50, 10.5}, {95, 19.05}, {99, 19.81}, {100, 20}};
  for (const auto& [p, value] : right) EXPECT_TRUE(is_near(percentile(twenty, p), value, 1e-12)) << "p" << p;
  EXPECT_EQ(twenty, before) << "the caller's samples were reordered";
}

TEST(Percentile, HandlesFewSamples) {
  for (const double p : {0.0, 50.0, 95.0, 100.0}) EXPECT_EQ(percentile(Samples{7}, p), 7);
  EXPECT_TRUE(is_near(percentile(Samples{12, 10}, 95), 11.9, 1e-12));
  EXPECT_EQ(percentile(Samples{-3, -1, -2}, 50), -2);
}

TEST(TCritical95, MatchesWholeDegreesOfFreedom) {
  const double right[] = {12.706204736175, 4.302652729749, 3.182446305284, 2.776445105198, 2.570581835636,
                          2.446911851145,  2.364624251593, 2.306004135204, 2.262157162798, 2.228138851986,
                          2.200985160092,  2.178812829667, 2.160368656463, 2.144786687918, 2.131449545560,
                          2.119905299221,  2.109815577833, 2.100922040241, 2.093024054408, 2.085963447266,
                          2.079613844728,  2.073873067904, 2.068657610419, 2.063898561628, 2.059538552753,
                          2.055529438643,  2.051830516480, 2.048407141795, 2.045229642133, 2.042272456301};
  for (int dof = 1; dof <= 30; ++dof) EXPECT_TRUE(is_near(t_critical_95(dof), right[dof - 1])) << "dof " << dof;
  EXPECT_TRUE(is_near(t_critical_95(40), 2.021075390306));
  EXPECT_TRUE(is_near(t_critical_95(49), 2.009575237129)) << "a table in steps says 2.021";
  EXPECT_TRUE(is_near(t_critical_95(60), 2.000297822014));
  EXPECT_TRUE(is_near(t_critical_95(120), 1.979930405082));
  EXPECT_TRUE(is_near(t_critical_95(200), 1.971896223634)) << "the normal distribution says 1.960";
  EXPECT_TRUE(is_near(t_critical_95(1e5), 1.959987707535));
}

TEST(TCritical95, TakesAnyPositiveDegreesOfFreedom) {
  EXPECT_TRUE(is_near(t_critical_95(0.1), 1.6823622887e12, 1e-9));
  EXPECT_TRUE(is_near(t_critical_95(0.5), 164.557673480));
  EXPECT_TRUE(is_near(t_critical_95(4.5), 2.658912347204));
  EXPECT_TRUE(is_near(t_critical_95(7.35), 2.341988307752));
  EXPECT_TRUE(is_near(t_critical_95(kInf), 1.959963984540));
  EXPECT_EQ(t_critical_95(0.001), kInf);
}

TEST(TCritical95, FallsWithTheDegreesOfFreedom) {
  for (int dof = 1; dof < 1000; ++dof) ASSERT_GT(t_critical_95(dof), t_critical_95(dof + 1)) << "dof " << dof;
  EXPECT_GT(t_critical_95(1000), t_critical_95(kInf));
}

TEST(Summarize, GivesMeanDeviationPercentilesAndInterval) {
  const Samples samples{3, 1, 5, 2, 4};
  const BenchResult r = summarize(samples);
  EXPECT_EQ(r.samples, samples) << "samples stay in the order they were taken";
  EXPECT_TRUE(is_near(r.mean, 3));
  EXPECT_TRUE(is_near(r.stddev, std::sqrt(2.5))) << "divided by n - 1";
  EXPECT_TRUE(is_near(r.p50, 3));
  EXPECT_TRUE(is_near(r.p95, 4.8));
  // 1.3859 takes 1.96 for t, 1.8177 takes n degrees of freedom, 1.7560 divides by n, 4.3899 leaves out sqrt(n).
  EXPECT_TRUE(is_near(r.half_width, 1.963243161478));
  EXPECT_EQ(r.zeros, 0);
  const BenchResult outlier = summarize(Samples{1, 1.1, 0.9, 1.05, 0.95, 1, 1.2, 1, 0.98, 5});
  EXPECT_TRUE(is_near(outlier.mean, 1.418)) << "an outlier is kept";
  EXPECT_TRUE(is_near(outlier.p50, 1.0));
  EXPECT_TRUE(is_near(outlier.p95, 3.29));
  EXPECT_TRUE(is_near(outlier.half_width, 0.902287882644));
}

TEST(Summarize, OneOrTwoSamplesClaimNoCertainty) {
  const BenchResult one = summarize(Samples{7}), two = summarize(Samples{10, 12});
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(one.p50, 7);
  EXPECT_EQ(one.p95, 7);
  EXPECT_TRUE(std::isnan(one.stddev)) << one.stddev;
  EXPECT_EQ(one.half_width, kInf);
  EXPECT_TRUE(is_near(two.stddev, std::sqrt(2.0)));
  EXPECT_TRUE(is_near(two.p95, 11.9));
  EXPECT_TRUE(is_near(two.half_width, 12.706204736175));
}

TEST(Summarize, EqualSamplesHaveNoDeviation) {
  const BenchResult r = summarize(Samples(5, 7.0));
  EXPECT_EQ(r.stddev, 0);
  EXPECT_EQ(r.half_width, 0);
  EXPECT_LT(summarize(Samples(10, 0.1)).stddev, 1e-16) << "sum x^2 - n m^2 gives 2.4e-9";
}

TEST(Summarize, DeviationDoesNotCancel) {
  for (const double offset : {0.0, 1e8, 1e9, 1e10}) {
    SCOPED_TRACE(offset);
    const BenchResult r = summarize(Samples{offset + 4, offset + 7, offset + 13, offset + 16});
    EXPECT_TRUE(is_near(r.stddev, std::sqrt(30.0), 1e-12));
    EXPECT_TRUE(is_near(r.mean, offset + 10, 1e-15));
  }
  EXPECT_TRUE(is_near(summarize(Samples{10000001, 10000003, 10000002}).stddev, 1, 1e-12));
  Samples alternating{10000000.2};
  for (int i = 0; i < 500; ++i) alternating.insert(alternating.end(), {10000000.1, 10000000.3});
  EXPECT_TRUE(is_near(summarize(alternating).stddev, 0.1, 1e-8)) << "5.6e-10 of it is the rounding of the inputs";
}

TEST(Summarize, IntervalHoldsTheMeanInNinetyFiveOfAHundredRuns) {
  // 4000 sets of 5: the share is 0.95 +- 0.0034. With 1.96 for t it is 0.878.
  int held = 0;
  for (int run = 0; run < 4000; ++run) {
    const std::vector<float> five = normal(5);
    const BenchResult r = summarize(Samples(five.begin(), five.end()));
    held += std::abs(r.mean) <= r.half_width;
  }
  EXPECT_NEAR(held / 4000.0, 0.95, 0.015);
}

TEST(TimeFn, CallsInTheDocumentedOrder) {
  Script script{{100, 130, 200, 240, 300, 350, 400, 445, 500, 535}};
  const BenchResult r = script.time(2, 5);
  EXPECT_EQ(script.log, "FFSNFSNNFSNNFSNNFSNNFSN");
  EXPECT_EQ(r.samples, (Samples{30, 40, 50, 45, 35}));
  EXPECT_TRUE(is_near(r.mean, 40));
  EXPECT_TRUE(is_near(r.half_width, 9.816215807388));
  Script cold{{5, 6}};
  EXPECT_EQ(cold.time(0, 1).samples, Samples{1});
  EXPECT_EQ(cold.log, "SNFSN") << "without warm-up, earlier work must still be drained";
}

TEST(TimeFn, CountsWhatTheDeviceDoesAndNothingElse) {
  // fn takes 1 ns and leaves 40 ns of work behind, which sync waits for; the first call takes 1e9 ns more.
  std::int64_t time = 0, queued = 0, calls = 0;
  const auto fn = [&] { time += ++calls == 1 ? 1'000'000'001 : 1, queued += 40; };
  const auto sync = [&] { time += std::exchange(queued, 0); };
  EXPECT_EQ(time_fn(fn, 3, 4, sync, [&] { return time; }).samples, Samples(4, 41.0));
  EXPECT_GE(time_fn([] {}, 1, 3).mean, 0) << "the default clock";
}

TEST(TimeFn, SubtractsWholeNanoseconds) {
  // As doubles the first two lie 256 ns apart; 5 s do not fit 32 bits.
  Script script{{1700000000000000123, 1700000000000000223, 1700000000000000300, 1700000005000000300}};
  EXPECT_EQ(script.time(0, 2).samples, (Samples{100, 5e9}));
}

TEST(TimeFn, RefusesAClockThatRunsBackwards) {
  Script script{{10, 20, 100, 90, 100, 110}};
  try {
    script.time(0, 3);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("sample 1"), std::string::npos) << error.what();
  }
}

TEST(TimeFn, KeepsAndCountsSamplesOfZero) {
  Script script{{100, 100, 200, 206, 300, 300}};
  const BenchResult r = script.time(1, 3);
  EXPECT_EQ(r.samples, (Samples{0, 6, 0}));
  EXPECT_EQ(r.zeros, 2);
  EXPECT_TRUE(is_near(r.mean, 2));
}

TEST(TimeFn, LetsExceptionsThrough) {
  int calls = 0;
  const auto fails = [&] {
    if (++calls == 3) throw std::range_error("out of memory");
  };
  EXPECT_THROW(time_fn(fails, 1, 5), std::range_error);
  EXPECT_EQ(calls, 3);
}

using Points = std::vector<std::vector<double>>;
using Indices = std::vector<std::size_t>;
constexpr Goal kMin = Goal::kMinimize, kMax = Goal::kMaximize;

Indices frontier(const Points& points, const std::vector<Goal>& goals) {
  return pareto_frontier(points, goals).indices;
}

TEST(ParetoFrontier, KeepsWhatNothingDominates) {
  const Points points{{1, 10}, {2, 5}, {3, 5}, {2, 5}, {4, 1}, {5, 1}, {1, 11}};
  EXPECT_EQ(frontier(points, {kMin, kMin}), (Indices{0, 1, 3, 4})) << "equal points both stay";
  EXPECT_EQ(frontier(points, {kMin, kMax}), (Indices{6}));
  EXPECT_EQ(frontier(points, {kMax, kMax}), (Indices{2, 5, 6}));
  EXPECT_EQ(frontier(points, {kMax, kMin}), (Indices{5}));
  EXPECT_EQ(frontier({{4, 2}, {4, 2}, {4, 2}}, {kMin, kMax}), (Indices{0, 1, 2}));
  EXPECT_EQ(frontier({}, {kMin, kMax}), Indices{});
}

TEST(ParetoFrontier, TakesAnyNumberOfAxes) {
  const Points points{{1, 2, 3}, {2, 1, 3}, {2, 2, 2}, {2, 2, 3}, {1, 2, 3}, {3, 3, 1}};
  EXPECT_EQ(frontier(points, {kMin, kMin, kMin}), (Indices{0, 1, 2, 4, 5}));
  EXPECT_EQ(frontier({{3}, {1}, {2}, {1}}, {kMin}), (Indices{1, 3}));
  EXPECT_EQ(frontier({{3}, {1}, {3}, {2}}, {kMax}), (Indices{0, 2}));
  EXPECT_EQ(frontier({{0, 0, 0, 0, 1}, {0, 0, 0, 0, 2}}, std::vector<Goal>(5, kMin)), (Indices{0}));
}

TEST(ParetoFrontier, SetsNaNPointsApart) {
  const Frontier f = pareto_frontier({{1, 10}, {kNaN, 0.5}, {2, 5}, {3, 6}, {0, kNaN}}, std::vector<Goal>{kMin, kMin});
  EXPECT_EQ(f.indices, (Indices{0, 2}));
  EXPECT_EQ(f.excluded, (Indices{1, 4}));
}

TEST(ParetoFrontier, OrdersInfinitiesAndZeros) {
  EXPECT_EQ(frontier({{kInf, 1}, {-kInf, 2}, {0, kInf}, {kInf, kInf}, {kInf, 1}}, {kMin, kMin}), (Indices{0, 1, 4}));
  EXPECT_EQ(frontier({{kInf, 1}, {-kInf, 2}, {0, kInf}}, {kMax, kMin}), (Indices{0}));
  EXPECT_EQ(frontier({{-0.0, 1}, {0.0, 1}, {0.0, 2}, {-0.0, 2}}, {kMin, kMin}), (Indices{0, 1}));
}

TEST(ParetoFrontier, EveryPointLeftOutIsDominatedByOneKept) {
  const std::vector<Goal> goals{kMin, kMax, kMin};
  const auto dominates = [](const std::vector<double>& a, const std::vector<double>& b) {
    return a[0] <= b[0] && a[1] >= b[1] && a[2] <= b[2] && (a[0] < b[0] || a[1] > b[1] || a[2] < b[2]);
  };
  for (int run = 0; run < 100; ++run) {
    Points points(40, std::vector<double>(3));  // on a grid of 5 a side, so that there are ties and copies
    for (auto& point : points)
      for (double& x : point) x = static_cast<double>(rng()() % 5);
    const Indices kept = frontier(points, goals);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool dominated =
          std::any_of(kept.begin(), kept.end(), [&](std::size_t j) { return dominates(points[j], points[i]); });
      ASSERT_EQ(dominated, !std::binary_search(kept.begin(), kept.end(), i)) << "point " << i;
    }
    Points again, reversed(points.rbegin(), points.rend());
    for (const std::size_t i : kept) again.push_back(points[i]);
    ASSERT_EQ(frontier(again, goals).size(), kept.size()) << "the frontier of the frontier is itself";
    Indices back = frontier(reversed, goals);
    for (std::size_t& i : back) i = points.size() - 1 - i;
    std::reverse(back.begin(), back.end());
    ASSERT_EQ(back, kept) << "the order of the points does not matter";
  }
}

const Samples kA{10.0, 10.2, 9.9, 10.1, 10.3}, kB{10.6, 10.4, 10.9, 10.5};

TEST(Welch, ComparesTwoIndependentSets) {
  const Comparison c = welch(kA, kB);
  EXPECT_TRUE(is_near(c.difference, -0.5));
  EXPECT_TRUE(is_near(c.t, -std::sqrt(15.0))) << "pooled variances give -4.0254";
  EXPECT_TRUE(is_near(c.dof, 5.381165919283)) << "pooled variances give 7";
  EXPECT_TRUE(is_near(c.p_value, 0.010173326206));
  EXPECT_TRUE(is_near(c.half_width, 0.324913481511));
  EXPECT_TRUE(is_near(welch(kB, kA).t, std::sqrt(15.0)));
}

TEST(Welch, DoesNotPoolUnequalVariances) {
  Samples steady;
  for (int i = 0; i < 40; ++i) steady.push_back(90 + 0.1 * ((7 * i) % 10));
  const Comparison c = welch(Samples{100, 140, 60, 120, 80}, steady);
  EXPECT_TRUE(is_near(c.p_value, 0.5365190265005)) << "pooled variances give 0.0429";
  EXPECT_TRUE(is_near(c.dof, 4.000084615786));
}

TEST(Welch, ConstantSamplesGiveNoNaN) {
  const Comparison same = welch(Samples(3, 5.0), Samples(4, 5.0)), other = welch(Samples(3, 5.0), Samples(4, 7.0));
  EXPECT_EQ(same.t, 0);
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(other.t, -kInf);
  EXPECT_EQ(other.p_value, 0);
  for (const Comparison& c : {same, other}) {
    EXPECT_EQ(c.dof, 5);
    EXPECT_EQ(c.half_width, 0);
  }
  EXPECT_TRUE(is_near(welch(kA, Samples(3, 5.0)).dof, 4)) << "only one side is constant";
}

TEST(Welch, DoesNotDependOnTheUnit) {
  for (const double unit : {1e-100, 1e100}) {
    SCOPED_TRACE(unit);
    Samples a = kA, b = kB;
    for (double& x : a) x *= unit;
    for (double& x : b) x *= unit;
    const Comparison c = welch(a, b);
    EXPECT_TRUE(is_near(c.t, -std::sqrt(15.0)));
    EXPECT_TRUE(is_near(c.dof, 5.381165919283));
    EXPECT_TRUE(is_near(c.half_width, 0.324913481511 * unit));
  }
}

TEST(Paired, SeesThroughDrift) {
  const double noise[] = {0.01, -0.01, 0.02, -0.02, 0.03, -0.03, 0, 0};
  Samples a, b;
  for (int i = 0; i < 8; ++i) {
    a.push_back(10 + 0.5 * i);
    b.push_back(a.back() - 0.2 + noise[i]);
  }
  const Comparison c = paired(a, b);
  EXPECT_TRUE(is_near(c.difference, 0.2));
  EXPECT_TRUE(is_near(c.t, std::sqrt(800.0)));
  EXPECT_EQ(c.dof, 7);
  EXPECT_TRUE(is_near(c.p_value, 1.774958374867e-8, 1e-8));
  EXPECT_TRUE(is_near(c.half_width, 2.364624251593 * 0.02 / std::sqrt(8.0)));
  EXPECT_TRUE(is_near(welch(a, b).p_value, 0.7484729274788)) << "unpaired, the drift hides the difference";
}

TEST(Paired, SmallPValuesKeepTheirDigits) {
  Samples a, b;  // differences 99 and 101 in turn: t = 100 sqrt(19)
  for (int i = 0; i < 20; ++i) {
    a.push_back(i);
    b.push_back(i + (i % 2 == 0 ? 99 : 101));
  }
  const Comparison c = paired(a, b);
  EXPECT_TRUE(is_near(c.t, -100 * std::sqrt(19.0)));
  EXPECT_TRUE(is_near(c.p_value, 1.804922570960702842703e-39, 1e-8)) << "2 (1 - cdf) gives 0";
}

TEST(Paired, ConstantDifferencesGiveNoNaN) {
  const Comparison same = paired(kA, kA), shifted = paired(Samples{1, 2, 3}, Samples{2, 3, 4});
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.t, 0);
  EXPECT_EQ(shifted.p_value, 0);
  EXPECT_EQ(shifted.difference, -1);
  EXPECT_EQ(shifted.half_width, 0);
}

TEST(Verdict, NeedsTheWholeInterval) {
  const auto says = [](double difference, double half_width, double threshold) {
    Comparison c;
    c.difference = difference;
    c.half_width = half_width;
    return verdict(c, threshold);
  };
  EXPECT_EQ(says(-3, 1, 1), Verdict::kFaster);
  EXPECT_EQ(says(3, 1, 1), Verdict::kSlower);
  EXPECT_EQ(says(0.25, 0.5, 1), Verdict::kSame);
  EXPECT_EQ(says(-0.25, 0.5, 1), Verdict::kSame);
  for (const double sign : {-1.0, 1.0}) {
    EXPECT_EQ(says(sign * 1.5, 1, 1), Verdict::kCannotTell) << "different from 0, perhaps not by what matters";
    EXPECT_EQ(says(sign * 0.25, 1, 1), Verdict::kCannotTell);
    EXPECT_EQ(says(sign * 2, 1, 1), Verdict::kCannotTell) << "an interval that ends at the threshold";
    EXPECT_EQ(says(sign * 0.5, 0.5, 1), Verdict::kSame) << "an interval that ends at the threshold";
    EXPECT_EQ(says(sign * 9, kInf, 1), Verdict::kCannotTell);
    EXPECT_EQ(says(sign * 9, kNaN, 1), Verdict::kCannotTell);
  }
  EXPECT_EQ(says(-0.5, 0.25, 0), Verdict::kFaster);
  EXPECT_EQ(says(0, 0, 0), Verdict::kSame);
  EXPECT_EQ(says(0, 5, 1), Verdict::kCannotTell) << "no difference was shown, and none excluded";
}

TEST(Bench, WorkedExampleOfTheNote) {
  const BenchResult r = summarize(Samples{30, 40, 50, 45, 35});
  EXPECT_TRUE(is_near(r.mean, 40));
  EXPECT_NEAR(r.stddev, 7.906, 5e-4);
  EXPECT_EQ(r.p50, 40);
  EXPECT_TRUE(is_near(r.p95, 49));
  EXPECT_NEAR(t_critical_95(4), 2.776, 5e-4);
  EXPECT_NEAR(r.half_width, 9.816, 5e-4);
  EXPECT_NEAR(1.96 * r.stddev / std::sqrt(5.0), 6.930, 5e-4);
  EXPECT_EQ(frontier({{1, 100}, {2, 180}, {3, 180}, {0.5, 40}, {2, 170}}, {kMin, kMax}), (Indices{0, 1, 3}));
  // The table: n, t, t / 1.96, and how often an interval with 1.96 for t holds the mean.
  const double table[][4] = {{2, 12.706, 6.483, 0.700},
                             {5, 2.776, 1.417, 0.878},
                             {10, 2.262, 1.154, 0.918},
                             {30, 2.045, 1.043, 0.940},
                             {201, 1.972, 1.006, 0.949}};
  for (const auto& [n, t, ratio, held] : table) {
    EXPECT_NEAR(t_critical_95(n - 1), t, 5e-4);
    EXPECT_NEAR(t_critical_95(n - 1) / 1.96, ratio, 5e-4);
    EXPECT_NEAR(1 - student_t_tail(1.96, n - 1), held, 5e-4);
  }
}

}  // namespace
}  // namespace nanolm
