// How the benchmark reports: a line a case on stderr, and Google Benchmark's JSON with one more section.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "case.h"
#include "host.h"

namespace nanolm {

// What RegisterBenchmark returns; its own name is internal to Google Benchmark and has moved.
using Registered = decltype(benchmark::RegisterBenchmark("", std::declval<void (*)(benchmark::State&)>()));

// Which of lesson 09's functions can be used: registered as statistics of every benchmark, so that its JSON holds them
// beside Google Benchmark's own mean, median and stddev.
struct Statistics {
  std::string needs_percentile, needs_summary;  // empty: works; else why not
  void add_to(Registered benchmark) const;
};
Statistics probe_statistics();

// One line as each case finishes.
class Progress : public benchmark::BenchmarkReporter {
 public:
  explicit Progress(const std::vector<Case>& cases) : cases_(cases) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  const std::vector<Case>& cases_;
  std::size_t done_ = 0;
};

// {"context": ..., "benchmarks": [every sample and statistic], "attention_bench": {what the tables need besides}}
class Json : public benchmark::JSONReporter {
 public:
  Json(const Options& options, const std::vector<Case>& cases, const Host& host, const Statistics& statistics)
      : options_(options), cases_(cases), host_(host), statistics_(statistics) {}
  void Finalize() override;

 private:
  const Options& options_;
  const std::vector<Case>& cases_;
  const Host& host_;
  const Statistics& statistics_;
};

}  // namespace nanolm
