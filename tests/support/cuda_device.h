// Programs of the ladder's tests include this: without a GPU that their rungs run on, tests of the device are skipped,
// except that an unwritten exercise still fails. What skips a test says "GpuEnvironment: skipped: ", which CTest reads.
#pragma once

#include <gtest/gtest.h>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

#ifndef NANOLM_EMULATED
class GpuEnvironment : public testing::Environment {
  void SetUp() override {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver || (code == cudaSuccess && count == 0)) {
      for (const Rung* rung : ladder()) call_with_nothing(*rung);
      GTEST_SKIP() << "GpuEnvironment: skipped: no CUDA device: " << cudaGetErrorString(code);
    }
    CUDA_CHECK(code);  // any other error is a fault of the machine and fails
    for (const Rung* rung : ladder())
      if (current_device().compute_capability < rung->lowest_compute_capability) {
        call_with_nothing(*rung);
        GTEST_SKIP() << "GpuEnvironment: skipped: " << rung->name << " needs compute capability "
                     << rung->lowest_compute_capability / 10.0;
      }
  }
  // A stub throws NotImplemented before it looks for a device; anything else does not get past its checks.
  static void call_with_nothing(const Rung& rung) {
    const auto call = [](auto function, auto args) {
      try {
        if (function) function(args);
      } catch (const CudaError&) {
      } catch (const std::invalid_argument&) {
      }
    };
    call(rung.chain, ElementwiseArgs{});
    call(rung.fused, ElementwiseArgs{});
    call(rung.forward, ForwardArgs<float>{});
    call(rung.forward_bf16, ForwardArgs<bf16>{});
    call(rung.decode, DecodeArgs<float>{});
    call(rung.decode_bf16, DecodeArgs<bf16>{});
    call(rung.backward, BackwardArgs<float>{});
  }
};
[[maybe_unused]] inline const testing::Environment* const gpu_environment =
    testing::AddGlobalTestEnvironment(new GpuEnvironment);  // GoogleTest deletes it
#endif

// For a test that needs more memory than the device may have.
inline bool has_memory(std::size_t bytes) {
  std::size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  return bytes + (std::size_t{1} << 28) <= free_bytes;
}
#define SKIP_WITHOUT_MEMORY(bytes)        \
  if (!::nanolm::cuda::has_memory(bytes)) \
  GTEST_SKIP() << "GpuEnvironment: skipped: needs " << static_cast<double>(bytes) / 1e9 << " GB of free device memory"

}  // namespace nanolm::cuda
