#include "emulator/profile.h"

#include "patterns.h"
#include "support.h"

namespace nanolm::emulated {
namespace {

emulator::KernelProfile profiled(Pattern what) {
  DeviceBuffer<float> memory(std::vector<float>(1024));
  emulator::name_array(memory.data(), "memory", sizeof(float));
  emulator::set_profiled(true);
  pattern(what, memory.data());
  const std::vector<emulator::KernelProfile> kernels = emulator::profile();
  emulator::set_profiled(false);
  EXPECT_EQ(kernels.size(), 1u);
  return kernels.at(0);
}
struct Traffic {
  std::int64_t requests, bytes, sectors, compulsory;
};
Traffic of(const emulator::GlobalTraffic& t) { return {t.requests, t.bytes, t.sectors, t.compulsory}; }
void expect_loads(Pattern what, const Traffic& expected) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    const emulator::KernelProfile kernel = profiled(what);
    ASSERT_EQ(kernel.global.size(), 1u);
    EXPECT_EQ(kernel.global[0].name, "memory");
    const Traffic counted = of(kernel.global[0].loads);
    EXPECT_EQ(counted.requests, expected.requests);
    EXPECT_EQ(counted.bytes, expected.bytes);
    EXPECT_EQ(counted.sectors, expected.sectors);
    EXPECT_EQ(counted.compulsory, expected.compulsory);
    EXPECT_EQ(kernel.global[0].stores.requests, 0);
  }
}
void expect_shared(Pattern what, std::int64_t bytes, std::int64_t passes, std::int64_t conflicts) {
  const emulator::KernelProfile kernel = profiled(what);
  ASSERT_EQ(kernel.shared.size(), 1u);
  EXPECT_EQ(kernel.shared[0].name, "tile");
  const emulator::SharedTraffic& loads = kernel.shared[0].loads;
  EXPECT_EQ(loads.requests, 1);
  EXPECT_EQ(loads.bytes, bytes);
  EXPECT_EQ(loads.passes, passes);
  EXPECT_EQ(loads.conflicts, conflicts);
}

TEST(Profile, SectorsOfAWarpAccess) {
  expect_loads(Pattern::kNeighbours, {1, 128, 4, 128});
  expect_loads(Pattern::kFromTheSecond, {1, 128, 5, 128});
  expect_loads(Pattern::kEverySecond, {1, 128, 8, 128});
  expect_loads(Pattern::kEveryEighth, {1, 128, 32, 128});
  expect_loads(Pattern::kOneElement, {1, 128, 1, 4});
  expect_loads(Pattern::kFours, {1, 512, 16, 512});
  expect_loads(Pattern::kHalf, {1, 64, 2, 64});
}

TEST(Profile, VisitsOfOnePlaceAreAccessesOfTheirOwn) {
  expect_loads(Pattern::kTwice, {2, 256, 8, 256});
  expect_loads(Pattern::kTail, {2, 160, 5, 160});
  expect_loads(Pattern::kDiverged, {2, 192, 8, 192});
}

TEST(Profile, StoresAndAtomicsApart) {
  const auto stores = profiled(Pattern::kStore).global.at(0);
  EXPECT_EQ(stores.stores.sectors, 8);
  EXPECT_EQ(stores.stores.compulsory, 128);
  EXPECT_EQ(stores.loads.requests, 0);
  const auto atomics = profiled(Pattern::kAtomic).global.at(0);
  EXPECT_EQ(atomics.atomics.requests, 1);
  EXPECT_EQ(atomics.atomics.sectors, 1);
  EXPECT_EQ(atomics.loads.compulsory, 8);
  EXPECT_EQ(atomics.stores.compulsory, 8);
}

TEST(Profile, BankConflicts) {
  expect_shared(Pattern::kSharedNeighbours, 128, 1, 0);
  expect_shared(Pattern::kSharedEverySecond, 128, 2, 1);
  expect_shared(Pattern::kSharedColumn, 128, 32, 31);
  expect_shared(Pattern::kSharedPaddedColumn, 128, 1, 0);
  expect_shared(Pattern::kSharedOneElement, 128, 1, 0);
  expect_shared(Pattern::kSharedFours, 512, 4, 0);
  expect_shared(Pattern::kSharedFoursColumn, 512, 32, 28);
  expect_shared(Pattern::kSharedEights, 256, 2, 0);
}

TEST(Profile, NamesTheLinesThatWaste) {
  const std::vector<emulator::LineProfile> strided = profiled(Pattern::kEveryEighth).lines;
  ASSERT_EQ(strided.size(), 1u);
  EXPECT_SAYS(strided[0].place, "emulator/patterns.cu:");
  EXPECT_EQ(strided[0].array, "memory");
  EXPECT_EQ(strided[0].cost, 32);
  EXPECT_EQ(strided[0].least, 4);
  const std::vector<emulator::LineProfile> column = profiled(Pattern::kSharedColumn).lines;
  ASSERT_EQ(column.size(), 1u);
  EXPECT_TRUE(column[0].is_shared);
  EXPECT_EQ(column[0].cost, 32);
  EXPECT_EQ(column[0].least, 1);
  EXPECT_TRUE(profiled(Pattern::kNeighbours).lines.empty());
}

TEST(Profile, CountsLaunchesBlocksAndBarriers) {
  DeviceBuffer<float> memory(std::vector<float>(64));
  emulator::set_profiled(true);
  three_barriers(5, memory.data());
  three_barriers(2, memory.data());
  pattern(Pattern::kNeighbours, memory.data());
  const std::vector<emulator::KernelProfile> kernels = emulator::profile();
  emulator::set_profiled(false);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "barrier_kernel");
  EXPECT_EQ(kernels[0].launches, 2);
  EXPECT_EQ(kernels[0].blocks, 7);
  EXPECT_EQ(kernels[0].threads, 7 * 64);
  EXPECT_EQ(kernels[0].barriers, 7 * 3);
  EXPECT_EQ(kernels[0].global.at(0).loads.requests, 7 * 3 * 2);
  EXPECT_EQ(kernels[0].global.at(0).loads.compulsory, 2 * 256) << "each byte once a launch";
  EXPECT_EQ(kernels[1].name, "pattern_kernel");
  EXPECT_TRUE(emulator::profile().empty()) << "counting has ended";
}

TEST(Profile, OfALargeCopyIsThatOfItsVectors) {
  DeviceBuffer<float> memory(std::vector<float>(512, 1));
  emulator::set_profiled(true);
  illegal(Illegal::kLargeMemcpy, memory.data());
  const std::vector<emulator::KernelProfile> kernels = emulator::profile();
  emulator::set_profiled(false);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].global.at(0).loads.bytes, 2 * 256) << "by each of two blocks";
  EXPECT_EQ(kernels[0].global.at(0).loads.requests, 2 * 16);
}

}  // namespace
}  // namespace nanolm::emulated
