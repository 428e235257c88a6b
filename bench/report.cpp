#include "report.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "model.h"
#include "nanolm/bench.h"
#include "nanolm/fast_attention.h"
#include "nanolm/naive_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {

// Google Benchmark takes plain function pointers.
double p50(const std::vector<double>& samples) { return percentile(samples, 50); }
double p95(const std::vector<double>& samples) { return percentile(samples, 95); }
double half_width_95(const std::vector<double>& samples) { return summarize(samples).half_width; }

std::string why_not(double (*statistic)(const std::vector<double>&)) {
  try {
    statistic({3, 1, 2});
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// For the line on stderr only: the tables take lesson 09's.
double middle(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  return n == 0 ? 0 : (samples[(n - 1) / 2] + samples[n / 2]) / 2;
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted(text); }

std::string case_json(const Case& c) {
  std::string saving = "null";
  if (c.kernel == "naive" && !std::isnan(c.scratch_formula_bytes()))
    saving = number(c.scratch_formula_bytes() / static_cast<double>(q_size(c.shape) * sizeof(float)));
  return object({{"name", quoted(c.name())},
                 {"kernel", quoted(c.kernel)},
                 {"seqlen", std::to_string(c.shape.seqlen_q)},
                 {"causal", c.shape.causal ? "true" : "false"},
                 {"block", c.kernel == "tiled" ? std::to_string(c.tiling.block_q) : "null"},
                 {"for_frontier", c.for_frontier ? "true" : "false"},
                 {"problem", text_or_null(c.problem)},
                 {"scratch_bytes", number(c.scratch_bytes)},
                 {"scratch_formula_bytes", number(c.scratch_formula_bytes())},
                 {"saving", saving},
                 {"largest_difference", number(c.largest_difference)},
                 {"output_is_finite", c.not_finite ? "false" : "true"}});
}

// Time and peak scratch of everything that was measured at one length without a mask.
std::string frontier_json(const std::vector<Case>& cases) {
  return from_lesson("09_bench", [&] {
    std::int64_t seqlen = 0;
    for (const Case& c : cases)
      if (c.for_frontier) seqlen = c.shape.seqlen_q;
    std::vector<std::vector<double>> coordinates;
    std::vector<std::string> points;
    for (const Case& c : cases) {
      if (c.shape.causal || c.shape.seqlen_q != seqlen || !c.problem.empty() || c.seconds.empty()) continue;
      coordinates.push_back({percentile(c.seconds, 50), c.scratch_bytes});
      points.push_back(quoted(c.name()));
    }
    const Goal goals[] = {Goal::kMinimize, Goal::kMinimize};
    std::vector<std::string> best;
    for (const std::size_t i : pareto_frontier(coordinates, goals).indices) best.push_back(points.at(i));
    return object({{"seqlen", std::to_string(seqlen)}, {"points", list(points)}, {"frontier", list(best)}});
  });
}

}  // namespace

double Case::scratch_formula_bytes() const {
  const auto d = [](std::int64_t count) { return static_cast<double>(count); };
  if (kernel == "naive") try {
      return score_matrix_bytes(d(shape.batch), d(shape.q_heads), d(shape.seqlen_q), sizeof(float));
    } catch (const std::exception&) {
      return kUnknown;
    }
  if (kernel == "fast") {  // packed K and V; a block of Q, S and O
    const double columns = d(padded(shape.head_dim)), keys = d(padded(shape.seqlen_k));
    const double packed = d(shape.kv_heads) * (keys * d(shape.head_dim) + d(shape.seqlen_k) * columns);
    return sizeof(float) * (packed + d(kBlockQ) * (d(shape.head_dim) + columns + d(kBlockK)));
  }
  // Tiles of Q, O, K, V and S; m, d and lse of a tile.
  const double rows_q = d(std::min(tiling.block_q, shape.seqlen_q));
  const double rows_k = d(std::min(tiling.block_k, shape.seqlen_k));
  return sizeof(float) * (2 * (rows_q + rows_k) * d(shape.head_dim) + rows_q * rows_k + 3 * rows_q);
}

Statistics probe_statistics() { return {why_not(p95), why_not(half_width_95)}; }

void Statistics::add_to(Registered benchmark) const {
  if (needs_percentile.empty()) benchmark->ComputeStatistics("p50", p50)->ComputeStatistics("p95", p95);
  if (needs_summary.empty()) benchmark->ComputeStatistics("half_width_95", half_width_95);
}

bool Progress::ReportContext(const Context&) { return true; }

void Progress::ReportRuns(const std::vector<Run>& runs) {
  if (runs.empty() || runs.front().run_type != Run::RT_Iteration) return;  // the statistics come in a second call
  ++done_;
  const std::string name = runs.front().run_name.function_name;
  for (const Case& c : cases_) {
    if (c.name() != name) continue;
    std::fprintf(stderr, "[%2zu/%2zu] %-24s ", done_, cases_.size(), name.c_str());
    if (c.problem.empty())
      std::fprintf(stderr, "%10.2f ms, median of %zu\n", 1e3 * middle(c.seconds), c.seconds.size());
    else
      std::fprintf(stderr, "%s\n", c.problem.c_str());
  }
}

void Json::Finalize() {
  const std::string settings = object({{"heads", std::to_string(options_.heads)},
                                       {"head_dim", std::to_string(options_.head_dim)},
                                       {"samples", std::to_string(options_.samples)}});
  const std::string host = object({{"cpu", quoted(host_.cpu)},
                                   {"vector_flop_per_s", number(host_.vector_flop_per_s)},
                                   {"native_flop_per_s", number(host_.native_flop_per_s)},
                                   {"scalar_flop_per_s", number(host_.scalar_flop_per_s)},
                                   {"bytes_per_s", number(host_.bytes_per_s)}});
  const std::string statistics = object({{"needs_percentile", text_or_null(statistics_.needs_percentile)},
                                         {"needs_summary", text_or_null(statistics_.needs_summary)}});
  std::vector<std::string> cases;
  for (const Case& c : cases_) cases.push_back("\n      " + case_json(c));
  const auto head_dim = static_cast<double>(options_.head_dim);
  GetOutputStream() << "\n  ],\n  \"attention_bench\": {\n    \"settings\": " << settings << ",\n    \"host\": " << host
                    << ",\n    \"statistics\": " << statistics << ",\n    \"cases\": " << list(cases)
                    << ",\n    \"predictions\": " << predictions_json(host_, options_.seqlens, head_dim)
                    << ",\n    \"frontier\": " << frontier_json(cases_) << ",\n    \"growth\": " << growth_json()
                    << ",\n    \"roofline\": " << roofline_json(host_, 4096, head_dim) << "\n  }\n}\n";
}

}  // namespace nanolm
