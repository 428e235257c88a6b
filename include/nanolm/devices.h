// Accelerators and their datasheet rates: the roofs of lesson 01. Given.
//
// Rates are decimal (1 TFLOP/s = 1e12 FLOP/s, 1 GB = 1e9 byte) and peaks are dense: half of what a datasheet prints
// "with sparsity". A multiply-add counts as 2 FLOP. peak = SMs * FLOP per clock and SM * clock, which a test
// recomputes.
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanolm/require.h"

namespace nanolm {

// kFp32 runs on the vector units, the others on tensor (matrix) units. fp16 has bf16's rates, with fp32 accumulators.
enum class Format { kFp32, kTf32, kBf16, kFp8, kInt8 };

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
  double memory_bytes;       // nominal
  int sms;                   // streaming multiprocessors; compute units on AMD
  double register_bytes_sm;  // register file of one SM
  double sram_bytes_sm;      // shared memory that one SM can give
  double l2_bytes;
  std::string_view source;
  std::string_view checked;  // date
};

inline std::span<const Device> devices() {
  using enum Format;
  constexpr double kKB = 1024;  // on-chip sizes are binary in every datasheet
  static const std::vector<Device> table{};
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
