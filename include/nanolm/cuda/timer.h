// Time on the device, between two points of a stream.
#pragma once

#include "nanolm/cuda/check.h"

namespace nanolm::cuda {

// start(), work on the stream, then stop_ms(), which waits for that work. Events are stamped by the device, so the
// launch's own time on the host is not in it. Resolution about 0.5 us.
class GpuTimer {
 public:
  explicit GpuTimer(cudaStream_t stream = nullptr) : stream_(stream) {
    CUDA_CHECK(cudaEventCreate(&start_));
    CUDA_CHECK(cudaEventCreate(&stop_));
  }
  ~GpuTimer() {
    CUDA_CHECK_NOTHROW(cudaEventDestroy(start_));
    CUDA_CHECK_NOTHROW(cudaEventDestroy(stop_));
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  void start() { CUDA_CHECK(cudaEventRecord(start_, stream_)); }
  float stop_ms() {
    CUDA_CHECK(cudaEventRecord(stop_, stream_));
    CUDA_CHECK(cudaEventSynchronize(stop_));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start_, stop_));
    return ms;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace nanolm::cuda
