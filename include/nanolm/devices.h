// Accelerators and their datasheet rates: the roofs of lesson 01. Given.
//
// Rates are decimal (1 TFLOP/s = 1e12 FLOP/s, 1 GB = 1e9 byte) and peaks are dense: half of what a datasheet prints
// "with sparsity". A multiply-add counts as 2 FLOP. peak = SMs * FLOP per clock and SM * clock, which a test
// recomputes: within 0.6 %, what rounding to two digits may cost (8.1 for 8.14).
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanolm/require.h"

namespace nanolm {

// kFp32 runs on the vector units, the others on tensor (matrix) units, fp16 and bf16 with fp32 accumulators. A device
// lacks a peak for what its units do not do: Turing (T4) has fp16 but no bf16, TF32 or fp8, Ampere (A100) no fp8.
enum class Format { kFp32, kTf32, kFp16, kBf16, kFp8, kInt8 };
inline const char* name(Format format) {
  constexpr const char* kNames[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"};
  return kNames[static_cast<int>(format)];
}

struct Peak {
  Format format;
  double flop_per_s;         // dense; for kInt8 integer operations
  double flop_per_clock_sm;  // per SM (compute unit)
  double clock_hz;           // the clock that the datasheet's figure is stated at
};

struct Device {
  std::string_view name;
  std::vector<Peak> peaks;
  double bytes_per_s;        // main memory
  double memory_bytes;       // nominal, decimal
  int sms;                   // streaming multiprocessors; compute units on AMD
  double register_bytes_sm;  // register file of one SM
  double sram_bytes_sm;      // shared memory that one SM can give
  double l2_bytes;
  std::string_view source;
  std::string_view recorded;  // when this row was written down
};

// The vendors' datasheets are quoted from the public pages named in `source`. On-chip sizes are binary.
inline std::span<const Device> devices() {
  using enum Format;
  constexpr double kTera = 1e12, kGHz = 1e9, kGB = 1e9, kKiB = 1024, kMiB = 1024 * 1024;
  // clang-format off
  static const std::vector<Peak> a100{
      {kFp32, 19.5 * kTera, 128, 1.41 * kGHz},   {kTf32, 156 * kTera, 1024, 1.41 * kGHz},
      {kFp16, 312 * kTera, 2048, 1.41 * kGHz},   {kBf16, 312 * kTera, 2048, 1.41 * kGHz},
      {kInt8, 624 * kTera, 4096, 1.41 * kGHz}};
  static const std::vector<Peak> hopper_sxm{
      {kFp32, 66.9 * kTera, 256, 1.98 * kGHz},   {kTf32, 494.7 * kTera, 2048, 1.83 * kGHz},
      {kFp16, 989.4 * kTera, 4096, 1.83 * kGHz}, {kBf16, 989.4 * kTera, 4096, 1.83 * kGHz},
      {kFp8, 1978.9 * kTera, 8192, 1.83 * kGHz}, {kInt8, 1978.9 * kTera, 8192, 1.83 * kGHz}};
  static const std::vector<Device> table{
      {"T4",
       {{kFp32, 8.1 * kTera, 128, 1.59 * kGHz}, {kFp16, 65 * kTera, 1024, 1.59 * kGHz},
        {kInt8, 130 * kTera, 2048, 1.59 * kGHz}},
       320 * kGB, 16 * kGB, 40, 256 * kKiB, 64 * kKiB, 4 * kMiB,
       "NVIDIA T4 launch figures (geektopia.es, sysrqmts.com); deviceQuery output of a T4 (SMs, clock, SRAM, L2)",
       "2026-11-29"},
      {"A100 40GB SXM", a100, 1555 * kGB, 40 * kGB, 108, 256 * kKiB, 164 * kKiB, 40 * kMiB,
       "NVIDIA A100 datasheet r4, cited by glennklockwood.com; CUDA 13.0 cuda_occupancy.h (SRAM); deviceQuery (L2)",
       "2026-11-29"},
      {"A100 80GB SXM", a100, 2039 * kGB, 80 * kGB, 108, 256 * kKiB, 164 * kKiB, 40 * kMiB,
       "NVIDIA A100 datasheet r4, cited by glennklockwood.com; CUDA 13.0 cuda_occupancy.h (SRAM); deviceQuery (L2)",
       "2026-11-29"},
      {"A100 80GB PCIe", a100, 1935 * kGB, 80 * kGB, 108, 256 * kKiB, 164 * kKiB, 40 * kMiB,
       "NVIDIA A100 datasheet r4, cited by glennklockwood.com; CUDA 13.0 cuda_occupancy.h (SRAM); deviceQuery (L2)",
       "2026-11-29"},
      {"H100 SXM", hopper_sxm, 3350 * kGB, 80 * kGB, 132, 256 * kKiB, 228 * kKiB, 50 * kMiB,
       "NVIDIA H100 whitepaper, cited by glennklockwood.com; H100 datasheet, reproduced by hpctech.co.jp",
       "2026-11-29"},
      {"H100 PCIe",
       {{kFp32, 51.2 * kTera, 256, 1.755 * kGHz}, {kTf32, 378 * kTera, 2048, 1.62 * kGHz},
        {kFp16, 756 * kTera, 4096, 1.62 * kGHz},  {kBf16, 756 * kTera, 4096, 1.62 * kGHz},
        {kFp8, 1513 * kTera, 8192, 1.62 * kGHz},  {kInt8, 1513 * kTera, 8192, 1.62 * kGHz}},
       2000 * kGB, 80 * kGB, 114, 256 * kKiB, 228 * kKiB, 50 * kMiB,
       "NVIDIA H100 datasheet, reproduced by hpctech.co.jp; docs.nvidia.com/launchpad (SMs, L2)", "2026-11-29"},
      {"H200", hopper_sxm, 4800 * kGB, 141 * kGB, 132, 256 * kKiB, 228 * kKiB, 60 * kMiB,
       "NVIDIA H200 datasheet, cited by glennklockwood.com; attributes of an H200 read through CUDA (SMs, SRAM, L2)",
       "2026-11-29"},
      // NVIDIA states no clocks: 1.86 GHz (tensor) and 1.98 GHz are hmc-tech.com's. TF32 is half of bf16; the datasheet
      // says 2.2 PFLOP/s with sparsity, in two digits.
      {"B200",
       {{kFp32, 75 * kTera, 256, 1.98 * kGHz},   {kTf32, 1125 * kTera, 4096, 1.86 * kGHz},
        {kFp16, 2250 * kTera, 8192, 1.86 * kGHz}, {kBf16, 2250 * kTera, 8192, 1.86 * kGHz},
        {kFp8, 4500 * kTera, 16384, 1.86 * kGHz}, {kInt8, 4500 * kTera, 16384, 1.86 * kGHz}},
       7700 * kGB, 180 * kGB, 148, 256 * kKiB, 228 * kKiB, 126 * kMiB,
       "NVIDIA HGX B200 datasheet, reproduced by zdszero.github.io; Blackwell tuning guide (SRAM, L2)",
       "2026-11-29"},
      // GeForce halves the rate of fp16, bf16 and fp8 when the accumulator is fp32. TF32 is no faster than fp32 here.
      {"RTX 4090",
       {{kFp32, 82.6 * kTera, 256, 2.52 * kGHz},  {kTf32, 82.6 * kTera, 256, 2.52 * kGHz},
        {kFp16, 165.2 * kTera, 512, 2.52 * kGHz}, {kBf16, 165.2 * kTera, 512, 2.52 * kGHz},
        {kFp8, 330.3 * kTera, 1024, 2.52 * kGHz}, {kInt8, 660.6 * kTera, 2048, 2.52 * kGHz}},
       1008 * kGB, 24 * kGB, 128, 256 * kKiB, 100 * kKiB, 72 * kMiB,
       "NVIDIA Ada figures, reproduced by waredb.com; CUDA 13.0 cuda_occupancy.h (SRAM)", "2026-11-29"},
      // L2 is 4 MiB on each of 8 dies; behind it lie 256 MiB of Infinity Cache.
      {"MI300X",
       {{kFp32, 163.4 * kTera, 256, 2.1 * kGHz},   {kTf32, 653.7 * kTera, 1024, 2.1 * kGHz},
        {kFp16, 1307.4 * kTera, 2048, 2.1 * kGHz}, {kBf16, 1307.4 * kTera, 2048, 2.1 * kGHz},
        {kFp8, 2614.9 * kTera, 4096, 2.1 * kGHz},  {kInt8, 2614.9 * kTera, 4096, 2.1 * kGHz}},
       5300 * kGB, 192 * kGB, 304, 512 * kKiB, 64 * kKiB, 32 * kMiB,
       "AMD MI300X figures, reproduced by alpharomercoma/MI300X-vs-H200; rocm.docs.amd.com gpu-specs (LDS, L2, VGPRs)",
       "2026-11-29"},
  };
  // clang-format on
  return table;
}

// Throws std::invalid_argument that lists the names.
inline const Device& device(std::string_view name) {
  std::string names;
  for (const Device& d : devices()) {
    if (d.name == name) return d;
    names += (names.empty() ? "" : ", ") + std::string(d.name);
  }
  require(false, "no device is named '", name, "'; choose from ", names);
  return devices().front();
}

// The two roofs of a device for one number format.
struct Machine {
  double flop_per_s = 0;
  double bytes_per_s = 0;
};

inline void check_machine(const Machine& m) {
  require(std::isfinite(m.flop_per_s) && m.flop_per_s > 0, "flop_per_s must be positive, got ", m.flop_per_s);
  require(std::isfinite(m.bytes_per_s) && m.bytes_per_s > 0, "bytes_per_s must be positive, got ", m.bytes_per_s);
}

// Throws std::invalid_argument, naming the formats that there are, for one that the device does not compute in.
inline const Peak& peak(const Device& device, Format format) {
  std::string formats;
  for (const Peak& p : device.peaks) {
    if (p.format == format) return p;
    formats += (formats.empty() ? "" : ", ") + std::string(name(p.format));
  }
  require(false, device.name, " has no ", name(format), " rate; it has ", formats);
  return device.peaks.front();
}

inline Machine machine(const Device& device, Format format) {
  return {peak(device, format).flop_per_s, device.bytes_per_s};
}

// With another rate than the table's: a measured one, or a datasheet's with fewer digits. Throws std::invalid_argument
// for a rate that is not positive and finite, or more than 1 % above the dense peak: no dense kernel reaches it.
inline Machine machine(const Device& device, Format format, double flop_per_s) {
  require(std::isfinite(flop_per_s) && flop_per_s > 0, "flop_per_s must be positive and finite, got ", flop_per_s);
  const double dense = peak(device, format).flop_per_s;
  const double ratio = flop_per_s / dense;
  require(ratio <= 1.01, flop_per_s, " FLOP/s is ", ratio, " times the dense ", name(format), " peak of ", device.name,
          ", ", dense, ratio > 1.9 && ratio < 2.1 ? "; it looks like the sparse figure, which is twice the dense" : "");
  return {flop_per_s, device.bytes_per_s};
}

}  // namespace nanolm
