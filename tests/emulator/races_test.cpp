#include <unistd.h>

#include "support.h"

namespace nanolm::emulated {
namespace {

// What a race says; "" where there is none.
std::string found_race(Race what) {
  emulator::set_checked(true);
  DeviceBuffer<float> memory(256);
  CUDA_CHECK(cudaMemset(memory.data(), 0, 512));
  emulator::name_array(memory.data(), "memory", sizeof(float));
  std::string says;
  try {
    race(what, memory.data());
  } catch (const emulator::Fault& f) {
    says = f.what();
  }
  cudaDeviceReset();
  emulator::set_checked(false);
  return says;
}
void expect_race(Race what, const std::string& first, const std::string& then, const std::string& advice) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    const std::string says = found_race(what);
    EXPECT_SAYS(says, advice);
    std::string lines;  // the two places, in whichever order they were met
    for (std::size_t at = says.find("kernels.cu:"); at != std::string::npos; at = says.find("kernels.cu:", at + 1))
      lines += source_line(std::atoi(says.c_str() + at + 11)) + "\n";
    EXPECT_SAYS(lines, first);
    EXPECT_SAYS(lines, then);
  }
}

TEST(Race, BetweenThreadsOfABlockNamesBothLinesAndTheArray) {
  expect_race(Race::kWriteThenRead, "kWriteThenRead, first", "kWriteThenRead, then", "the shared array tile");
  expect_race(Race::kReadThenWrite, "kReadThenWrite, first", "kReadThenWrite, then", "Put __syncthreads() between");
  expect_race(Race::kTwoWriters, "kTwoWriters", "kTwoWriters", "race on the shared array tile");
  expect_race(Race::kTwoWriters, "kTwoWriters", "kTwoWriters", "Let one of them write it, or put __syncthreads()");
}

TEST(Race, NamesTheElementAndTheThreads) {
  EXPECT_SAYS(found_race(Race::kOneElement), "race on the shared array square, element [3][5]: thread ");
  emulator::set_order(Order::kAscending);
  EXPECT_SAYS(found_race(Race::kOneElement), "thread 37, 0, 0 writes here what thread 5, 0, 0 writes at ");
}

TEST(Race, WithinAWarpNeedsSyncwarpAndAShuffleIsNone) {
  expect_race(Race::kInOneWarp, "tile[i] = 1", "in one warp", "no barrier between");
  expect_race(Race::kShuffleBetween, "tile[i] = 1", "in one warp", "no barrier between");
  EXPECT_EQ(found_race(Race::kSyncwarpBetween), "");
}

TEST(Race, BetweenTwoBlocks) {
  expect_race(Race::kTwoBlocks, "kTwoBlocks", "kTwoBlocks", "Nothing orders two blocks of one launch");
  EXPECT_SAYS(found_race(Race::kTwoBlocks), "race on memory, element [");
  EXPECT_SAYS(found_race(Race::kTwoBlocks), " of block 1, 0, 0");
  EXPECT_EQ(found_race(Race::kBlocksApart), "");
}

TEST(Race, NoneWhereABarrierOrAtomicsOrderOrBytesDiffer) {
  for (const Order order : kOrders) {
    emulator::set_order(order);
    for (const Race what : {Race::kBarrierBetween, Race::kAtomics, Race::kNeighbours}) EXPECT_EQ(found_race(what), "");
  }
}

TEST(Findings, AllThatABlockDoesWrongIsWrittenDown) {
  char file[] = "/tmp/findings-XXXXXX";
  close(mkstemp(file));
  setenv("NANOLM_EMULATOR_FINDINGS", file, 1);
  EXPECT_SAYS(found_race(Race::kTwoRaces), "race on the shared array ");
  unsetenv("NANOLM_EMULATOR_FINDINGS");
  std::ifstream written(file);
  std::string all, line;
  int lines = 0;
  for (; std::getline(written, line); ++lines) all += line + "\n";
  unlink(file);
  EXPECT_EQ(lines, 2) << all;
  for (const char* part : {"{\"kind\": \"race\", \"kernel\": \"race_kernel\", \"array\": \"tile\"",
                           "\"array\": \"square\"", "\"places\": [\"emulator/kernels.cu:"})
    EXPECT_SAYS(all, part);
}

TEST(Unwritten, MemoryThatIsReadIsNamed) {
  expect_race(Race::kUnwrittenShared, "kUnwrittenShared", "", "which nobody wrote");
  expect_race(Race::kUnwrittenGlobal, "kUnwrittenGlobal", "", "which nobody wrote");
  EXPECT_SAYS(found_race(Race::kUnwrittenShared), "reads the shared array tile, element [");
  EXPECT_SAYS(found_race(Race::kUnwrittenGlobal), "reads memory, element [");
}

}  // namespace
}  // namespace nanolm::emulated
