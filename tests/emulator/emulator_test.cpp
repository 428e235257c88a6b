#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <numeric>

#include "nanolm/cuda/timer.h"
#include "support.h"

namespace nanolm::emulated {
namespace {

TEST(Launch, IndicesOfThreeDimensions) {
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  DeviceBuffer<int> out(24 * 30);
  for (const Order order : kOrders) {
    emulator::set_order(order);
    CUDA_CHECK(cudaMemset(out.data(), 0xff, out.bytes()));
    indices(out.data(), grid, block);
    std::vector<int> expected(24 * 30);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(out.to_host(), expected);
  }
}

TEST(Launch, OfASampleRunsTheBlocksAtBothEnds) {
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  for (const std::uint64_t sample : {1, 5, 12, 100}) {
    const emulator::BlockSample sampled(sample);
    for (const Order order : kOrders) {
      emulator::set_order(order);
      DeviceBuffer<int> out(24 * 30);
      indices(out.data(), grid, block);
      std::vector<int> expected(24 * 30);
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (i / 30 < sample || i / 30 + sample >= 24) expected[i] = static_cast<int>(i);
      EXPECT_EQ(out.to_host(), expected) << sample;  // what did not run is zeros
    }
  }
  DeviceBuffer<int> out(30);
  EXPECT_EQ(out.to_host(), std::vector<int>(30, -1)) << "filled again";
}

TEST(Launch, BadConfigurationsRunNothingAndAreToldOnce) {
  const auto told = [](dim3 grid, dim3 block) {
    emulator::reset_counters();
    bad_launch(grid, block);
    const cudaError_t error = cudaGetLastError();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return error;
  };
  EXPECT_EQ(told(1, 32), cudaSuccess);
  EXPECT_EQ(told(0, 32), cudaErrorInvalidConfiguration);
  EXPECT_SAYS(std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)), "a grid of 0 x 1 x 1 blocks");
  EXPECT_EQ(told(1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(1, dim3(32, 33)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(dim3(1, 1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(told(dim3(1, 65535), 1), cudaSuccess);
}

TEST(Launch, MoreThan48KiBOfSharedMemoryMustBeAskedFor) {
  too_much_dynamic(49152, false);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  too_much_dynamic(49153, false);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_SAYS(std::string(cudaGetErrorString(cudaErrorInvalidValue)), "49153 bytes of dynamic shared memory");
  too_much_dynamic(232448, true);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  too_much_dynamic(232449, true);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(Barrier, OrdersSharedMemory) {
  const int n = 1000;
  std::vector<float> in(n), expected(n);
  std::iota(in.begin(), in.end(), 0.0f);
  for (int i = 0; i < n; ++i) {
    const int from = i / 128 * 128 + 127 - i % 128;
    expected[static_cast<std::size_t>(i)] = from < n ? static_cast<float>(from) : 0;
  }
  const DeviceBuffer<float> x(in);
  for (const Order order : kOrders) {
    emulator::set_order(order);
    DeviceBuffer<float> y(n);
    reverse(x.data(), y.data(), n);
    EXPECT_EQ(y.to_host(), expected);
  }
}

TEST(Barrier, MissingOneShowsInSomeOrder) {
  bool right = true;
  for (const Order order : {Order::kAscending, Order::kDescending, Order::kRandom}) {
    emulator::set_order(order);
    DeviceBuffer<float> out(96);
    first_thread_writes(out.data(), true);
    EXPECT_EQ(out.to_host(), std::vector<float>(96, 7));
    first_thread_writes(out.data(), false);
    right = right && out.to_host() == std::vector<float>(96, 7);
  }
  EXPECT_FALSE(right);
}

TEST(Barrier, ThreadsThatExitedCountAsArrived) {
  DeviceBuffer<float> memory(kLanes);
  act(Act::kExitBeforeBarrier, memory.data(), nullptr);
  EXPECT_EQ(memory.to_host()[31], 1.0f);
}

TEST(Warp, ShufflesVotesAndReductions) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    DeviceBuffer<int> out(256);
    warp_functions(out.data());
    const std::vector<int> got = out.to_host();
    for (int i = 0; i < 32; ++i) {
      const auto row = [&](int r) { return got[static_cast<std::size_t>(32 * r + i)]; };
      EXPECT_EQ(row(0), 3);
      EXPECT_EQ(row(1), i / 8 * 8 + 1);
      EXPECT_EQ(row(2), i < 2 ? i : i - 2);
      EXPECT_EQ(row(3), i % 16 < 14 ? i + 2 : i);
      EXPECT_EQ(row(4), i ^ 5);
      EXPECT_EQ(row(5), i ^ 1);
      EXPECT_EQ(row(6), 2 * (i < 31 ? i + 1 : i) + 1);
      EXPECT_EQ(row(7), 31 * 32 / 2);
    }
    DeviceBuffer<unsigned> said(6);
    votes(said.data());
    EXPECT_EQ(said.to_host(), (std::vector<unsigned>{32, 1, 0, 0xaaaaaaaa, 1, 0}));
  }
}

TEST(Atomics, AddFromManyBlocks) {
  const std::vector<float> ones(10000, 1.0f);
  const DeviceBuffer<float> in(ones);
  DeviceBuffer<float> total(std::vector<float>{0});
  sums(in.data(), total.data(), 10000);
  EXPECT_EQ(total.to_host()[0], 10000.0f);
}

TEST(SharedMemory, IsUnwrittenInEachBlock) {
  DeviceBuffer<float> out(64);
  unwritten(out.data());
  for (const float x : out.to_host()) EXPECT_TRUE(std::isnan(x));
}

TEST(SharedMemory, LiesBelow4GiBStaticBeforeDynamicWithGaps) {
  DeviceBuffer<std::uint64_t> out(3);
  shared_layout(out.data());
  const std::vector<std::uint64_t> at = out.to_host();
  EXPECT_LT(at[2], std::uint64_t{1} << 32);
  EXPECT_GE(at[1], at[0] + 5 + 123);
  EXPECT_GT(at[2], at[1]);
  for (const std::uint64_t address : at) EXPECT_EQ(address % 128, 0u);
}

TEST(DeviceMemory, StartsAsNaNAlignedTo256AndNoMore) {
  DeviceBuffer<float> memory(100);
  for (const float x : memory.to_host()) EXPECT_TRUE(std::isnan(x));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 512, 256u);
}

TEST(DeviceMemory, CopiesCheckSpaceBoundsAndLifetime) {
  DeviceBuffer<float> memory(4);
  std::vector<float> host(8);
  EXPECT_EQ(cudaMemcpy(memory.data(), host.data(), 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data() + 4, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), memory.data(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), memory.data(), 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory.data() + 1, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  void* huge = nullptr;
  EXPECT_EQ(cudaMalloc(&huge, std::size_t{1} << 40), cudaErrorMemoryAllocation);
  cudaGetLastError();
}

TEST(Counters, CountWhatThreadsAskFor) {
  DeviceBuffer<float4> in(8), out(8);
  emulator::reset_counters();
  copies_of_float4(in.data(), out.data());
  const emulator::Counters c = emulator::counters();
  EXPECT_EQ(c.launches, 1);
  EXPECT_EQ(c.load_bytes, 8 * 16);
  EXPECT_EQ(c.store_bytes, 8 * 16);
}

TEST(AsyncCopies, LandInTheWaitAndNotBefore) {
  std::vector<float> in(128), expected(128);
  std::iota(in.begin(), in.end(), 1.0f);
  expected = in;
  for (std::size_t i = 64 + 32; i < 128; i += 4) expected[i + 2] = expected[i + 3] = 0;
  const DeviceBuffer<float> x(in);
  DeviceBuffer<float> y(128);
  async_copies(x.data(), y.data(), true);
  EXPECT_EQ(y.to_host(), expected);
  async_copies(x.data(), y.data(), false);
  for (const float f : y.to_host()) EXPECT_TRUE(std::isnan(f));
}

TEST(Constants, CanBeRead) {
  DeviceBuffer<float> out(4);
  constants(out.data());
  EXPECT_EQ(out.to_host(), (std::vector<float>{2, 3, 5, 7}));
}

TEST(StreamsAndEvents, AreInOrder) {
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    cuda::GpuTimer timer(stream);
    timer.start();
    EXPECT_GE(timer.stop_ms(), 0.0f);
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  float ms = 0;
  cudaEvent_t never = nullptr;
  CUDA_CHECK(cudaEventCreate(&never));
  EXPECT_EQ(cudaEventElapsedTime(&ms, never, never), cudaErrorInvalidResourceHandle);
  cudaEventDestroy(never);
  cudaGetLastError();
}

// Against the definition: the nearest of all finite values, ties to the one with an even last bit.
TEST(NarrowFloats, RoundToNearestEven) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float b = emulator::from_bf16(bits), h = emulator::from_half(bits);
    EXPECT_TRUE(std::isnan(b) || emulator::bf16_bits(b) == bits) << b;
    EXPECT_TRUE(std::isnan(h) || emulator::half_bits(h) == bits) << h;
    if (i % 0x8000 >= 0x7bff || !std::isfinite(h)) continue;
    const float next = emulator::from_half(static_cast<std::uint16_t>(i + 1)), middle = (h + next) / 2;
    EXPECT_EQ(emulator::half_bits(middle), i % 2 ? i + 1 : i) << h;
    EXPECT_EQ(emulator::half_bits(std::nextafter(middle, h)), i);
    EXPECT_EQ(emulator::half_bits(std::nextafter(middle, next)), i + 1);
  }
  EXPECT_EQ(emulator::from_half(0x3c00), 1.0f);
  EXPECT_EQ(emulator::from_half(1), 0x1p-24f);
  EXPECT_EQ(emulator::half_bits(65519.0f), 0x7bff);
  EXPECT_EQ(emulator::half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(emulator::bf16_bits(1.00390625f), 0x3f80) << "a tie, to even";
  EXPECT_EQ(emulator::bf16_bits(1.01171875f), 0x3f82) << "a tie, to even";
  EXPECT_EQ(emulator::bf16_bits(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(emulator::from_bf16(emulator::bf16_bits(NAN))));
}

}  // namespace
}  // namespace nanolm::emulated
