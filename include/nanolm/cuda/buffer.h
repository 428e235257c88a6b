// Device memory that frees itself.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nanolm/cuda/check.h"

namespace nanolm::cuda {

// `size` elements of device memory, uninitialised; a size of 0 allocates nothing. Copies are synchronous.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::int64_t size) : size_(size) {
    if (size > 0) CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
  }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(static_cast<std::int64_t>(host.size())) {
    copy_from(host);
  }
  ~DeviceBuffer() {
    if (data_) CUDA_CHECK_NOTHROW(cudaFree(data_));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  // Throws std::out_of_range when the host's vector is longer than the buffer.
  void copy_from(const std::vector<T>& host) {
    if (static_cast<std::int64_t>(host.size()) > size_) throw std::out_of_range("copy_from: the vector is longer");
    if (host.empty()) return;
    CUDA_CHECK(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaStreamSynchronize(nullptr));  // from pageable memory cudaMemcpy() may return while it is on its way
  }
  std::vector<T> to_host() const {
    std::vector<T> host(static_cast<std::size_t>(size_));
    if (size_ > 0) CUDA_CHECK(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace nanolm::cuda
