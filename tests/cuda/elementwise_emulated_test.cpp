// What only the emulator sees of rung 01: launches, bytes of global memory, and whether the order of threads matters.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_elementwise.h"
#include "support/cuda_profile.h"

namespace nanolm::cuda {
namespace {

// The number of kernels, whatever they do.
void expect_launches(bool fused) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    if (rung.is_fused == fused)
      for (const int operations : {1, 3, 16}) {
        ElementwiseCall call(rung, coefficients(operations), normal(1027));
        emulator::reset_counters();
        call.launch();
        EXPECT_EQ(emulator::counters().launches, fused ? 1 : operations)
            << "kernels that " << rung.name << " launches for " << operations << " operations";
      }
}

TEST(Launch, FusedIsOneKernel) { expect_launches(true); }

TEST(Launch, ChainIsAKernelForEachOperation) { expect_launches(false); }

void expect_traffic(const ElementwiseRung& rung, std::int64_t count, int operations, std::size_t shift = 0) {
  SCOPED_TRACE(rung.name + ", " + std::to_string(count) + " elements, " + std::to_string(operations) + " operations");
  const std::vector<float> x = normal(count);
  ElementwiseCall call(rung, coefficients(operations), x, shift, shift);
  emulator::reset_counters();
  call.launch();
  const emulator::Counters counted = emulator::counters();
  EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x)));
  const std::int64_t kernels = rung.is_fused ? 1 : operations;
  EXPECT_EQ(counted.launches, kernels);
  EXPECT_EQ(counted.load_bytes, kernels * 4 * count);
  EXPECT_EQ(counted.store_bytes, kernels * 4 * count);
}

TEST(Traffic, ChainMoves8BytesAnElementForEachOperation) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    if (!rung.is_fused)
      for (const int operations : {1, 2, 5, 16}) expect_traffic(rung, 1027, operations);
}

TEST(Traffic, FusedMoves8BytesAnElementHoweverManyOperations) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    if (rung.is_fused)
      for (const int operations : {1, 2, 5, 16}) expect_traffic(rung, 1027, operations);
}

TEST(Traffic, IsTheSameForAnyCountAndAlignment) {
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const std::int64_t count : {1, 3, 4, 1021, 4096})
      for (const std::size_t shift : {0u, 1u}) expect_traffic(rung, count, 3, shift);
}

TEST(Traffic, WorkedExampleOfTheNote) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    SCOPED_TRACE(rung.name);
    ElementwiseArgs args;
    args.operations = 3;
    args.multiply[0] = 2, args.multiply[1] = 0.5f, args.multiply[2] = 4;
    args.add[0] = 1, args.add[1] = -3;
    ElementwiseCall call(rung, args, std::vector<float>(1000, 3));
    emulator::reset_counters();
    call.launch();
    const emulator::Counters counted = emulator::counters();
    EXPECT_TRUE(same_bits(call.result(), std::vector<float>(1000, 2)));
    EXPECT_EQ(counted.load_bytes, rung.is_fused ? 4000 : 12000);
    EXPECT_EQ(counted.store_bytes, rung.is_fused ? 4000 : 12000);
  }
}

TEST(Sectors, AWarpLoadsNeighbours) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    SCOPED_TRACE(rung.name);
    ElementwiseCall call(rung, coefficients(2), normal(8192));
    expect_neighbours(profiled([&] { call.launch(); }), 1.1);
  }
}

TEST(Traffic, NothingToDoLaunchesNothing) {
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    ElementwiseCall call(rung, coefficients(3), {});
    emulator::reset_counters();
    call.launch();
    EXPECT_EQ(emulator::counters().launches, 0) << rung.name;
    expect_traffic(rung, 1, 1);
  }
}

TEST(Order, OfBlocksWarpsAndLanesDoesNotChangeABit) {
  using emulator::Order;
  for (const ElementwiseRung& rung : elementwise_rungs())
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kRandom, Order::kMixed}) {
      emulator::set_order(order);
      const std::vector<float> x = normal(3001);
      ElementwiseCall call(rung, coefficients(4), x, 1);
      call.launch();
      EXPECT_TRUE(same_bits(call.result(), expected_y(call.args, x))) << rung.name;
    }
}

// Of the grid's blocks only those at both ends run, on arrays of which only their ends exist.
TEST(Offsets, OfMoreThan2To31Elements) {
  const std::int64_t count = (std::int64_t{1} << 31) + 5, end = 1 << 16;
  for (const ElementwiseRung& rung : elementwise_rungs()) {
    const emulator::BlockSample sample(2);
    DeviceBuffer<float> x(count), y(count);
    const std::vector<float> values = normal(end), unwritten = values_of<float>(Bytes(4 * end, 0xFF));
    for (const std::int64_t first : {std::int64_t{0}, count - end}) {
      CUDA_CHECK(cudaMemcpy(x.data() + first, values.data(), 4 * end, cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaMemcpy(y.data() + first, unwritten.data(), 4 * end, cudaMemcpyHostToDevice));
    }
    ElementwiseArgs args = coefficients(2);
    args.x = x.data(), args.y = y.data(), args.count = count;
    emulator::reset_counters();
    rung.run(args);
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<float> actual(end), expected = expected_y(args, values);
    CUDA_CHECK(cudaMemcpy(actual.data(), y.data() + count - end, 4 * end, cudaMemcpyDeviceToHost));
    // Blocks that go on to further elements load more, and need not be those that reach the last ones.
    const bool strides = emulator::counters().load_bytes > 1 << 24;
    for (std::size_t i = 0; i < actual.size(); ++i)
      if (std::isnan(actual[i]) && (strides || i + 8 < actual.size())) actual[i] = expected[i] = 0;
    EXPECT_TRUE(same_bits(actual, expected)) << rung.name << ", the last " << end << " of 2^31 + 5 elements";
  }
}

}  // namespace
}  // namespace nanolm::cuda
