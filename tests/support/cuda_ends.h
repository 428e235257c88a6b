// Tensors of more than 2^31 elements without the memory for them: of each grid's blocks only those at both ends run
// (emulator::BlockSample), and only the first and the last heads hold data. The device tests run such shapes whole.
#pragma once

#include <cstdint>
#include <vector>

#include "nanolm/cuda/buffer.h"
#include "nanolm/cuda/check.h"

namespace nanolm::cuda {

inline constexpr std::int64_t kEndHeads = 32;  // at either end hold data

class EndsOfATensor {
 public:
  explicit EndsOfATensor(std::int64_t elements) : buffer_(elements) {}
  float* data() { return buffer_.data(); }
  // `values` are those of kEndHeads heads.
  void put(const std::vector<float>& values) {
    const std::int64_t size = static_cast<std::int64_t>(values.size());
    for (const std::int64_t first : {std::int64_t{0}, buffer_.size() - size})
      CUDA_CHECK(cudaMemcpy(data() + first, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
  }
  std::vector<float> last(std::int64_t elements) {
    std::vector<float> values(static_cast<std::size_t>(elements));
    CUDA_CHECK(
        cudaMemcpy(values.data(), data() + buffer_.size() - elements, values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  DeviceBuffer<float> buffer_;
};

// What belongs to the last of the kEndHeads heads.
inline std::vector<float> of_last_head(const std::vector<float>& heads) {
  return {heads.end() - static_cast<std::ptrdiff_t>(heads.size()) / kEndHeads, heads.end()};
}

}  // namespace nanolm::cuda
