// What a kernel's accesses cost, counted as a device's profiler counts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nanolm::emulator {

// A warp access is one instruction of a warp: the same place in the code, met for the same time by its lanes since they
// last met at a barrier or in a warp function.
struct GlobalTraffic {
  std::int64_t requests = 0;    // warp accesses
  std::int64_t bytes = 0;       // requested, summed over lanes
  std::int64_t sectors = 0;     // different 32-byte sectors of a warp access, summed over them
  std::int64_t compulsory = 0;  // bytes, each counted once a launch
};
struct SharedTraffic {
  std::int64_t requests = 0, bytes = 0;
  // A warp access takes one pass for each 128 bytes it asks for (a warp's 4-byte, half a warp's 8-byte, a quarter's
  // 16-byte accesses), and one more for each further word in the same bank: those are the conflicts. Lanes that name
  // the same word share it.
  std::int64_t passes = 0, conflicts = 0;
};
template <class Traffic>
struct ArrayProfile {
  std::string name;
  Traffic loads, stores, atomics;
};
// A line of the kernel that takes more sectors, or passes through shared memory, than its bytes fill.
struct LineProfile {
  std::string place, access, array;  // "exercises/cuda/03_flash_forward.cu:60 (called at line 66)"; load, store, atomic
  bool is_shared = false;
  std::int64_t cost = 0, least = 0;
};
struct KernelProfile {
  std::string name;                                                  // as its launch is written, "flash_kernel<T>"
  std::int64_t launches = 0, blocks = 0, threads = 0, barriers = 0;  // summed; a barrier counts once a block
  std::vector<ArrayProfile<GlobalTraffic>> global;  // in the order of first access; arrays of one name are one
  std::vector<ArrayProfile<SharedTraffic>> shared;
  std::vector<LineProfile> lines;  // the most wasteful first
};

// Counting starts or ends; what was counted is forgotten.
void set_profiled(bool on);
// A row for each kernel launched since, in order.
std::vector<KernelProfile> profile();

}  // namespace nanolm::emulator
