// The CUDA ladder against this device's own roofs: multiply-adds, bandwidth, then each rung's rate and its share.
//   ladder_bench [--json FILE] [--samples N] [--rung NAME] [--sizes 256,512,...]
// A rate is printed only beside a result that was right: a few rows, computed in double precision on the host.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nanolm/cuda/buffer.h"
#include "nanolm/cuda/ladder.h"
#include "nanolm/cuda/timer.h"

namespace nanolm::cuda {
namespace {

struct Options {
  std::string json, rung;
  int samples = 9;
  std::vector<std::int64_t> seqlens{256, 512, 1024, 2048, 4096, 8192};
};

constexpr double kWorkspaceLimit = 8.0 * 1024 * 1024 * 1024;
constexpr double kSampleMs = 4;  // short work is repeated until a sample takes this long

// ---- Time

struct Times {
  std::vector<double> samples_ms;  // each the mean of `repeats` runs
  int repeats = 1;
  double median_ms() const {
    std::vector<double> sorted = samples_ms;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return n == 0 ? NAN : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  }
};

Times measure(int samples, const std::function<void()>& run) {
  GpuTimer timer;
  const auto sample = [&](int repeats) {
    timer.start();
    for (int i = 0; i < repeats; ++i) run();
    return static_cast<double>(timer.stop_ms()) / repeats;
  };
  run();  // warm-up: loads the code
  Times times;
  times.repeats = static_cast<int>(std::min(200.0, std::ceil(kSampleMs / std::max(sample(1), 1e-3))));
  sample(times.repeats);
  for (int i = 0; i < samples; ++i) times.samples_ms.push_back(sample(times.repeats));
  return times;
}

// ---- Roofs

constexpr int kChains = 16;  // independent sums of a thread: the latency of a multiply-add is hidden
constexpr int kSteps = 1 << 14;

__global__ void multiply_add_kernel(float factor, float summand, float* result) {
  float sums[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) sums[i] = static_cast<float>(threadIdx.x) + static_cast<float>(i);
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int i = 0; i < kChains; ++i) sums[i] = fmaf(sums[i], factor, summand);
  float total = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) total += sums[i];
  if (total == 12345.678f) *result = total;  // never, but the compiler cannot know
}

