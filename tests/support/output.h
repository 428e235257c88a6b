// An output buffer that shows what was not written and what was written too far.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nanolm {

// Every element starts as NaN, so what a function leaves out cannot pass; canaries stand before and behind.
class Output {
 public:
  explicit Output(std::int64_t size)
      : data_(static_cast<std::size_t>(size) + 2 * kGuard, std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t i = 0; i < kGuard; ++i) data_[i] = data_[data_.size() - 1 - i] = kCanary;
  }
  std::span<float> span() { return std::span<float>(data_).subspan(kGuard, data_.size() - 2 * kGuard); }
  std::span<const float> span() const {
    return std::span<const float>(data_).subspan(kGuard, data_.size() - 2 * kGuard);
  }
  std::size_t size() const { return data_.size() - 2 * kGuard; }
  float operator[](std::size_t i) const { return span()[i]; }

  bool canaries_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (data_[i] != kCanary || data_[data_.size() - 1 - i] != kCanary) return false;
    return true;
  }
  // True while nothing was written: what a call with bad arguments must leave behind.
  bool untouched() const {
    for (const float x : span())
      if (!std::isnan(x)) return false;
    return canaries_intact();
  }

 private:
  static constexpr std::size_t kGuard = 16;
  static constexpr float kCanary = 777.25f;
  std::vector<float> data_;
};

}  // namespace nanolm
