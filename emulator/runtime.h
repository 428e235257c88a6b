// The state of the virtual device that cuda_runtime.h's functions and launches share.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_runtime.h"

namespace nanolm::emulator {

struct Properties {
  int sms, shared_bytes_per_block, capability;
  static const Properties& get();
};

class Runtime {
 public:
  static Runtime& get();

  // Notes an error for cudaGetLastError() and gives it back.
  cudaError_t note(cudaError_t error, const std::string& detail = "");
  // What cudaGetErrorString() adds to CUDA's own words.
  static const std::string& detail() { return detail_; }
  cudaError_t last(bool clear);
  // From now on every call fails, until reset().
  void break_down();
  bool broken() const { return broken_; }
  void reset();

  void set_dynamic_limit(const void* kernel, int bytes);
  std::size_t dynamic_limit(const void* kernel);

 private:
  std::mutex mutex_;
  thread_local static cudaError_t last_;
  thread_local static std::string detail_;
  std::map<const void*, int> dynamic_limits_;
  bool broken_ = false;
};

// "exercises/cuda/03_flash_forward.cu:52" of the call in front of this return address, then the lines that this code
// was inlined at, innermost first; empty where debugging data or tools are missing.
std::vector<std::string> source_lines(const void* return_address);

}  // namespace nanolm::emulator