__global__ void copy_kernel(const float4* from, float4* to, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

struct Roofs {
  Times multiply_add, copy;
  double multiply_add_flop = 0, copy_bytes = 0;
  double flop_per_s() const { return multiply_add_flop / multiply_add.median_ms() * 1e3; }
  double bytes_per_s() const { return copy_bytes / copy.median_ms() * 1e3; }
};

Roofs measure_roofs(int samples) {
  Roofs roofs;
  const int threads = 512, blocks = 4 * 16 * current_device().sms;
  DeviceBuffer<float> result(1);
  roofs.multiply_add_flop = 2.0 * kChains * kSteps * threads * blocks;
  roofs.multiply_add = measure(samples, [&] {
    multiply_add_kernel<<<static_cast<unsigned>(blocks), threads>>>(0.5f, 1.0f, result.data());
    CUDA_CHECK(cudaGetLastError());
  });

  const std::int64_t fours = std::int64_t{1} << 26;  // 1 GiB each way
  DeviceBuffer<float4> from(fours), to(fours);
  CUDA_CHECK(cudaMemset(from.data(), 0, from.bytes()));
  roofs.copy_bytes = 2.0 * static_cast<double>(from.bytes());
  roofs.copy = measure(samples, [&] {
    copy_kernel<<<static_cast<unsigned>(fours / 256), 256>>>(from.data(), to.data(), fours);
    CUDA_CHECK(cudaGetLastError());
  });
  return roofs;
}

// ---- Data and the truth

// Numbers of variance 1, from an index: the same on every machine, different in every head.
float number_at(std::int64_t index, int which) {
  std::uint64_t z =
      (static_cast<std::uint64_t>(index) * 3 + static_cast<std::uint64_t>(which) + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  return (static_cast<float>(z >> 40) / 8388608.0f - 1.0f) * 1.7320508f;
}
// The same, rounded to T.
template <class T = float>
double stored_at(std::int64_t index, int which) {
  return static_cast<double>(static_cast<float>(T(number_at(index, which))));
}
template <class T = float>
std::vector<T> numbers(std::int64_t size, int which) {
  std::vector<T> v(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) v[static_cast<std::size_t>(i)] = T(number_at(i, which));
  return v;
}

struct RowError {
  double error = 0, tolerance = 0;  // of the worst element, relative to its tolerance
  void add(double e, double t) {
    if (tolerance == 0 || !(e / t <= error / tolerance)) error = e, tolerance = t;
  }
  bool right() const { return error <= tolerance; }
};

// Row `row` of [batch * q_heads * seqlen_q] against double precision. The bound is that of lessons 04 and 05, and half
// of bf16's last bit where O is rounded to it.
template <class T>
void check_row(const AttentionShape& s, const std::vector<T>& O, const std::vector<float>& lse, std::int64_t row,
               RowError& worst) {
  const std::int64_t head = row / s.seqlen_q, i = row % s.seqlen_q, kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k;
  const std::int64_t keys = s.causal ? std::min(s.seqlen_k, i + s.seqlen_k - s.seqlen_q + 1) : s.seqlen_k;
  std::vector<double> scores(static_cast<std::size_t>(keys)), truth(static_cast<std::size_t>(s.head_dim));
  double max = -HUGE_VAL, magnitude = 0, sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    double dot = 0, absolute = 0;
    for (std::int64_t h = 0; h < s.head_dim; ++h) {
      const double term = stored_at<T>(row * s.head_dim + h, 0) * stored_at<T>((kv + j) * s.head_dim + h, 1);
      dot += term, absolute += std::abs(term);
    }
    scores[static_cast<std::size_t>(j)] = s.scale * dot;
    magnitude = std::max(magnitude, s.scale * absolute);
    max = std::max(max, s.scale * dot);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    const double p = std::exp(scores[static_cast<std::size_t>(j)] - max);
    sum += p;
    for (std::int64_t h = 0; h < s.head_dim; ++h)
      truth[static_cast<std::size_t>(h)] += p * stored_at<T>((kv + j) * s.head_dim + h, 2);
  }
  const double dim = static_cast<double>(s.head_dim), n = static_cast<double>(keys);
  const double bound = std::ldexp((4 + std::sqrt(dim)) * magnitude + 2 * std::sqrt(n) + 8, -23);
  worst.add(std::abs(static_cast<double>(lse[static_cast<std::size_t>(row)]) - (max + std::log(sum))), bound);
  const double rounding = sizeof(T) == 2 ? std::ldexp(1.0, -8) : 0;
  for (std::int64_t h = 0; h < s.head_dim; ++h) {
    const double expected = truth[static_cast<std::size_t>(h)] / sum;
    const double actual = static_cast<double>(static_cast<float>(O[static_cast<std::size_t>(row * s.head_dim + h)]));
    worst.add(std::abs(actual - expected), bound * 1.7320508 + rounding * (std::abs(expected) + bound));
  }
}

// dO has the numbers of K, a million elements further on.
constexpr int kGradient = 3000001;

// A backward pass on the host, in double precision, from the same O and lse as the device's: pairs of a query and a
// key.
struct BackwardTruth {
  const AttentionShape& s;
  const std::vector<float>&O, &lse;

  // Each adds up terms and the sizes of their parts; the error of a sum is a small part of the latter.
  struct Row {
    std::vector<double> sums, sizes;
    double score_size = 0;
    explicit Row(std::int64_t dim) : sums(static_cast<std::size_t>(dim)), sizes(static_cast<std::size_t>(dim)) {}
    void add(double term, double size, std::int64_t h) {
      sums[static_cast<std::size_t>(h)] += term, sizes[static_cast<std::size_t>(h)] += std::abs(size);
    }
  };

  // Query row `row` and key row `key` of [batch * heads * seqlen]; adds to those that are asked for.
  void add_pair(std::int64_t row, std::int64_t key, Row* dQ, Row* dK, Row* dV) const {
    const std::int64_t q = row * s.head_dim, k = key * s.head_dim;
    double score = 0, score_size = 0, dP = 0, delta = 0, size = 0;
    for (std::int64_t h = 0; h < s.head_dim; ++h) {
      const double g = stored_at(q + h, kGradient), product = stored_at(q + h, 0) * stored_at(k + h, 1);
      const double out = g * static_cast<double>(O[static_cast<std::size_t>(q + h)]);
      score += s.scale * product, score_size += s.scale * std::abs(product);
      dP += g * stored_at(k + h, 2), delta += out;
      size += std::abs(g * stored_at(k + h, 2)) + std::abs(out);
    }
    const double P = std::exp(score - static_cast<double>(lse[static_cast<std::size_t>(row)]));
    const double dS = s.scale * P * (dP - delta), dS_size = s.scale * P * size;
    for (std::int64_t h = 0; h < s.head_dim; ++h) {
      const double query = stored_at(q + h, 0), key_element = stored_at(k + h, 1), g = stored_at(q + h, kGradient);
      if (dQ) dQ->add(dS * key_element, dS_size * key_element, h);
      if (dK) dK->add(dS * query, dS_size * query, h);
      if (dV) dV->add(P * g, P * g, h);
    }
    for (Row* r : {dQ, dK, dV})
      if (r) r->score_size = std::max(r->score_size, score_size);
  }
  bool sees(std::int64_t i, std::int64_t j) const { return !s.causal || j <= i + s.seqlen_k - s.seqlen_q; }

  // The bound of lesson 06, for each element by its own terms.
  void compare(const Row& truth, const std::vector<float>& actual, std::int64_t row, RowError& worst) const {
    const double dim = static_cast<double>(s.head_dim);
    const double n = static_cast<double>(s.seqlen_k + s.q_heads / s.kv_heads * s.seqlen_q) + dim;
    const double bound = std::ldexp((4 + std::sqrt(dim)) * truth.score_size + 2 * std::sqrt(n) + 8, -23);
    for (std::size_t h = 0; h < truth.sums.size(); ++h) {
      const double is = static_cast<double>(actual[static_cast<std::size_t>(row * s.head_dim) + h]);
      worst.add(std::abs(is - truth.sums[h]), bound * truth.sizes[h]);
    }
  }
  void check_query(std::int64_t row, const std::vector<float>& dQ, RowError& worst) const {
    const std::int64_t head = row / s.seqlen_q, kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k;
    Row truth(s.head_dim);
    for (std::int64_t j = 0; j < s.seqlen_k; ++j)
      if (sees(row % s.seqlen_q, j)) add_pair(row, kv + j, &truth, nullptr, nullptr);
    compare(truth, dQ, row, worst);
  }
  void check_key(std::int64_t key, const std::vector<float>& dK, const std::vector<float>& dV, RowError& worst) const {
    const std::int64_t group = s.q_heads / s.kv_heads, first = key / s.seqlen_k * group;
    Row truth_K(s.head_dim), truth_V(s.head_dim);
    for (std::int64_t head = first; head < first + group; ++head)
      for (std::int64_t i = 0; i < s.seqlen_q; ++i)
        if (sees(i, key % s.seqlen_k)) add_pair(head * s.seqlen_q + i, key, nullptr, &truth_K, &truth_V);
    compare(truth_K, dK, key, worst);
    compare(truth_V, dV, key, worst);
  }
};

// ---- The rungs

struct ElementwiseCase {
  const Rung* rung;
  bool fused;
  int operations;
  Times times;
  std::string problem;
  double bytes() const { return 8.0 * (1 << 26) * (fused ? 1 : operations); }
};

ElementwiseCase measure_elementwise(const Rung& rung, bool fused, int operations, int samples) {
  ElementwiseCase c{&rung, fused, operations, {}, ""};
  try {
    ElementwiseArgs args;
    args.count = 1 << 26;
    args.operations = operations;
    for (int i = 0; i < operations; ++i) args.multiply[i] = 0.5f, args.add[i] = 1.0f + static_cast<float>(i);
    DeviceBuffer<float> x(numbers(args.count, 0)), y(args.count);
    args.x = x.data(), args.y = y.data();
    CUDA_CHECK(cudaMemset(y.data(), 0xff, y.bytes()));
    const Elementwise run = fused ? rung.fused : rung.chain;
    run(args);
    const std::vector<float> result = y.to_host();
    for (std::int64_t i = 0; i < args.count && c.problem.empty(); ++i) {
      float truth = number_at(i, 0);
      for (int k = 0; k < operations; ++k) truth = std::fma(truth, args.multiply[k], args.add[k]);
      if (!(result[static_cast<std::size_t>(i)] == truth)) c.problem = "wrong result at " + std::to_string(i);
    }
    if (c.problem.empty()) c.times = measure(samples, [&] { run(args); });
  } catch (const std::exception& e) {
    c.problem = e.what();
  }
  return c;
}

struct ForwardCase {
  const Rung* rung;
  AttentionShape shape;
  Times times;
  RowError worst;
  std::string problem;
  double flop() const {
    const double all = 4.0 * static_cast<double>(scores_size(shape)) * static_cast<double>(shape.head_dim);
    return shape.causal ? all / 2 : all;
  }
};

ForwardCase measure_forward(const Rung& rung, const AttentionShape& s, int samples) {
  ForwardCase c{&rung, s, {}, {}, ""};
  try {
    const std::int64_t workspace_bytes = rung.workspace_bytes ? rung.workspace_bytes(s) : 0;
    require(static_cast<double>(workspace_bytes) <= kWorkspaceLimit, "workspace above 8 GiB");
    DeviceBuffer<float> Q(numbers(q_size(s), 0)), K(numbers(kv_size(s), 1)), V(numbers(kv_size(s), 2));
    DeviceBuffer<float> O(q_size(s)), lse(lse_size(s));
    DeviceBuffer<char> workspace(workspace_bytes);
    CUDA_CHECK(cudaMemset(O.data(), 0xff, O.bytes()));
    CUDA_CHECK(cudaMemset(lse.data(), 0xff, lse.bytes()));
    ForwardArgs<float> args;
    args.shape = s;
    args.Q = Q.data(), args.K = K.data(), args.V = V.data();
    args.O = O.data(), args.lse = lse.data(), args.workspace = workspace.data();
    rung.forward(args);
    const std::vector<float> O_host = O.to_host(), lse_host = lse.to_host();
    const std::int64_t rows = lse_size(s);
    for (std::int64_t i = 0; i < 16; ++i) check_row(s, O_host, lse_host, (i * 2654435761 + 1) % rows, c.worst);
    check_row(s, O_host, lse_host, 0, c.worst);
    check_row(s, O_host, lse_host, rows - 1, c.worst);
    if (c.worst.right())
      c.times = measure(samples, [&] { rung.forward(args); });
    else
      c.problem = "wrong result: error " + std::to_string(c.worst.error);
  } catch (const std::exception& e) {
    c.problem = e.what();
  }
  return c;
}

struct DecodeCase {
  const Rung* rung;
  bool is_bf16;
  AttentionShape shape;
  Times times;
  RowError worst;
  std::string problem;
  // K and V once for each kv head, Q and O.
  double bytes() const { return (is_bf16 ? 2.0 : 4.0) * 2 * static_cast<double>(kv_size(shape) + q_size(shape)); }
};

template <class T>
DecodeCase measure_decode(const Rung& rung, DecodeFn<T> decode, const AttentionShape& s, int samples) {
  DecodeCase c{&rung, sizeof(T) == 2, s, {}, {}, ""};
  try {
    DeviceBuffer<T> Q(numbers<T>(q_size(s), 0)), K(numbers<T>(kv_size(s), 1)), V(numbers<T>(kv_size(s), 2));
    DeviceBuffer<T> O(q_size(s));
    DeviceBuffer<float> lse(lse_size(s));
    DeviceBuffer<char> workspace(rung.decode_workspace_bytes ? rung.decode_workspace_bytes(s, 0) : 0);
    CUDA_CHECK(cudaMemset(O.data(), 0xff, O.bytes()));
    CUDA_CHECK(cudaMemset(lse.data(), 0xff, lse.bytes()));
    DecodeArgs<T> args;
    args.shape = s;
    args.Q = Q.data(), args.K = K.data(), args.V = V.data();
    args.O = O.data(), args.lse = lse.data(), args.workspace = workspace.data();
    decode(args);
    const std::vector<T> O_host = O.to_host();
    const std::vector<float> lse_host = lse.to_host();
    const std::int64_t rows = lse_size(s);
    for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1}) check_row(s, O_host, lse_host, row, c.worst);
    if (c.worst.right())
      c.times = measure(samples, [&] { decode(args); });
    else
      c.problem = "wrong result: error " + std::to_string(c.worst.error);
  } catch (const std::exception& e) {
    c.problem = e.what();
  }
  return c;
}

