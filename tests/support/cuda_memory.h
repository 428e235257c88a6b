// Device memory of a test: it shows what a kernel leaves out, reads too far or writes too far.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "nanolm/cuda/buffer.h"

namespace nanolm::cuda {

using Bytes = std::vector<unsigned char>;

// Where a call's tensors lie. Guarded: each between two guards. Else in an allocation of exactly its size, and the
// workspace is left uninitialised: what compute-sanitizer needs to see an access too far or a read too early.
struct Place {
  bool guarded = true;
  unsigned shifted = 0;  // the bits of Tensor: base pointers moved by one element, off the alignment of a vector
};
enum Tensor : unsigned { kQ = 1, kK = 2, kV = 4, kO = 8, kLse = 16, kAll = 31 };

class DeviceBytes {
 public:
  // NaNs stand before and behind what a kernel reads.
  static DeviceBytes input(const Bytes& contents, bool guarded, std::size_t shift = 0) {
    DeviceBytes d(contents.size(), guarded, shift, kNaN);
    d.original_ = contents;
    if (!contents.empty()) CUDA_CHECK(cudaMemcpy(d.data(), contents.data(), contents.size(), cudaMemcpyHostToDevice));
    return d;
  }
  // What a kernel writes starts as NaN, in float and in bf16; canaries stand before and behind.
  static DeviceBytes output(std::size_t size, bool guarded, std::size_t shift = 0) {
    DeviceBytes d(size, guarded, shift, kCanary);
    if (size > 0) CUDA_CHECK(cudaMemset(d.data(), kNaN, size));
    return d;
  }
  static DeviceBytes scratch(std::size_t size, bool guarded) {
    return guarded ? output(size, true) : DeviceBytes(size, false, 0, kCanary);
  }

  unsigned char* data() { return buffer_.data() ? buffer_.data() + before_ : nullptr; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  Bytes to_host() const {
    const Bytes all = buffer_.to_host();
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(before_);
    return {first, first + static_cast<std::ptrdiff_t>(size_)};
  }

  // Nothing was written outside, nor into an input.
  testing::AssertionResult intact(const char* tensor) const {
    if (!original_.empty() && to_host() != original_)
      return testing::AssertionFailure() << "the input " << tensor << " was written to";
    return guards_intact(tensor);
  }
  testing::AssertionResult guards_intact(const char* tensor) const {
    const Bytes all = buffer_.to_host();
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((i < before_ || i >= before_ + size_) && all[i] != guard_)
        return testing::AssertionFailure()
               << "written outside " << tensor << ": byte "
               << static_cast<std::int64_t>(i) - static_cast<std::int64_t>(before_) << " of " << size_;
    return testing::AssertionSuccess();
  }
  // True while an output was not written: what a call with bad arguments must leave behind.
  bool untouched() const {
    const Bytes bytes = to_host();
    return std::count(bytes.begin(), bytes.end(), kNaN) == static_cast<std::ptrdiff_t>(size_) && guards_intact("");
  }

 private:
  static constexpr unsigned char kNaN = 0xFF, kCanary = 0x44;  // as floats NaN and 785.07
  static constexpr std::size_t kGuard = 512;                   // a multiple of every alignment

  DeviceBytes(std::size_t size, bool guarded, std::size_t shift, unsigned char guard)
      : size_(size),
        before_((guarded ? kGuard : 0) + shift),
        guard_(guard),
        buffer_(static_cast<std::int64_t>(before_ + size + (guarded ? kGuard : 0))) {
    if (before_ > 0) CUDA_CHECK(cudaMemset(buffer_.data(), guard, buffer_.bytes()));
  }

  std::size_t size_, before_;
  unsigned char guard_;
  DeviceBuffer<unsigned char> buffer_;
  Bytes original_;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Equal bit for bit, so that NaN equals itself and 0 is not -0.
inline testing::AssertionResult same_bits(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size())
    return testing::AssertionFailure() << actual.size() << " elements, expected " << expected.size();
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::memcmp(&actual[i], &expected[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "element " << i << " is " << testing::PrintToString(actual[i])
                                         << ", expected the same bits as " << testing::PrintToString(expected[i]);
  return testing::AssertionSuccess();
}

}  // namespace nanolm::cuda
