// A call of rung 01: a chain of operations on an array, and what it must give.
#pragma once

#include <gtest/gtest.h>

#include "nanolm/cuda/ladder.h"
#include "support/cuda_device.h"
#include "support/cuda_memory.h"
#include "support/data.h"

namespace nanolm::cuda {

struct ElementwiseRung {
  std::string name;
  Elementwise run;
  bool is_fused;
};
inline std::vector<ElementwiseRung> elementwise_rungs() {
  std::vector<ElementwiseRung> all;
  for (const Rung* rung : ladder()) {
    if (rung->chain) all.push_back({std::string(rung->name) + ", chain", rung->chain, false});
    if (rung->fused) all.push_back({std::string(rung->name) + ", fused", rung->fused, true});
  }
  if (all.empty()) throw std::logic_error("no rung of this program has a chain or its fusion");
  return all;
}

// Coefficients of about 1 and 0.3, all different: their order and number show in the result.
inline ElementwiseArgs coefficients(int operations) {
  ElementwiseArgs args;
  args.operations = operations;
  for (int k = 0; k < kMaxOperations; ++k) {
    args.multiply[k] = 1.21f - 0.0637f * static_cast<float>(k);
    args.add[k] = 0.31f - 0.117f * static_cast<float>(k);
  }
  return args;
}

// One fused multiply-add an operation is one rounding, on any machine: the result is exact to the bit.
inline std::vector<float> expected_y(const ElementwiseArgs& args, std::vector<float> x) {
  for (float& value : x)
    for (int k = 0; k < args.operations; ++k) value = std::fma(value, args.multiply[k], args.add[k]);
  return x;
}

// x and y in device memory, each between guards, moved by some elements off the alignment of a float4.
class ElementwiseCall {
 public:
  ElementwiseCall(const ElementwiseRung& rung, const ElementwiseArgs& coefficients, const std::vector<float>& x,
                  std::size_t x_shift = 0, std::size_t y_shift = 0, bool guarded = true)
      : args(coefficients),
        rung_(rung),
        x_(DeviceBytes::input({"x", sizeof(float), guarded, x_shift}, bytes_of(x))),
        y_(DeviceBytes::output({"y", sizeof(float), guarded, y_shift}, x.size() * sizeof(float))) {
    args.x = x_.as<float>(), args.y = y_.as<float>(), args.count = static_cast<std::int64_t>(x.size());
  }
  void launch() {
    try {
      rung_.run(args);
    } catch (const CudaError& error) {
      throw CudaError(error.code(), rung_.name + ": " + error.what());
    }
  }
  // Waits for the device. In place, x is the output.
  std::vector<float> result() {
    const bool in_place = args.y == args.x;
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_TRUE(no_error_left());
    EXPECT_TRUE(y_.intact());
    if (in_place)
      EXPECT_TRUE(x_.guards_intact());
    else
      EXPECT_TRUE(x_.intact());
    return values_of<float>((in_place ? x_ : y_).to_host());
  }
  bool untouched() const { return y_.untouched() && x_.intact(); }
  float* x() { return x_.as<float>(); }

  ElementwiseArgs args;

 private:
  ElementwiseRung rung_;
  DeviceBytes x_, y_;
};

}  // namespace nanolm::cuda