struct BackwardCase {
  const Rung* rung;
  AttentionShape shape;
  Times times;
  RowError worst;
  std::string problem;
  // By convention 2.5 times the forward's, also where more is computed.
  double flop() const {
    const double all = 10.0 * static_cast<double>(scores_size(shape)) * static_cast<double>(shape.head_dim);
    return shape.causal ? all / 2 : all;
  }
};

// `forward` gives O and lse; it is checked and timed by itself.
BackwardCase measure_backward(const Rung& rung, ForwardFn<float> forward, const AttentionShape& s, int samples) {
  BackwardCase c{&rung, s, {}, {}, ""};
  try {
    DeviceBuffer<float> Q(numbers(q_size(s), 0)), K(numbers(kv_size(s), 1)), V(numbers(kv_size(s), 2));
    DeviceBuffer<float> O(q_size(s)), lse(lse_size(s)), dO(numbers(q_size(s), kGradient));
    DeviceBuffer<float> dQ(q_size(s)), dK(kv_size(s)), dV(kv_size(s));
    DeviceBuffer<char> workspace(rung.workspace_bytes ? rung.workspace_bytes(s) : 0);
    for (DeviceBuffer<float>* tensor : {&dQ, &dK, &dV}) CUDA_CHECK(cudaMemset(tensor->data(), 0xff, tensor->bytes()));
    ForwardArgs<float> before;
    before.shape = s;
    before.Q = Q.data(), before.K = K.data(), before.V = V.data(), before.O = O.data(), before.lse = lse.data();
    forward(before);
    BackwardArgs<float> args;
    args.shape = s;
    args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.dO = dO.data();
    args.lse = lse.data(), args.dQ = dQ.data(), args.dK = dK.data(), args.dV = dV.data();
    args.workspace = workspace.data();
    rung.backward(args);
    const std::vector<float> O_host = O.to_host(), lse_host = lse.to_host();
    const std::vector<float> dQ_host = dQ.to_host(), dK_host = dK.to_host(), dV_host = dV.to_host();
    const BackwardTruth truth{s, O_host, lse_host};
    for (const std::int64_t i : {0, 1, 2, 3}) {
      truth.check_query((i * 2654435761 + lse_size(s) - 1) % lse_size(s), dQ_host, c.worst);
      const std::int64_t keys = s.batch * s.kv_heads * s.seqlen_k;
      truth.check_key(i == 0 ? 0 : (i * 2654435761 + keys - 1) % keys, dK_host, dV_host, c.worst);
    }
    if (c.worst.right())
      c.times = measure(samples, [&] { rung.backward(args); });
    else
      c.problem = "wrong result: error " + std::to_string(c.worst.error);
  } catch (const std::exception& e) {
    c.problem = e.what();
  }
  return c;
}

