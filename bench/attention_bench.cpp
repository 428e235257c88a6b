// Naive against tiled attention on one core, and lesson 10's fast one: time, peak scratch memory, and how far the
// results differ.
//   attention_bench [--heads N] [--head-dim N] [--sizes 256,512,...] [--samples N] [--benchmark_out=FILE]
// scripts/attention_bench.py runs it and makes the tables. A sample is one call; nothing is checked here.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include "case.h"
#include "model.h"
#include "nanolm/devices.h"
#include "nanolm/fast_attention.h"
#include "nanolm/naive_attention.h"
#include "nanolm/tiled_attention.h"
#include "nanolm/todo.h"
#include "report.h"
#include "support/scratch.h"

namespace nanolm {
namespace {

// Calls before the first sample: it is metered, and touches memory and code for the first time.
constexpr int WARMUP = 1;

// A call on the CPU has finished when it returns, so there is nothing to wait for but the compiler. A GPU's sync()
// waits for the device: without it one measures how fast work is queued.
void sync() { benchmark::ClobberMemory(); }

void call(Case& c) {
  Tensors& t = *c.tensors;
  if (c.kernel == "naive")
    naive_attention(c.shape, t.Q, t.K, t.V, t.O);
  else if (c.kernel == "fast")
    fast_attention(c.shape, 1, t.Q, t.K, t.V, t.O, t.lse);
  else
    tiled_attention(c.shape, c.tiling, t.Q, t.K, t.V, t.O, t.lse);
}

void require_memory(const Case& c) {
  const double inputs = sizeof(float) * static_cast<double>(2 * q_size(c.shape) + 2 * kv_size(c.shape));
  const double scratch = std::isnan(c.scratch_formula_bytes()) ? 0 : c.scratch_formula_bytes();
  const double needed = inputs + scratch, available = available_bytes();
  char message[160];
  std::snprintf(message, sizeof message, "does not fit: needs %.1f GiB, %.1f GiB are available", needed / (1 << 30),
                available / (1 << 30));
  require(needed < 0.9 * available, message);
}

std::unique_ptr<Tensors> make_tensors(const AttentionShape& shape) {
  std::mt19937 generator(static_cast<std::uint32_t>(shape.seqlen_q));  // the same for every case of a length
  const auto normal = [&](std::int64_t size) {
    std::normal_distribution<float> distribution;
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& v : values) v = distribution(generator);
    return values;
  };
  auto t = std::make_unique<Tensors>();
  t->Q = normal(q_size(shape));
  t->K = normal(kv_size(shape));
  t->V = normal(kv_size(shape));
  t->O.resize(t->Q.size());
  t->lse.resize(static_cast<std::size_t>(lse_size(shape)));
  return t;
}

// Keeps O of the first kernel of a case and compares with it that of the others; "fast" comes last.
void compare(Case& c) {
  static std::map<std::pair<std::int64_t, bool>, std::vector<float>> first;
  const std::vector<float>& O = c.tensors->O;
  c.not_finite = !std::all_of(O.begin(), O.end(), [](float o) { return std::isfinite(o); });
  if (c.for_frontier) return;
  const auto [other, is_first] = first.try_emplace({c.shape.seqlen_q, c.shape.causal}, O);
  if (is_first) return;
  c.largest_difference = 0;
  for (std::size_t i = 0; i < O.size(); ++i)
    c.largest_difference = std::max(c.largest_difference, std::abs(static_cast<double>(O[i]) - other->second[i]));
  if (c.kernel == "fast") first.erase(other);
}

void prepare(Case& c) {
  check_shape(c.shape);
  scores_size(c.shape);  // refuses an S x S that does not fit 64 bits
  require_memory(c);
  c.tensors = make_tensors(c.shape);
  {
    const ScratchMeter meter;
    call(c);
    c.scratch_bytes = static_cast<double>(meter.peak_bytes());
  }
  compare(c);
  for (int i = 1; i < WARMUP; ++i) call(c);
}

// One sample. Google Benchmark calls this once a repetition, and the warm-up comes before the first.
void timed(benchmark::State& state, Case& c, std::int64_t samples) {
  try {
    require(c.problem.empty(), c.problem);
    if (!c.tensors) prepare(c);
    sync();
    for (auto _ : state) {
      const auto start = std::chrono::steady_clock::now();
      call(c);
      sync();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      state.SetIterationTime(taken.count());
      c.seconds.push_back(taken.count());
    }
  } catch (const NotImplemented& e) {
    c.problem = std::string("not implemented yet: ") + e.what();
  } catch (const std::exception& e) {
    c.problem = e.what();
  }
  if (!c.problem.empty()) state.SkipWithError(c.problem.c_str());
  if (!c.problem.empty() || static_cast<std::int64_t>(c.seconds.size()) == samples) c.tensors.reset();
}

std::vector<Case> make_cases(const Options& options) {
  std::vector<Case> cases;
  const auto add = [&](const char* kernel, std::int64_t seqlen, bool causal, std::int64_t block, bool for_frontier) {
    Case c;
    c.kernel = kernel;
    c.shape = {1, options.heads, options.heads, seqlen, seqlen, options.head_dim, 0, causal};
    c.shape.scale = 1.0f / std::sqrt(static_cast<float>(options.head_dim));
    c.tiling = {block, block};
    c.for_frontier = for_frontier;
    cases.push_back(std::move(c));
  };
  const std::int64_t usual = Tiling{}.block_q;
  for (const std::int64_t seqlen : options.seqlens)
    for (const bool causal : {false, true})
      for (const char* kernel : {"naive", "tiled", "fast"}) add(kernel, seqlen, causal, usual, false);
  // Other block sizes, at 1024 or the length nearest to it.
  const std::int64_t seqlen = *std::min_element(options.seqlens.begin(), options.seqlens.end(), [](auto a, auto b) {
    return std::abs(static_cast<double>(a) - 1024) < std::abs(static_cast<double>(b) - 1024);
  });
  for (const std::int64_t block : {8, 16, 32, 64, 128, 256})
    if (block != usual) add("tiled", seqlen, false, block, true);
  return cases;
}

std::int64_t positive(const std::string& flag, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value > 0 && value <= 1 << 30, flag,
          " takes whole numbers from 1 to 2^30, got '", text, "'");
  return value;
}

