// Given to lesson 09: the checks that its functions begin with. Included by bench.h.
#pragma once

#include "nanolm/bench.h"

namespace nanolm {

inline void check_samples(std::span<const double> samples, std::size_t at_least = 1) {
  require(samples.size() >= at_least, "at least ", at_least, " samples are needed, got ", samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) require(std::isfinite(samples[i]), "sample ", i, " is ", samples[i]);
}
inline void check_percentile(std::span<const double> samples, double p) {
  check_samples(samples);
  require(p >= 0 && p <= 100, "a percentile lies between 0 and 100, got ", p);
}
inline void check_dof(double dof) { require(dof > 0, "degrees of freedom must be positive, got ", dof); }
inline void check_time_fn(const std::function<void()>& fn, std::int64_t warmup, std::int64_t repetitions,
                          const std::function<void()>& sync, const Clock& now) {
  require(warmup >= 0, "warmup must not be negative, got ", warmup);
  require(repetitions >= 1, "repetitions must be positive, got ", repetitions);
  require(fn && sync && now, fn ? sync ? "now" : "sync" : "fn", " is an empty std::function");
}
// For each pair of readings in time_fn.
inline void check_clock(std::int64_t sample, std::int64_t start, std::int64_t stop) {
  require(start <= stop, "sample ", sample, ": the clock ran backwards, from ", start, " to ", stop, " ns");
}
inline void check_points(const std::vector<std::vector<double>>& points, std::span<const Goal> goals) {
  require(!goals.empty(), "at least one goal is needed");
  for (std::size_t i = 0; i < points.size(); ++i)
    require(points[i].size() == goals.size(), "point ", i, " has ", points[i].size(), " coordinates, there are ",
            goals.size(), " goals");
}
inline void check_welch(std::span<const double> a, std::span<const double> b) {
  check_samples(a, 2);
  check_samples(b, 2);
}
inline void check_pairs(std::span<const double> a, std::span<const double> b) {
  check_welch(a, b);
  require(a.size() == b.size(), "pairs need equal lengths, got ", a.size(), " and ", b.size());
}
inline void check_threshold(double threshold) {
  require(threshold >= 0, "threshold must not be negative, got ", threshold);
}

}  // namespace nanolm