// ---- Report

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::isfinite(value) ? text : "null";
}
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}
std::string fields(const Times& times) {
  std::string text = "\"repeats\": " + std::to_string(times.repeats) + ", \"samples_ms\": [";
  for (std::size_t i = 0; i < times.samples_ms.size(); ++i) text += (i ? ", " : "") + number(times.samples_ms[i]);
  return text + "]";
}

struct Report {
  cudaDeviceProp device{};
  int driver = 0, runtime = 0, clock_khz = 0, memory_clock_khz = 0;
  Roofs roofs;
  std::vector<ElementwiseCase> elementwise;
  std::vector<ForwardCase> forward;
  std::vector<DecodeCase> decode;
  std::vector<BackwardCase> backward;

  std::string json() const {
    std::string text = "{\"device\": " + quoted(device.name) +
                       ", \"compute_capability\": " + std::to_string(10 * device.major + device.minor) +
                       ", \"sms\": " + std::to_string(device.multiProcessorCount) +
                       ", \"driver\": " + std::to_string(driver) + ", \"runtime\": " + std::to_string(runtime) +
                       ", \"compiler\": \"nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                       std::to_string(__CUDACC_VER_MINOR__) + "." + std::to_string(__CUDACC_VER_BUILD__) +
                       "\",\n \"highest_sm_clock_mhz\": " + number(clock_khz / 1e3) +
                       ", \"memory_clock_mhz\": " + number(memory_clock_khz / 1e3) +
                       ",\n \"multiply_add\": {\"flop\": " + number(roofs.multiply_add_flop) + ", " +
                       fields(roofs.multiply_add) + "},\n \"copy\": {\"bytes\": " + number(roofs.copy_bytes) + ", " +
                       fields(roofs.copy) + "},\n \"elementwise\": [";
    for (std::size_t i = 0; i < elementwise.size(); ++i) {
      const ElementwiseCase& c = elementwise[i];
      text += std::string(i ? ",\n  " : "\n  ") + "{\"rung\": " + quoted(c.rung->name) +
              ", \"kernels\": " + (c.fused ? "\"fused\"" : "\"chain\"") +
              ", \"operations\": " + std::to_string(c.operations) + ", \"bytes\": " + number(c.bytes()) +
              ", \"problem\": " + (c.problem.empty() ? "null" : quoted(c.problem)) + ", " + fields(c.times) + "}";
    }
    return text + "],\n \"forward\": [" + attention_json(forward) + "],\n \"decode\": [" + decode_json() +
           "],\n \"backward\": [" + attention_json(backward) + "]}\n";
  }
  // Of forward and backward passes.
  template <class Cases>
  static std::string attention_json(const Cases& cases) {
    std::string text;
    for (const auto& c : cases)
      text += std::string(text.empty() ? "\n  " : ",\n  ") + "{\"rung\": " + quoted(c.rung->name) +
              ", \"batch\": " + std::to_string(c.shape.batch) + ", \"heads\": " + std::to_string(c.shape.q_heads) +
              ", \"seqlen\": " + std::to_string(c.shape.seqlen_q) +
              ", \"head_dim\": " + std::to_string(c.shape.head_dim) +
              ", \"causal\": " + (c.shape.causal ? "true" : "false") + ", \"flop\": " + number(c.flop()) +
              ", \"problem\": " + (c.problem.empty() ? "null" : quoted(c.problem)) +
              ", \"error\": " + number(c.worst.error) + ", \"tolerance\": " + number(c.worst.tolerance) + ", " +
              fields(c.times) + "}";
    return text;
  }
  std::string decode_json() const {
    std::string text;
    for (const DecodeCase& c : decode)
      text +=
          std::string(text.empty() ? "\n  " : ",\n  ") + "{\"rung\": " + quoted(c.rung->name) +
          ", \"type\": " + (c.is_bf16 ? "\"bf16\"" : "\"fp32\"") + ", \"batch\": " + std::to_string(c.shape.batch) +
          ", \"q_heads\": " + std::to_string(c.shape.q_heads) + ", \"kv_heads\": " + std::to_string(c.shape.kv_heads) +
          ", \"keys\": " + std::to_string(c.shape.seqlen_k) + ", \"head_dim\": " + std::to_string(c.shape.head_dim) +
          ", \"bytes\": " + number(c.bytes()) + ", \"problem\": " + (c.problem.empty() ? "null" : quoted(c.problem)) +
          ", \"error\": " + number(c.worst.error) + ", \"tolerance\": " + number(c.worst.tolerance) + ", " +
          fields(c.times) + "}";
    return text;
  }
};

