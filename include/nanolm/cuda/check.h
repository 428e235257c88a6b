// CUDA's error codes as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace nanolm::cuda {

// what(): "reference/cuda/02_naive_attention.cu:80: cudaErrorInvalidConfiguration (invalid configuration argument)
// from cudaGetLastError()"
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

inline std::string error_text(cudaError_t code, const char* expression, const char* file, int line) {
  return std::string(file) + ":" + std::to_string(line) + ": " + cudaGetErrorName(code) + " (" +
         cudaGetErrorString(code) + ") from " + expression;
}
inline void check(cudaError_t code, const char* expression, const char* file, int line) {
  if (code != cudaSuccess) throw CudaError(code, error_text(code, expression, file, line));
}
// For destructors, and wherever else nothing may be thrown: says it on standard error; true when there was no error.
inline bool check_nothrow(cudaError_t code, const char* expression, const char* file, int line) noexcept {
  if (code == cudaSuccess) return true;
  std::fprintf(stderr, "%s:%d: %s (%s) from %s\n", file, line, cudaGetErrorName(code), cudaGetErrorString(code),
               expression);
  return false;
}

}  // namespace nanolm::cuda

// CUDA_CHECK(cudaGetLastError()) behind every launch: a launch returns no error itself.
#define CUDA_CHECK(call) ::nanolm::cuda::check((call), #call, __FILE__, __LINE__)
#define CUDA_CHECK_NOTHROW(call) ::nanolm::cuda::check_nothrow((call), #call, __FILE__, __LINE__)
