// Each program of the ladder's tests includes this once: without a GPU that its rungs run on, device tests are skipped,
// except that an unwritten exercise still fails.
#pragma once

#include <gtest/gtest.h>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

#ifndef NANOLM_EMULATED
class DeviceEnvironment : public testing::Environment {
  void SetUp() override {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver || (code == cudaSuccess && count == 0)) {
      for (const Rung* rung : ladder()) call_with_nothing(*rung);
      GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(code);
    }
    CUDA_CHECK(code);  // any other error is a fault of the machine and fails
    for (const Rung* rung : ladder())
      if (current_device().compute_capability < rung->lowest_compute_capability) {
        call_with_nothing(*rung);
        GTEST_SKIP() << rung->name << " needs compute capability " << rung->lowest_compute_capability / 10.0;
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
  }
};
[[maybe_unused]] inline const testing::Environment* const device_environment =
    testing::AddGlobalTestEnvironment(new DeviceEnvironment);  // GoogleTest deletes it
#endif

}  // namespace nanolm::cuda