void print(const char* name, const std::string& what, const Times& times, const std::string& problem, double rate,
           const char* unit, double percent, const char* roof) {
  std::printf("%-26s %-20s ", name + std::strlen("cuda/"), what.c_str());
  if (problem.empty())
    std::printf("%9.3f ms %8.2f %s %5.1f %% of %s\n", times.median_ms(), rate, unit, percent, roof);
  else
    std::printf("%s\n", problem.c_str());
  std::fflush(stdout);
}
void print(const ElementwiseCase& c, double bytes_per_s) {
  const double rate = c.bytes() / c.times.median_ms() * 1e3;
  print(c.rung->name, (c.fused ? "fused k " : "chain k ") + std::to_string(c.operations), c.times, c.problem,
        rate / 1e9, "GB/s", 100 * rate / bytes_per_s, "copy");
}
template <class Case>
void print_attention(const Case& c, double flop_per_s) {
  const double rate = c.flop() / c.times.median_ms() * 1e3;
  const std::string what = "H " + std::to_string(c.shape.head_dim) + " S " + std::to_string(c.shape.seqlen_q) +
                           (c.shape.causal ? " causal" : "");
  print(c.rung->name, what, c.times, c.problem, rate / 1e12, "TFLOP/s", 100 * rate / flop_per_s, "multiply-adds");
}
void print(const ForwardCase& c, double flop_per_s) { print_attention(c, flop_per_s); }
void print(const BackwardCase& c, double flop_per_s) { print_attention(c, flop_per_s); }
void print(const DecodeCase& c, double bytes_per_s) {
  const double rate = c.bytes() / c.times.median_ms() * 1e3;
  const std::string what = std::string(c.is_bf16 ? "bf16" : "fp32") + " B " + std::to_string(c.shape.batch) + " S " +
                           std::to_string(c.shape.seqlen_k);
  print(c.rung->name, what, c.times, c.problem, rate / 1e9, "GB/s", 100 * rate / bytes_per_s, "copy");
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    require(i + 1 < argc, flag, " needs a value");
    const std::string value = argv[i + 1];
    if (flag == "--json") {
      options.json = value;
    } else if (flag == "--rung") {
      options.rung = value;
    } else if (flag == "--samples") {
      options.samples = std::atoi(value.c_str());
      require(options.samples >= 7, "--samples takes whole numbers from 7 on, got '", value, "'");
    } else if (flag == "--sizes") {
      options.seqlens.clear();
      for (const char* at = value.c_str(); *at;) {
        char* end = nullptr;
        options.seqlens.push_back(std::strtoll(at, &end, 10));
        require(end != at && options.seqlens.back() > 0, "--sizes takes whole numbers above 0, got '", value, "'");
        at = *end == ',' ? end + 1 : end;
      }
    } else {
      require(false, "unknown option ", flag);
    }
  }
  return options;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Report report;
  int id = 0;
  CUDA_CHECK(cudaGetDevice(&id));
  CUDA_CHECK(cudaGetDeviceProperties(&report.device, id));
  CUDA_CHECK(cudaDriverGetVersion(&report.driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&report.runtime));
  CUDA_CHECK(cudaDeviceGetAttribute(&report.clock_khz, cudaDevAttrClockRate, id));
  CUDA_CHECK(cudaDeviceGetAttribute(&report.memory_clock_khz, cudaDevAttrMemoryClockRate, id));
  report.roofs = measure_roofs(options.samples);
  std::printf("%s, %d SMs, driver %d, runtime %d\n", report.device.name, report.device.multiProcessorCount,
              report.driver, report.runtime);
  std::printf("multiply-adds %.2f TFLOP/s (two a clock and lane: %.0f MHz), copy %.0f GB/s\n\n",
              report.roofs.flop_per_s() / 1e12, report.roofs.flop_per_s() / (256e6 * report.device.multiProcessorCount),
              report.roofs.bytes_per_s() / 1e9);
  const auto wanted = [&](const Rung* rung) { return std::strstr(rung->name, options.rung.c_str()) != nullptr; };
  for (const Rung* rung : ladder())
    for (const int operations : {1, 2, 4, 8, 16})
      for (const bool fused : {false, true})
        if (wanted(rung) && (fused ? rung->fused : rung->chain)) {
          report.elementwise.push_back(measure_elementwise(*rung, fused, operations, options.samples));
          print(report.elementwise.back(), report.roofs.bytes_per_s());
        }
  for (const Rung* rung : ladder())
    for (const std::int64_t head_dim : {64, 128})
      for (const bool causal : {false, true})
        for (const std::int64_t seqlen : options.seqlens)
          if (wanted(rung) && rung->forward) {
            const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
            const AttentionShape shape{4, 8, 8, seqlen, seqlen, head_dim, scale, causal};
            report.forward.push_back(measure_forward(*rung, shape, options.samples));
            print(report.forward.back(), report.roofs.flop_per_s());
          }
  // Beside the forward pass, on the same shapes: O and lse are rung 03's.
  for (const Rung* rung : ladder())
    for (const std::int64_t head_dim : {64, 128})
      for (const bool causal : {false, true})
        for (const std::int64_t seqlen : options.seqlens)
          if (wanted(rung) && rung->backward) {
            const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
            const AttentionShape shape{4, 8, 8, seqlen, seqlen, head_dim, scale, causal};
            report.backward.push_back(measure_backward(*rung, flash_forward.forward, shape, options.samples));
            print(report.backward.back(), report.roofs.flop_per_s());
          }
  // Llama-3-8B's heads. Each cache is larger than the L2, from which the next run would read it.
  for (const Rung* rung : ladder())
    for (const auto& [batch, keys] : {std::pair{16, 1024}, std::pair{16, 8192}, std::pair{1, 65536}})
      for (const bool is_bf16 : {false, true})
        if (wanted(rung) && (is_bf16 ? rung->decode_bf16 != nullptr : rung->decode != nullptr)) {
          const AttentionShape shape{batch, 32, 8, 1, keys, 128, 1.0f / std::sqrt(128.0f), false};
          report.decode.push_back(is_bf16 ? measure_decode(*rung, rung->decode_bf16, shape, options.samples)
                                          : measure_decode(*rung, rung->decode, shape, options.samples));
          print(report.decode.back(), report.roofs.bytes_per_s());
        }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << report.json();
    require(static_cast<bool>(file.flush()), "cannot write ", options.json);
  }
  return 0;
}

}  // namespace
}  // namespace nanolm::cuda

int main(int argc, char** argv) {
  try {
    return nanolm::cuda::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ladder_bench: %s\n", e.what());
    return 2;
  }
}
