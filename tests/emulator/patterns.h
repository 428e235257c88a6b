// One warp's ways to reach for memory, of which the profile's counts are known: tests/emulator/patterns.cu.
#pragma once

namespace nanolm::emulated {

enum class Pattern {
  // Loads of global memory, an element a lane:
  kNeighbours,
  kFromTheSecond,  // neighbours, but not from a sector's beginning
  kEverySecond,
  kEveryEighth,
  kOneElement,
  kFours,     // float4
  kHalf,      // only the lower 16 lanes
  kTwice,     // neighbours, by a loop of two
  kTail,      // a loop that the upper lanes leave sooner
  kDiverged,  // odd lanes skip the first of two iterations, then all meet in a warp function
  kStore,
  kAtomic,
  // Loads of shared memory:
  kSharedNeighbours,
  kSharedEverySecond,
  kSharedColumn,        // of 32 columns
  kSharedPaddedColumn,  // of 33
  kSharedOneElement,
  kSharedFours,        // float4, neighbours
  kSharedFoursColumn,  // float4, 128 bytes apart
  kSharedEights,       // double, neighbours
};
// One block of 32 threads; memory has 1024 floats.
void pattern(Pattern what, float* memory);
void three_barriers(int blocks, float* memory);  // of 64 threads

}  // namespace nanolm::emulated
