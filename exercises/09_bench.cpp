// Timing with intervals: samples, their summary, Student's t, the Pareto frontier (notes/09_bench.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "nanolm/bench.h"
#include "nanolm/todo.h"

namespace nanolm {

double percentile(std::span<const double> samples, double p) {
  check_percentile(samples, p);
  // TODO: sort a copy and interpolate between the two samples around (n - 1) p / 100. About 6 lines.
  todo();
  // end
}

double t_critical_95(double dof) {
  check_dof(dof);
  // TODO: find the t whose two-sided tail is 0.05: double until it is bracketed, then halve. About 9 lines.
  todo();
  // end
}

BenchResult summarize(std::span<const double> samples) {
  check_samples(samples);
  // TODO: fill all seven fields; mind n = 1 and samples that differ in their last digits only. About 17 lines.
  todo();
  // end
}

BenchResult time_fn(const std::function<void()>& fn, std::int64_t warmup, std::int64_t repetitions,
                    const std::function<void()>& sync, const Clock& now) {
  check_time_fn(fn, warmup, repetitions, sync, now);
  // TODO: warm up, sync, then time each repetition; pass each pair of readings to check_clock. About 12 lines.
  todo();
  // end
}

namespace {
bool dominates(const std::vector<double>& a, const std::vector<double>& b, std::span<const Goal> goals) {
  // TODO: say whether a is no worse on every axis and better on one. About 7 lines.
  todo();
  // end
}
}  // namespace

Frontier pareto_frontier(const std::vector<std::vector<double>>& points, std::span<const Goal> goals) {
  check_points(points, goals);
  // TODO: set the points with a NaN apart, keep those that no other dominates. About 10 lines.
  todo();
  // end
}

// Beyond the week's hours: is a faster than b?

namespace {
Comparison compare(double difference, double standard_error, double dof) {
  // TODO: fill the fields; equal means give t = 0, also without any spread. About 7 lines.
  todo();
  // end
}
}  // namespace

Comparison welch(std::span<const double> a, std::span<const double> b) {
  check_welch(a, b);
  // TODO: add the squared standard errors, and take the dof from the share of each. About 7 lines.
  todo();
  // end
}

Comparison paired(std::span<const double> a, std::span<const double> b) {
  check_pairs(a, b);
  // TODO: summarize the differences of the pairs. About 5 lines.
  todo();
  // end
}

Verdict verdict(const Comparison& comparison, double threshold) {
  check_threshold(threshold);
  // TODO: compare both ends of the interval with both thresholds. About 6 lines.
  todo();
  // end
}

}  // namespace nanolm