// Takes what it knows out of argv and leaves the rest to Google Benchmark.
Options parse(int& argc, char** argv) {
  Options options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool own = flag == "--heads" || flag == "--head-dim" || flag == "--samples" || flag == "--sizes";
    if (!own) {
      argv[kept++] = argv[i];
      continue;
    }
    require(i + 1 < argc, flag, " needs a value");
    const std::string value = argv[++i];
    if (flag == "--heads") options.heads = positive(flag, value);
    if (flag == "--head-dim") options.head_dim = positive(flag, value);
    if (flag == "--samples") options.samples = positive(flag, value);
    if (flag != "--sizes") continue;
    options.seqlens.clear();
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      options.seqlens.push_back(positive(flag, value.substr(begin, end - begin)));
      begin = end + 1;
    }
    std::sort(options.seqlens.begin(), options.seqlens.end());
    options.seqlens.erase(std::unique(options.seqlens.begin(), options.seqlens.end()), options.seqlens.end());
  }
  argc = kept;
  return options;
}

int run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--list-devices") == 0) {
      for (const Device& d : devices()) std::printf("%s\n", std::string(d.name).c_str());
      return 0;
    }
  const Options options = parse(argc, argv);
  bool to_file = false;
  for (int i = 1; i < argc; ++i) to_file = to_file || std::strncmp(argv[i], "--benchmark_out=", 16) == 0;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  std::fprintf(stderr, "measuring this machine's rates\n");
  const Host host = measure_host();
  benchmark::AddCustomContext("cpu", host.cpu);
  benchmark::AddCustomContext("compiler", NANOLM_COMPILER);
  benchmark::AddCustomContext("flags", NANOLM_FLAGS);
  benchmark::AddCustomContext("build_type", NANOLM_BUILD_TYPE);
  benchmark::AddCustomContext("impl", NANOLM_IMPL);
  benchmark::AddCustomContext("warmup", std::to_string(WARMUP));

  std::vector<Case> cases = make_cases(options);
  const Statistics statistics = probe_statistics();
  for (Case& c : cases)
    statistics.add_to(
        benchmark::RegisterBenchmark(c.name().c_str(),
                                     [&c, &options](benchmark::State& state) { timed(state, c, options.samples); })
            ->Iterations(1)
            ->Repetitions(static_cast<int>(options.samples))
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond));
  Progress progress(cases);
  Json json(options, cases, host, statistics);
  benchmark::RunSpecifiedBenchmarks(&progress, to_file ? &json : nullptr);
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace nanolm

int main(int argc, char** argv) {
  try {
    return nanolm::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "attention_bench: %s\n", e.what());
    return 2;
  }
}
