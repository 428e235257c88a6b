// What the tests of the emulator share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "emulator/counters.h"
#include "kernels.h"
#include "nanolm/cuda/buffer.h"

namespace nanolm::emulated {

using cuda::DeviceBuffer;
using emulator::Order;
constexpr Order kOrders[] = {Order::kMixed, Order::kAscending, Order::kDescending, Order::kRandom};

// The text of line n of kernels.cu, from 1.
inline std::string source_line(int n) {
  std::ifstream file(NANOLM_KERNELS);
  std::string line;
  for (int i = 0; i < n; ++i) std::getline(file, line);
  return line;
}

}  // namespace nanolm::emulated

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
