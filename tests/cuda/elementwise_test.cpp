// Rung 01: operations on an array as a chain of kernels and as one. Both give the bits of std::fma.
#include <gtest/gtest.h>

#include <limits>

#include "support/cuda_elementwise.h"

namespace nanolm::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void expect_right(const ElementwiseRung& rung, std::int64_t count, int operations, std::size_t x_shift = 0,
                  std::size_t y_shift = 0, bool guarded = true) {
  SCOPED_TRACE(rung.name + ", " + std::to_string(count) + " elements, " + std::to_string(operations) +
               " operations, x and y shifted by " + std::to_string(x_shift) + " and " + std::to_string(y_shift));
  const std::vector<float> x = normal(count);
  ElementwiseCall call(rung, coefficients(operations), x, x_shift, y_shift, guarded);
  call.launch();
  EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x)));
}

TEST(Few, ElementsAreCopiedByTimesOnePlusZero) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {1, 2, 3}) {
      ElementwiseArgs args;
      args.operations = 2;
      args.multiply[0] = args.multiply[1] = 1;
      const std::vector<float> x = normal(count);
      ElementwiseCall call(rung, args, x);
      call.launch();
      EXPECT_TRUE(same_bits(call.result(), x)) << rung.name << ", " << count << " elements";
    }
}

TEST(Few, ElementsThanAFloat4Holds) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {1, 2, 3})
      for (const int operations : {1, 2, 16}) expect_right(rung, count, operations);
}

TEST(Elementwise, OneOperation) {
  for (const ElementwiseRung& rung : elementwise_rungs()) expect_right(rung, 4096, 1);
}

TEST(Elementwise, EveryNumberOfOperationsInTheirOrder) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (int operations = 1; operations <= kMaxOperations; ++operations) expect_right(rung, 1000, operations);
}

TEST(Elementwise, AnyCount) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {1, 2, 3, 4, 5, 31, 33, 127, 129, 1023, 1024, 1025, 4099, 100003})
      expect_right(rung, count, 3);
}

TEST(Elementwise, AnyAlignment) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {3, 1024, 1029})
      for (std::size_t shift = 1; shift < 4; ++shift) {
        expect_right(rung, count, 2, shift, shift);
        expect_right(rung, count, 2, shift, 0);
        expect_right(rung, count, 2, 0, shift);
      }
}

TEST(Elementwise, InPlace) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const int operations : {1, 4})
      for (const std::size_t shift : {0u, 1u}) {
        SCOPED_TRACE(rung.name + ", " + std::to_string(operations) + " operations");
        const std::vector<float> x = normal(1027);
        ElementwiseCall call(rung, coefficients(operations), x, shift);
        call.args.y = call.x();
        call.launch();
        EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x)));
      }
}

TEST(Elementwise, ProductIsNotRoundedBeforeTheSum) {
  // x * x - 1 for x = 1 + 2^-12: fused it keeps 2^-24, the rounded product has lost it.
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    ElementwiseArgs args;
    args.multiply[0] = 1 + 0x1p-12f, args.add[0] = -1;
    ElementwiseCall call(rung, args, std::vector<float>(9, 1 + 0x1p-12f));
    call.launch();
    EXPECT_TRUE(same_bits(call.result(), std::vector<float>(9, 0x1p-11f + 0x1p-24f))) << rung.name;
  }
}

TEST(Elementwise, NaNAndInfinityStayInTheirElement) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    std::vector<float> x = normal(517);
    const std::vector<float> clean = expected_y(coefficients(5), x);
    x[100] = kNaN, x[301] = kInf, x[516] = -kInf;
    ElementwiseCall call(rung, coefficients(5), x);
    call.launch();
    std::vector<float> y = call.result();
    EXPECT_TRUE(std::isnan(y[100]) && y[301] == kInf && y[516] == -kInf) << rung.name;
    y[100] = clean[100], y[301] = clean[301], y[516] = clean[516];
    EXPECT_TRUE(same_bits(y, clean)) << rung.name;
  }
}

TEST(Elementwise, ALaterLaunchOverwritesAnEarlierOne) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    const std::vector<float> x = normal(2050);
    ElementwiseCall call(rung, coefficients(7), x);
    call.launch();
    EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x))) << rung.name;
    call.args.operations = 2;
    for (int i = 0; i < 2; ++i) {
      call.launch();
      EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x))) << rung.name << ", launch " << i + 2;
    }
  }
}

TEST(Elementwise, NothingToDoLeavesNoErrorBehind) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    for (const bool guarded : {true, false}) {  // false: null pointers
      ElementwiseCall call(rung, coefficients(3), {}, 0, 0, guarded);
      call.launch();
      EXPECT_TRUE(call.result().empty());
    }
    expect_right(rung, 5, 2);
  }
}

TEST(Elementwise, RefusesBadCountsAndWritesNothing) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    ElementwiseCall call(rung, coefficients(1), normal(8));
    const auto refused = [&](std::int64_t count, int operations) {
      call.args.count = count, call.args.operations = operations;
      EXPECT_THROW(call.launch(), std::invalid_argument) << rung.name << ", " << count << ", " << operations;
      EXPECT_TRUE(call.untouched());
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    };
    refused(-1, 1);
    refused(8, 0);
    refused(8, -2);
    refused(8, kMaxOperations + 1);
    expect_right(rung, 8, kMaxOperations);
  }
}

TEST(Elementwise, TwoStreamsThatAreNotTheDefault) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    const std::vector<float> x1 = normal(3001), x2 = normal(70);
    ElementwiseCall call1(rung, coefficients(6), x1), call2(rung, coefficients(9), x2);
    CUDA_CHECK(cudaStreamCreateWithFlags(&call1.args.stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamCreateWithFlags(&call2.args.stream, cudaStreamNonBlocking));
    call1.launch();
    call2.launch();
    EXPECT_TRUE(same_bits(call1.result(), expected_y(call1.args, x1))) << rung.name;
    EXPECT_TRUE(same_bits(call2.result(), expected_y(call2.args, x2))) << rung.name;
    CUDA_CHECK(cudaStreamDestroy(call1.args.stream));
    CUDA_CHECK(cudaStreamDestroy(call2.args.stream));
  }
}

// Small arrays for every branch, in allocations of exactly their size: what compute-sanitizer is run with.
TEST(Sanitize, Elementwise) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {0, 1, 7, 64, 1031})
      for (const std::size_t shift : {0u, 1u}) expect_right(rung, count, 3, shift, shift, false);
}

}  // namespace
}  // namespace nanolm::cuda
