// Work of a launcher caught in a graph instead of being run. The capture fails when the launcher synchronises,
// allocates or enqueues anything on another stream, which a plain launch lets pass.
#pragma once

#include "nanolm/cuda/check.h"

namespace nanolm::cuda {

class CapturedWork {
 public:
  // launch(stream) enqueues the work.
  template <class Launch>
  explicit CapturedWork(Launch launch) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    launch(stream_);
    CUDA_CHECK(cudaStreamEndCapture(stream_, &graph_));
    CUDA_CHECK(cudaGraphGetNodes(graph_, nullptr, &nodes_));
    CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  ~CapturedWork() {
    if (executable_) CUDA_CHECK_NOTHROW(cudaGraphExecDestroy(executable_));
    if (graph_) CUDA_CHECK_NOTHROW(cudaGraphDestroy(graph_));
    if (stream_) CUDA_CHECK_NOTHROW(cudaStreamDestroy(stream_));
  }
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;

  std::size_t nodes() const { return nodes_; }
  void run() {
    CUDA_CHECK(cudaGraphLaunch(executable_, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace nanolm::cuda
