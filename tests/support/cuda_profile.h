// Whether a rung's warps reach for memory side by side: what the emulator counted, and the line that is worst.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "emulator/profile.h"

namespace nanolm::cuda {

inline std::vector<emulator::KernelProfile> profiled(const std::function<void()>& launch) {
  emulator::set_profiled(true);
  launch();
  std::vector<emulator::KernelProfile> kernels = emulator::profile();
  emulator::set_profiled(false);
  return kernels;
}

// "exercises/cuda/02_naive_attention.cu:58: each load of K_smem takes 8.0 times the passes that it needs"
inline std::string worst_line(const emulator::KernelProfile& kernel, bool shared, const char* access) {
  for (const emulator::LineProfile& line : kernel.lines) {
    if (line.is_shared != shared || line.access != access) continue;
    const double times = static_cast<double>(line.cost) / static_cast<double>(std::max<std::int64_t>(1, line.least));
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.1f", times);
    return line.place + ": each " + line.access + " of " + line.array + " takes " + factor + " times the " +
           (shared ? "passes" : "sectors") + " that it needs";
  }
  return "";
}

// Loads of global memory in at most `most` times the sectors that their bytes fill.
inline void expect_neighbours(const std::vector<emulator::KernelProfile>& kernels, double most) {
  EXPECT_FALSE(kernels.empty());
  for (const emulator::KernelProfile& kernel : kernels) {
    std::int64_t bytes = 0, sectors = 0;
    for (const auto& array : kernel.global) bytes += array.loads.bytes, sectors += array.loads.sectors;
    if (static_cast<double>(32 * sectors) > most * static_cast<double>(bytes))
      ADD_FAILURE() << worst_line(kernel, false, "load")
                    << ". The lanes of a warp should load neighbours: 32 floats side "
                    << "by side are 4 sectors, one float a row is 32 (notes/cuda/counters.md). All loads of "
                    << kernel.name << ": " << 32 * sectors << " bytes of sectors for " << bytes << " requested";
  }
}

// Loads of shared memory in at most `most` times the passes that their bytes need.
inline void expect_few_conflicts(const std::vector<emulator::KernelProfile>& kernels, double most) {
  for (const emulator::KernelProfile& kernel : kernels) {
    std::int64_t passes = 0, conflicts = 0;
    for (const auto& array : kernel.shared) passes += array.loads.passes, conflicts += array.loads.conflicts;
    if (static_cast<double>(passes) > most * static_cast<double>(passes - conflicts))
      ADD_FAILURE() << worst_line(kernel, true, "load")
                    << ". The lanes of a warp want different words of one bank: begin "
                    << "rows in different banks, by a column more than you use (notes/cuda/counters.md). All loads of "
                    << kernel.name << ": " << passes << " passes, " << passes - conflicts << " without conflicts";
  }
}

}  // namespace nanolm::cuda
