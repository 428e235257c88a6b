// Launches of tests/emulator/kernels.cu, which the tests of the emulator call.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace nanolm::emulated {

// One way each to go wrong, or to do what looks wrong and is not.
enum class Act {
  kNothing,
  kBehindTheEnd,
  kInFrontOfTheBeginning,
  kFreed,
  kNullPointer,
  kHostMemory,
  kSharedBehindTheEnd,
  kSharedDynamicBehindTheEnd,
  kMisalignedFloat4,
  kTwoBarriers,
  kBarrierAndSyncwarp,
  kMaskWithoutTheCaller,
  kTwoWarpFunctions,
  kLaneThatExited,
  kAtomicBehindTheEnd,
  kTooMuchStatic,
  kExitBeforeBarrier,
  kThrow,
};
constexpr int kLanes = 48;                              // a warp and a half
void act(Act what, float* memory, const float* other);  // memory has kLanes floats; other is what the name says

void indices(int* out, dim3 grid, dim3 block);  // linear index of each thread, written by its coordinates
void reverse(const float* in, float* out, int n);
void warp_functions(int* out);  // 8 rows of 32: see the kernel
void votes(unsigned* out);      // count, and, or of a block of 96; ballot, any, all of its first warp
void sums(const float* in, float* by_atomics, int n);
// Races, and what looks like one.
enum class Race {
  kWriteThenRead,
  kReadThenWrite,
  kTwoWriters,
  kOneElement,  // square[3][5]
  kTwoRaces,
  kShuffleBetween,
  kInOneWarp,
  kTwoBlocks,
  kUnwrittenShared,
  kUnwrittenGlobal,
  // None of these is one:
  kBarrierBetween,
  kSyncwarpBetween,
  kAtomics,
  kNeighbours,
  kBlocksApart,
};
void race(Race what, float* memory);  // memory has 256 floats, of which the first 128 are written

// Ways to copy a vector.
enum class Copy {
  kAssignment,
  kConstruction,
  kInitialisation,
  kZeroThenAssignment,
  kReturnedByValue,
  kPassedByValue,
  kPassedOn,
  kElementToElement,
  kReinterpreted,
  kReadOnly,
  kConditional,
  kByReference,
  kMemberOfAStruct,
  kThroughAStruct,
  kThroughLocalArray,
  kStruct,
  kMemcpy,
  kStdMemcpy,
  kMemcpyOfTwo,
  kLambda,
  kMakeAndMembers,
};
template <class T>
void copy(Copy how, T* memory);  // 4 vectors

// What the checker must let pass, and what it must not: tests/emulator/trial_kernels.cu.
enum class Legal {
  kTileReusedInALoop,
  kEarlyReturn,
  kCountOrders,
  kAtomicsThenRead,
  kInPlace,
  kOwnWrites,
  kBytesOfOneWord,
  kHalvesOfOneWord,
  kVolatile,
  kUnion,
  kTwelveBytes,
  kMemcpy,
  kPadding,
  kAsyncTwoBuffers,
  kSharedReadByAll,
  kCount
};
enum class Illegal {
  kAsyncIntoWhatIsRead,
  kAsyncReadByOthers,
  kHalfBesideAnother,
  kReaderOfAnotherWarp,
  kMemcpy,
  kLargeMemcpy,
  kCount
};
void legal(Legal what, float* memory);  // 256 floats, all written
void illegal(Illegal what, float* memory);

// Threads that meet by atomics: the last one to count itself in `done` adds up what all wrote.
enum class Handover {
  kAllFence,
  kOneFences,
  kTree,
  kThreads,
  kWarps,
  kWarpsOfABlock,
  // Each of these is a race:
  kNoFence,
  kFenceInFront,
  kWritesBehindTheFence,
  kBlockFence,
  kNoBarrier,
  kOtherAddress,
  kWarpsNoFence,
  kWarpsOfABlockNoFence,
};
void hand_over(Handover what, float* values, int* done, float* sum);  // 256 values, 4 counters of 0

void first_thread_writes(float* out, bool with_barrier);  // what thread 0 wrote to shared memory, read by all
void unwritten(float* out);                               // shared memory as a block finds it
void shared_layout(std::uint64_t* out);                   // addresses of two arrays and of the dynamic one
void copies_of_float4(const float4* in, float4* out);     // one load and one store
void async_copies(const float* in, float* out, bool wait);
void too_much_dynamic(std::size_t bytes, bool opt_in);
void constants(float* out);
void bad_launch(dim3 grid, dim3 block);
void deep(float* out, int depth);

}  // namespace nanolm::emulated
