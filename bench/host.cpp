#include "host.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace nanolm {

// multiply_add.cpp, compiled three times.
extern const double multiply_add_step_flop_vector, multiply_add_step_flop_scalar, multiply_add_step_flop_native;
float multiply_add_vector(std::int64_t steps);
float multiply_add_native(std::int64_t steps);
float multiply_add_scalar(std::int64_t steps);

namespace {

template <class Function>
double seconds(const Function& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double flop_per_s(float (*multiply_add)(std::int64_t), double step_flop) {
  double best = 0;
  std::int64_t steps = 100'000;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const double taken = seconds([&] { benchmark::DoNotOptimize(multiply_add(steps)); });
    best = std::max(best, step_flop * static_cast<double>(steps) / taken);
    if (taken < 0.03) steps *= 2;
  }
  return best;
}

double triad_bytes_per_s() {
  // Four times a cache of 32 MiB each, or what fits.
  const double fits = std::min(available_bytes() / 8, 128.0 * 1024 * 1024);
  const auto size = static_cast<std::size_t>(fits / sizeof(float));
  std::vector<float> a(size, 0.0f), b(size, 1.0f), c(size, 2.0f);
  double best = 0;
  for (int attempt = 0; attempt < 6; ++attempt) {
    const double taken = seconds([&] {
      float* out = a.data();
      const float *x = b.data(), *y = c.data();
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) out[i] = x[i] + 3.0f * y[i];
      benchmark::DoNotOptimize(out);
      benchmark::ClobberMemory();
    });
    best = std::max(best, 3.0 * sizeof(float) * static_cast<double>(size) / taken);
  }
  return best;
}

double number_in(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string cpu_name() {
#if defined(__APPLE__)
  char name[256] = {};
  std::size_t size = sizeof name - 1;
  if (sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0) return name;
#endif
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown CPU";
}

double available_bytes() {
  double bytes = std::numeric_limits<double>::infinity();
#if defined(__APPLE__)
  std::int64_t memory = 0;
  std::size_t size = sizeof memory;
  if (sysctlbyname("hw.memsize", &memory, &size, nullptr, 0) == 0) bytes = static_cast<double>(memory);
#endif
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) bytes = 1024 * std::stod(line.substr(13));
  // A file that is missing or says "max" gives NaN, and min() keeps its first argument.
  bytes = std::min(bytes, number_in("/sys/fs/cgroup/memory.max") - number_in("/sys/fs/cgroup/memory.current"));
  return std::max(bytes, 0.0);
}

Host measure_host() {
  Host host;
  host.cpu = cpu_name();
  host.vector_flop_per_s = flop_per_s(multiply_add_vector, multiply_add_step_flop_vector);
  host.native_flop_per_s = flop_per_s(multiply_add_native, multiply_add_step_flop_native);
  host.scalar_flop_per_s = flop_per_s(multiply_add_scalar, multiply_add_step_flop_scalar);
  host.bytes_per_s = triad_bytes_per_s();
  return host;
}

}  // namespace nanolm
