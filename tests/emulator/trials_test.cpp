#include "support.h"

namespace nanolm::emulated {
namespace {

// What the checker says of a launch on 256 floats; "" for nothing.
template <class Run>
std::string said(Run run) {
  emulator::set_checked(true);
  DeviceBuffer<float> memory(std::vector<float>(256, 1));
  std::string says;
  try {
    run(memory.data());
  } catch (const emulator::Fault& f) {
    says = f.what();
  }
  cudaDeviceReset();
  emulator::set_checked(false);
  return says;
}

TEST(Trial, WhatIsLegalIsNotReported) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    for (int what = 0; what < static_cast<int>(Legal::kCount); ++what)
      EXPECT_EQ(said([&](float* memory) { legal(static_cast<Legal>(what), memory); }), "") << "Legal number " << what;
  }
}

TEST(Trial, KernelsAndFillsOfOneStreamAreInOrder) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    EXPECT_EQ(said([](float* memory) {
                for (int round = 0; round < 3; ++round) {
                  legal(Legal::kInPlace, memory);
                  legal(Legal::kTwelveBytes, memory);
                  CUDA_CHECK(cudaMemsetAsync(memory, round, 512));
                  legal(Legal::kBytesOfOneWord, memory);
                }
              }),
              "");
  }
}

TEST(Trial, WhatIsARaceInSomeOrderIsReported) {
  for (int what = 0; what < static_cast<int>(Illegal::kCount); ++what) {
    int reported = 0;
    for (const Order order : kOrders) {
      emulator::set_order(order);
      reported += !said([&](float* memory) { illegal(static_cast<Illegal>(what), memory); }).empty();
    }
    EXPECT_GE(reported, 1) << "Illegal number " << what;
  }
}

}  // namespace
}  // namespace nanolm::emulated
