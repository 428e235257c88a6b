// Device memory of a test: it shows what a kernel leaves out, reads too far or writes too far.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "nanolm/cuda/buffer.h"
#ifdef NANOLM_EMULATED
#include "emulator/counters.h"
#endif

namespace nanolm::cuda {

using Bytes = std::vector<unsigned char>;

// Where a call's tensors lie. Guarded: each between two guards. Else in an allocation of exactly its size, and the
// workspace is left uninitialised: what compute-sanitizer needs to see an access too far or a read too early.
struct Place {
  bool guarded = true;
  unsigned shifted = 0;  // the bits of Shifted: base pointers moved by one element, off the alignment of a vector
};
enum Shifted : unsigned {
  kQ = 1,
  kK = 2,
  kV = 4,
  kO = 8,
  kLse = 16,
  kGradientO = 32,
  kGradientQ = 64,
  kGradientK = 128,
  kGradientV = 256,
  kAll = 511
};

// A tensor's name and where it lies; shifted by so many elements.
struct Tensor {
  const char* name;
  std::size_t element_bytes;
  bool guarded = true;
  std::size_t shift = 0;
};

// When one of them is made its bytes are there: cudaMemset() and cudaMemcpy() may return before, and a stream that does
// not block would not wait for them.
class DeviceBytes {
 public:
  // NaNs stand before and behind what a kernel reads.
  static DeviceBytes input(const Tensor& tensor, const Bytes& contents) {
    DeviceBytes d(tensor, contents.size(), kNaN);
    d.original_ = contents;
    if (!contents.empty()) CUDA_CHECK(cudaMemcpy(d.data(), contents.data(), contents.size(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    return d;
  }
  // What a kernel writes starts as NaN, in float and in bf16; canaries stand before and behind.
  static DeviceBytes output(const Tensor& tensor, std::size_t size) {
    DeviceBytes d(tensor, size, kCanary);
    if (size > 0) CUDA_CHECK(cudaMemset(d.data(), kNaN, size));
    CUDA_CHECK(cudaDeviceSynchronize());
    return d;
  }
  static DeviceBytes scratch(const Tensor& tensor, std::size_t size) {
    return tensor.guarded ? output(tensor, size) : DeviceBytes(tensor, size, kCanary);
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
  testing::AssertionResult intact() const {
    if (!original_.empty() && to_host() != original_)
      return testing::AssertionFailure() << "the input " << name_ << " was written to";
    return guards_intact();
  }
  testing::AssertionResult guards_intact() const {
    const Bytes all = buffer_.to_host();
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((i < before_ || i >= before_ + size_) && all[i] != guard_)
        return testing::AssertionFailure()
               << "written outside " << name_ << ": byte "
               << static_cast<std::int64_t>(i) - static_cast<std::int64_t>(before_) << " of " << size_;
    return testing::AssertionSuccess();
  }
  // True while an output was not written: what a call with bad arguments must leave behind.
  bool untouched() const {
    const Bytes bytes = to_host();
    return std::count(bytes.begin(), bytes.end(), kNaN) == static_cast<std::ptrdiff_t>(size_) && guards_intact();
  }

 private:
  static constexpr unsigned char kNaN = 0xFF, kCanary = 0x44;  // as floats NaN and 785.07
  static constexpr std::size_t kGuard = 512;                   // a multiple of every alignment

  DeviceBytes(const Tensor& tensor, std::size_t size, unsigned char guard)
      : name_(tensor.name),
        size_(size),
        before_((tensor.guarded ? kGuard : 0) + tensor.shift * tensor.element_bytes),
        guard_(guard),
        buffer_(static_cast<std::int64_t>(before_ + size + (tensor.guarded ? kGuard : 0))) {
    if (before_ > 0) CUDA_CHECK(cudaMemset(buffer_.data(), guard, buffer_.bytes()));
#ifdef NANOLM_EMULATED
    emulator::name_array(data(), tensor.name, tensor.element_bytes);
#endif
  }

  const char* name_;
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

// Nine digits tell two floats apart. An output that still holds what DeviceBytes put there was not written.
inline std::string bits_text(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return bits == 0xFFFFFFFF ? "was not written" : std::string("is ") + text;
}

// Equal bit for bit, so that NaN equals itself and 0 is not -0.
inline testing::AssertionResult same_bits(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size())
    return testing::AssertionFailure() << actual.size() << " elements, expected " << expected.size();
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::memcmp(&actual[i], &expected[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "element " << i << " " << bits_text(actual[i])
                                         << ", expected the same bits as " << bits_text(expected[i]).substr(3);
  return testing::AssertionSuccess();
}

// A launch that was refused returns nothing: who does not ask, hands the error on to whoever asks next.
inline testing::AssertionResult no_error_left() {
  const cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the launch left an error behind, " << cudaGetErrorName(code) << " ("
                                     << cudaGetErrorString(code)
                                     << "): CUDA_CHECK(cudaGetLastError()) belongs behind each launch";
}

}  // namespace nanolm::cuda
