// Lesson 09: timing with intervals, and what to say about the samples.
//
//   mean m = sum x_i / n        stddev s = sqrt(sum (x_i - m)^2 / (n - 1))        half-width = t(n - 1) s / sqrt(n)
//   percentile p of the sorted x_0 .. x_(n-1):  h = (n - 1) p / 100, k = floor(h),  x_k + (h - k) (x_(k+1) - x_k)
//
// Samples carry one unit, whichever it is; time_fn's are nanoseconds. Accumulator: double. Error bound: relative 1e-9,
// and 1e-12 for the deviation of samples that differ in their last digits only (sum x^2 - n m^2 cancels: it is no way).
// Samples are read, never reordered. NaN and infinite ones are refused, each by its index.
// Source: nanolm's bench.py; Student 1908, "The probable error of a mean"; Welch 1947; Hyndman & Fan 1996 (type 7).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nanolm/student_t.h"

namespace nanolm {

// Nanoseconds since any fixed moment. Whole numbers: today's date in ns needs 61 bits, a double has 53.
using Clock = std::function<std::int64_t()>;
inline std::int64_t steady_clock_ns() {
  static_assert(std::chrono::steady_clock::is_steady);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct BenchResult {
  std::vector<double> samples;  // in the order they were taken
  double mean = 0;
  double stddev = 0;  // NaN for one sample
  double p50 = 0;
  double p95 = 0;
  double half_width = 0;   // of the 95 % interval of the mean; +inf for one sample
  std::int64_t zeros = 0;  // samples of 0: shorter than the clock can tell
};

// p in [0, 100]; 100 is the maximum. Throws std::invalid_argument: bad samples, none, p outside.
double percentile(std::span<const double> samples, double p);

// t with P(-t < T < t) = 0.95 for Student's T, by inverting student_t_cdf or student_t_tail. dof need not be whole;
// +inf gives 1.959964; below about 0.004 the result is more than a double holds, hence +inf.
// Throws std::invalid_argument: dof that is NaN or not positive.
double t_critical_95(double dof);

// Throws std::invalid_argument: bad samples, none.
BenchResult summarize(std::span<const double> samples);

// Calls, in this order: fn `warmup` times; sync once; then for each of `repetitions` samples: now, fn, sync, now.
// So the device is idle whenever the clock starts, and warm-up reaches no statistic. An exception passes through.
// Throws std::invalid_argument: warmup < 0, repetitions < 1 or an empty function, before any call; a clock that ran
// backwards, naming the sample. A sample of 0 is kept.
BenchResult time_fn(
    const std::function<void()>& fn, std::int64_t warmup, std::int64_t repetitions,
    const std::function<void()>& sync = [] {}, const Clock& now = steady_clock_ns);

enum class Goal { kMinimize, kMaximize };
struct Frontier {
  std::vector<std::size_t> indices;   // points that no other dominates, in input order
  std::vector<std::size_t> excluded;  // points with a NaN coordinate: they dominate nothing and are not on it
};
// a dominates b when it is no worse on every axis and better on one; equal points dominate neither, so both stay.
// points[i] holds one coordinate for each goal; infinities are allowed. O(n^2) comparisons are fine.
// Throws std::invalid_argument: no goals, a point with another number of coordinates.
Frontier pareto_frontier(const std::vector<std::vector<double>>& points, std::span<const Goal> goals);

// Beyond the week's hours: is a faster than b?

struct Comparison {
  double difference = 0;  // mean of a - mean of b
  double t = 0;           // difference / its standard error; where that is 0, 0 or an infinity
  double dof = 0;         // Welch-Satterthwaite, not rounded; pairs - 1 for paired()
  double p_value = 0;     // two-sided
  double half_width = 0;  // of the 95 % interval of the difference
};
// Two independent sets, variances not assumed equal; n_a + n_b - 2 degrees of freedom when both are constant. The unit
// does not matter: samples near 1e-100 or 1e100 give the t, dof and p that they give near 1.
// Throws std::invalid_argument: bad samples, fewer than two a side.
Comparison welch(std::span<const double> a, std::span<const double> b);
// Samples taken in pairs, so that drift cancels. Throws as welch does, and when the lengths differ.
Comparison paired(std::span<const double> a, std::span<const double> b);

enum class Verdict { kFaster, kSlower, kSame, kCannotTell };
// What a comparison of times says of a against b, with `threshold` >= 0 the smallest difference that matters:
// kFaster when the whole interval of the difference lies below -threshold, kSlower when above +threshold, kSame when
// within [-threshold, threshold], else kCannotTell. Throws std::invalid_argument for a negative or NaN threshold.
Verdict verdict(const Comparison& comparison, double threshold);

}  // namespace nanolm

#include "nanolm/bench_checks.h"  // given: the checks that the functions above begin with
