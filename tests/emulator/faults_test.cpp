#include "nanolm/todo.h"
#include "support.h"

namespace nanolm::emulated {
namespace {

// What a launch says when its kernel goes wrong; it must name a line of kernels.cu that holds `marker`.
std::string fault(Act what, const std::string& marker, const float* other = nullptr) {
  DeviceBuffer<float> memory(kLanes);
  std::string says;
  try {
    act(what, memory.data(), other);
  } catch (const emulator::Fault& f) {
    says = f.what();
  }
  EXPECT_EQ(cudaGetLastError(), says.empty() ? cudaSuccess : cudaErrorLaunchFailure);
  cudaDeviceReset();
  if (says.empty()) return "nothing";
  const std::string file = "emulator/kernels.cu:";
  EXPECT_EQ(says.rfind(file, 0), 0u) << says;
  EXPECT_NE(source_line(std::atoi(says.c_str() + file.size())).find(marker), std::string::npos) << says;
  return says;
}

TEST(Fault, NamesLineThreadAndAllocation) {
  const std::string says = fault(Act::kBehindTheEnd, "kBehindTheEnd");
  EXPECT_SAYS(says,
              "thread 0, 0, 0 of block 0, 0, 0 writes 4 bytes 8 bytes behind the end of an allocation of device "
              "memory of 192 bytes");
  EXPECT_SAYS(fault(Act::kInFrontOfTheBeginning, "kInFront"), "reads 4 bytes 12 bytes in front of");
}

TEST(Fault, KnowsFreedNullAndHostMemory) {
  float* freed = nullptr;
  CUDA_CHECK(cudaMalloc(&freed, 64));
  CUDA_CHECK(cudaFree(freed));
  EXPECT_SAYS(fault(Act::kFreed, "kFreed", freed), "freed device memory");
  EXPECT_SAYS(fault(Act::kNullPointer, "kNullPointer"), "null pointer");
  const std::vector<float> heap(4);
  EXPECT_SAYS(fault(Act::kHostMemory, "kHostMemory", heap.data()), "host memory");
  const float local = 0;
  EXPECT_SAYS(fault(Act::kHostMemory, "kHostMemory", &local), "host memory");
  const auto* const nowhere = reinterpret_cast<const float*>(std::uintptr_t{1} << 40);
  EXPECT_SAYS(fault(Act::kHostMemory, "kHostMemory", nowhere), "where no memory is: did an offset overflow");
}

TEST(Fault, NamesTheSharedArray) {
  EXPECT_SAYS(fault(Act::kSharedBehindTheEnd, "kSharedBehindTheEnd"),
              "behind the end of the shared array shared of 32");
  EXPECT_SAYS(fault(Act::kSharedDynamicBehindTheEnd, "kSharedDynamic"), "the shared array dynamic of 16 bytes");
  EXPECT_SAYS(fault(Act::kTooMuchStatic, "big[floats]"), "the limit is 49152");
}

TEST(Fault, VectorAccessMustBeAligned) {
  EXPECT_SAYS(fault(Act::kMisalignedFloat4, "kMisalignedFloat4"),
              "writes 16 bytes at an address that is no multiple of 16");
}

TEST(Fault, AtomicsAreAccesses) {
  EXPECT_SAYS(fault(Act::kAtomicBehindTheEnd, "kAtomic"), "writes 4 bytes right behind the end of an allocation");
}

TEST(Fault, ThreadsThatWaitForEachOtherForEver) {
  const std::string two = fault(Act::kTwoBarriers, "kTwoBarriers");
  EXPECT_SAYS(two, "threads 0 to 39 at line");
  EXPECT_SAYS(two, "threads 40 to 47 at line");
  const std::string mixed = fault(Act::kBarrierAndSyncwarp, "kBarrierAndSyncwarp");
  EXPECT_SAYS(mixed, "threads 0 to 15 at line");
  EXPECT_SAYS(mixed, "in __syncwarp");
}

TEST(Fault, WarpFunctionsNeedTheLanesOfTheirMask) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    EXPECT_SAYS(fault(Act::kMaskWithoutTheCaller, "kMaskWithout"), "mask 0x0000ffff, in which it is not named");
    EXPECT_SAYS(fault(Act::kTwoWarpFunctions, "kTwoWarp"), "All lanes of a mask must reach the same call");
    EXPECT_SAYS(fault(Act::kLaneThatExited, "kLaneThat"), "lane 4 reads lane 5, which has exited");
  }
}

TEST(Fault, AfterOneEveryCallFailsUntilReset) {
  DeviceBuffer<float> memory(kLanes);
  EXPECT_THROW(act(Act::kBehindTheEnd, memory.data(), nullptr), emulator::Fault);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 16), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "sticky";
  cudaDeviceReset();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_NO_THROW(act(Act::kNothing, memory.data(), nullptr));
}

TEST(Thread, ExceptionComesOutOfTheLaunch) {
  DeviceBuffer<float> memory(kLanes);
  try {
    act(Act::kThrow, memory.data(), nullptr);
    FAIL() << "nothing was thrown";
  } catch (const NotImplemented& e) {
    EXPECT_EQ(std::string(e.what()).rfind("emulator/kernels.cu:", 0), 0u) << e.what();
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  cudaDeviceReset();
  act(Act::kNothing, memory.data(), nullptr);
}

TEST(HostCode, CannotTouchDeviceMemory) {
  DeviceBuffer<float> memory(4);
  volatile float* p = memory.data();
  EXPECT_DEATH(p[1] = 2, "host code touches device memory");
}

TEST(Thread, StackHasAnEnd) {
  DeviceBuffer<float> out(1);
  deep(out.data(), 20);
  EXPECT_EQ(out.to_host()[0], 21.0f + 20 * 21 / 2);
  EXPECT_DEATH(deep(out.data(), 2000), "do not fit its stack");
}

}  // namespace
}  // namespace nanolm::emulated
