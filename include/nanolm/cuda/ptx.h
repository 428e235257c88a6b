// Instructions that CUDA C++ has no name for: the only place for inline assembly. Each has its twin in the emulator.
#pragma once

#include <cuda_runtime.h>

namespace nanolm::cuda {

// cp.async (compute capability 8.0; before it the thread copies itself): copies from global to shared memory that run
// beside the thread. A thread's copies up to a commit are a group; wait<n> returns when all but its latest n groups
// have landed, for this thread's own copies alone: others' need a barrier after it. In the emulator nothing lands
// before the wait that it must have landed at.

// 16 bytes, both addresses multiples of 16. Of the source only the first `bytes` are read; zeros stand for the rest.
__device__ inline void cp_async_16(void* shared, const void* global, int bytes = 16) {
#ifdef NANOLM_EMULATED
  emulator::async_copy(shared, global, bytes);
#elif __CUDA_ARCH__ < 800
  uint4 copied{};
  if (bytes == 16) {
    copied = *static_cast<const uint4*>(global);
  } else {
    for (int i = 0; i < bytes; ++i) {
      reinterpret_cast<char*>(&copied)[i] = static_cast<const char*>(global)[i];
    }
  }
  *static_cast<uint4*>(shared) = copied;
#else
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(global), "r"(bytes)
      : "memory");
#endif
}
__device__ inline void cp_async_commit() {
#ifdef NANOLM_EMULATED
  emulator::async_commit();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int groups>
__device__ inline void cp_async_wait() {
#ifdef NANOLM_EMULATED
  emulator::async_wait(groups);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

}  // namespace nanolm::cuda
