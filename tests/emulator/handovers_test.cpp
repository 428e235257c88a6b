#include "support.h"

namespace nanolm::emulated {
namespace {

// What the checker says of four blocks of 64 threads that each write a 1 and of which the last adds up all; "" where it
// finds nothing, and then the sum has to be 256.
std::string said(Handover what, Order order) {
  emulator::set_checked(true);
  emulator::set_order(order);
  DeviceBuffer<float> values(std::vector<float>(256, 0)), sum(1);
  DeviceBuffer<int> done(std::vector<int>(4, 0));
  std::string says;
  try {
    hand_over(what, values.data(), done.data(), sum.data());
    EXPECT_EQ(sum.to_host()[0], 256.0f) << static_cast<int>(what);
  } catch (const emulator::Fault& f) {
    says = f.what();
  }
  cudaDeviceReset();
  emulator::set_checked(false);
  return says;
}

TEST(Handover, ByFenceAndAtomicIsNoRace) {
  for (const Order order : kOrders)
    for (const Handover what : {Handover::kAllFence, Handover::kOneFences, Handover::kTree, Handover::kThreads,
                                Handover::kWarps, Handover::kWarpsOfABlock})
      EXPECT_EQ(said(what, order), "") << static_cast<int>(what);
}

TEST(Handover, NeedsTheFenceBehindAllThatIsHandedOver) {
  for (const Order order : kOrders)
    for (const Handover what : {Handover::kNoFence, Handover::kFenceInFront, Handover::kBlockFence,
                                Handover::kNoBarrier, Handover::kWritesBehindTheFence}) {
      const std::string says = said(what, order);
      EXPECT_SAYS(says, "Nothing orders two blocks of one launch") << static_cast<int>(what);
      EXPECT_SAYS(says, "__threadfence()");
      EXPECT_EQ(says.find("generated/"), std::string::npos) << says;
    }
  for (const Order order : kOrders) EXPECT_SAYS(said(Handover::kWarpsNoFence, order), "race on an allocation");
}

TEST(Handover, NeedsAnAtomicOnTheSameAddress) {
  for (const Order order : kOrders)
    EXPECT_SAYS(said(Handover::kOtherAddress, order), "Nothing orders two blocks of one launch");
}

TEST(Handover, WithinABlockNeedsAFenceToo) {
  for (const Order order : kOrders)
    EXPECT_SAYS(said(Handover::kWarpsOfABlockNoFence, order), "race on the shared array values_smem");
}

}  // namespace
}  // namespace nanolm::emulated
