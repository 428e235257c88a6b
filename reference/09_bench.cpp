// Timing with intervals: samples, their summary, Student's t, the Pareto frontier (notes/09_bench.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "nanolm/bench.h"
#include "nanolm/todo.h"

namespace nanolm {

double percentile(std::span<const double> samples, double p) {
  check_percentile(samples, p);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = static_cast<double>(sorted.size() - 1) * p / 100;
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 == sorted.size()) return sorted.back();
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

double t_critical_95(double dof) {
  check_dof(dof);
  double low = 0, high = 1;
  while (student_t_tail(high, dof) > 0.05) {
    low = high;
    high *= 2;
  }
  // high <= 2 low, or low = 0: some 55 halvings until no double lies between them.
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = low + (high - low) / 2)
    (student_t_tail(middle, dof) > 0.05 ? low : high) = middle;
  return high;
}

BenchResult summarize(std::span<const double> samples) {
  check_samples(samples);
  BenchResult result;
  result.samples.assign(samples.begin(), samples.end());
  // Welford: the running mean is subtracted before squaring, so that nothing large cancels.
  double n = 0, squares = 0;
  for (const double x : samples) {
    const double off = x - result.mean;
    n += 1;
    result.mean += off / n;
    squares += off * (x - result.mean);
    if (x == 0) ++result.zeros;
  }
  result.stddev = n > 1 ? std::sqrt(squares / (n - 1)) : std::numeric_limits<double>::quiet_NaN();
  result.p50 = percentile(samples, 50);
  result.p95 = percentile(samples, 95);
  result.half_width =
      n > 1 ? t_critical_95(n - 1) * result.stddev / std::sqrt(n) : std::numeric_limits<double>::infinity();
  return result;
}

BenchResult time_fn(const std::function<void()>& fn, std::int64_t warmup, std::int64_t repetitions,
                    const std::function<void()>& sync, const Clock& now) {
  check_time_fn(fn, warmup, repetitions, sync, now);
  for (std::int64_t i = 0; i < warmup; ++i) fn();
  sync();
  std::vector<double> samples;
  for (std::int64_t i = 0; i < repetitions; ++i) {
    const std::int64_t start = now();
    fn();
    sync();
    const std::int64_t stop = now();
    check_clock(i, start, stop);
    samples.push_back(static_cast<double>(stop - start));
  }
  return summarize(samples);
}

namespace {
bool dominates(const std::vector<double>& a, const std::vector<double>& b, std::span<const Goal> goals) {
  bool better = false;
  for (std::size_t axis = 0; axis < goals.size(); ++axis) {
    const bool low = goals[axis] == Goal::kMinimize;
    if (low ? a[axis] > b[axis] : a[axis] < b[axis]) return false;
    if (a[axis] != b[axis]) better = true;
  }
  return better;
}
}  // namespace

Frontier pareto_frontier(const std::vector<std::vector<double>>& points, std::span<const Goal> goals) {
  check_points(points, goals);
  Frontier frontier;
  std::vector<std::size_t> valid;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool has_nan = std::any_of(points[i].begin(), points[i].end(), [](double x) { return std::isnan(x); });
    (has_nan ? frontier.excluded : valid).push_back(i);
  }
  for (const std::size_t i : valid)
    if (std::none_of(valid.begin(), valid.end(), [&](std::size_t j) { return dominates(points[j], points[i], goals); }))
      frontier.indices.push_back(i);
  return frontier;
}

// Beyond the week's hours: is a faster than b?

namespace {
Comparison compare(double difference, double standard_error, double dof) {
  Comparison c;
  c.difference = difference;
  c.t = difference == 0 ? 0 : difference / standard_error;  // 0 / 0 where all samples are equal
  c.dof = dof;
  c.p_value = student_t_tail(c.t, dof);
  c.half_width = t_critical_95(dof) * standard_error;
  return c;
}
}  // namespace

Comparison welch(std::span<const double> a, std::span<const double> b) {
  check_welch(a, b);
  const BenchResult ra = summarize(a), rb = summarize(b);
  const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double ea = ra.stddev / std::sqrt(na), eb = rb.stddev / std::sqrt(nb), error = std::hypot(ea, eb);
  if (error == 0) return compare(ra.mean - rb.mean, 0, na + nb - 2);
  // Shares of the variance instead of fourth powers of the errors, which leave the range of double.
  const double wa = (ea / error) * (ea / error), wb = (eb / error) * (eb / error);
  return compare(ra.mean - rb.mean, error, 1 / (wa * wa / (na - 1) + wb * wb / (nb - 1)));
}

Comparison paired(std::span<const double> a, std::span<const double> b) {
  check_pairs(a, b);
  std::vector<double> differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  const BenchResult r = summarize(differences);
  const double n = static_cast<double>(a.size());
  return compare(r.mean, r.stddev / std::sqrt(n), n - 1);
}

Verdict verdict(const Comparison& comparison, double threshold) {
  check_threshold(threshold);
  const double low = comparison.difference - comparison.half_width;
  const double high = comparison.difference + comparison.half_width;
  if (high < -threshold) return Verdict::kFaster;
  if (low > threshold) return Verdict::kSlower;
  if (-threshold <= low && high <= threshold) return Verdict::kSame;
  return Verdict::kCannotTell;
}

}  // namespace nanolm
