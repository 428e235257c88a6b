// Lesson 09: timing with intervals, and what to say about the samples.
//
// Source: nanolm's bench.py; Student 1908, "The probable error of a mean"; Welch 1947; Hyndman & Fan 1996 (type 7).
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nanolm/require.h"
#include "nanolm/student_t.h"

namespace nanolm {

// Nanoseconds since any fixed moment. Whole numbers: today's date in ns needs 61 bits, a double has 53.
using Clock = std::function<std::int64_t()>;
inline std::int64_t steady_clock_ns() {
  static_assert(std::chrono::steady_clock::is_steady);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// All in the samples' unit, which for time_fn is nanoseconds.
struct BenchResult {
  std::vector<double> samples;  // in the order they were taken
  double mean = 0;
  double stddev = 0;  // of the sample: divided by n - 1; NaN for one sample
  double p50 = 0;     // percentiles interpolate linearly between order statistics (type 7)
  double p95 = 0;
  double half_width = 0;   // of the 95 % interval of the mean: t(n - 1) * stddev / sqrt(n); +inf for one sample
  std::int64_t zeros = 0;  // samples of 0: shorter than the clock can tell
};

// p in [0, 100]. Sorts a copy. Throws std::invalid_argument: no samples, one that is NaN or infinite, p outside.
double percentile(std::span<const double> samples, double p);

// t with P(-t < T < t) = 0.95 for Student's T, by inverting student_t_cdf. dof = +inf gives 1.959964.
// Error bound: relative 1e-9. Throws std::invalid_argument: dof that is NaN or not positive.
double t_critical_95(double dof);

// Throws std::invalid_argument: no samples, one that is NaN or infinite.
BenchResult summarize(std::span<const double> samples);

// Calls, in this order: fn `warmup` times; sync once; then for each of `repetitions` samples: now, fn, sync, now.
// So the device is idle whenever the clock starts, and warm-up reaches no statistic. An exception passes through.
// Throws std::invalid_argument: warmup < 0 or repetitions < 1, before any call; a clock that ran backwards, naming the
// sample. A sample of 0 is kept.
BenchResult time_fn(
    const std::function<void()>& fn, std::int64_t warmup, std::int64_t repetitions,
    const std::function<void()>& sync = [] {}, const Clock& now = steady_clock_ns);

enum class Goal { kMinimize, kMaximize };
struct Frontier {
  std::vector<std::size_t> indices;   // points that no other dominates, in input order
  std::vector<std::size_t> excluded;  // points with a NaN coordinate
};
// a dominates b when it is no worse on every axis and better on one; equal points dominate neither, so both stay.
// Throws std::invalid_argument: no axes, a point with another number of coordinates than goals.
Frontier pareto_frontier(const std::vector<std::vector<double>>& points, std::span<const Goal> goals);

// Beyond the week's hours -----------------------------------------------------------------------------------------

struct Comparison {
  double difference = 0;  // mean of a - mean of b; of the pairs for paired()
  double t = 0;
  double dof = 0;         // Welch-Satterthwaite, not rounded
  double p_value = 0;     // two-sided
  double half_width = 0;  // of the 95 % interval of the difference
};
// Two independent sets, variances not assumed equal. Both constant: p = 1 when the means are equal, else 0, and
// dof = n_a + n_b - 2. Throws std::invalid_argument: fewer than two samples a side, one that is NaN or infinite.
Comparison welch(std::span<const double> a, std::span<const double> b);
// Samples taken in pairs, so that drift cancels. Throws as welch does, and when the lengths differ.
Comparison paired(std::span<const double> a, std::span<const double> b);

enum class Verdict { kFaster, kSlower, kSame, kCannotTell };
// What a comparison of times says of a against b, with `threshold` the smallest difference that matters, >= 0:
// kFaster when the whole interval of the difference lies below -threshold, kSlower when above +threshold, kSame when
// within [-threshold, threshold], else kCannotTell. Throws std::invalid_argument for a negative or NaN threshold.
Verdict verdict(const Comparison& comparison, double threshold);

// Given: the checks that the functions above begin with.
inline void check_samples(std::span<const double> samples, std::size_t at_least = 1) {
  require(samples.size() >= at_least, "at least ", at_least, " samples are needed, got ", samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) require(std::isfinite(samples[i]), "sample ", i, " is ", samples[i]);
}
inline void check_percentile(std::span<const double> samples, double p) {
  check_samples(samples);
  require(p >= 0 && p <= 100, "a percentile lies between 0 and 100, got ", p);
}
inline void check_dof(double dof) { require(dof > 0, "degrees of freedom must be positive, got ", dof); }
inline void check_time_fn(std::int64_t warmup, std::int64_t repetitions) {
  require(warmup >= 0, "warmup must not be negative, got ", warmup);
  require(repetitions >= 1, "repetitions must be positive, got ", repetitions);
}
inline void check_points(const std::vector<std::vector<double>>& points, std::span<const Goal> goals) {
  require(!goals.empty(), "at least one axis is needed");
  for (std::size_t i = 0; i < points.size(); ++i)
    require(points[i].size() == goals.size(), "point ", i, " has ", points[i].size(), " coordinates, there are ",
            goals.size(), " axes");
}
inline void check_pairs(std::span<const double> a, std::span<const double> b) {
  check_samples(a, 2);
  check_samples(b, 2);
  require(a.size() == b.size(), "pairs need equal lengths, got ", a.size(), " and ", b.size());
}
inline void check_threshold(double threshold) {
  require(threshold >= 0, "threshold must not be negative, got ", threshold);
}

}  // namespace nanolm
