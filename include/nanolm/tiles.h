// Given to lesson 10: a tile of 6 rows in registers, panels in memory, and scratch memory.
#pragma once

#include <memory>
#include <new>

#include "nanolm/fast_attention.h"
#include "nanolm/vectors.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace nanolm {

// A score's sum has at most so many products, and longer ones are added up from such: what a step rounds off grows with
// what has been summed.
inline constexpr std::int64_t kSumSteps = 64;

// Two vectors of one row of a tile. The rows have names: compilers keep an array of sums in memory.
struct Row {
  Floats left, right;
};
struct Tile {
  Row r0, r1, r2, r3, r4, r5;
};
NANOLM_INLINE Row load(const float* from) { return {Floats::load(from), Floats::load(from + kLanes)}; }
NANOLM_INLINE void store(const Row& row, float* to) {
  row.left.store(to);
  row.right.store(to + kLanes);
}
NANOLM_INLINE Tile zero_tile() {
  const Row zero{Floats(0.0f), Floats(0.0f)};
  return {zero, zero, zero, zero, zero, zero};
}
NANOLM_INLINE Tile load_tile(const float* from, std::int64_t row) {
  return {load(from),           load(from + row),     load(from + 2 * row),
          load(from + 3 * row), load(from + 4 * row), load(from + 5 * row)};
}
NANOLM_INLINE void store_tile(const Tile& tile, float* to, std::int64_t row) {
  store(tile.r0, to);
  store(tile.r1, to + row);
  store(tile.r2, to + 2 * row);
  store(tile.r3, to + 3 * row);
  store(tile.r4, to + 4 * row);
  store(tile.r5, to + 5 * row);
}
NANOLM_INLINE Row operator+(const Row& a, const Row& b) { return {a.left + b.left, a.right + b.right}; }
// What is at `to` grows by the tile.
NANOLM_INLINE void add_tile(const Tile& tile, float* to, std::int64_t row) {
  const Tile before = load_tile(to, row);
  store_tile({before.r0 + tile.r0, before.r1 + tile.r1, before.r2 + tile.r2, before.r3 + tile.r3, before.r4 + tile.r4,
              before.r5 + tile.r5},
             to, row);
}
NANOLM_INLINE void add_scaled(Row& row, float factor, const Row& columns) {
  row.left = multiply_add(Floats(factor), columns.left, row.left);
  row.right = multiply_add(Floats(factor), columns.right, row.right);
}

// Where two vectors of columns, from `column` on, begin in panels of `rows` rows. With 16 lanes each is a panel.
struct Columns {
  Columns(const float* panels, std::int64_t rows, std::int64_t column)
      : left(panels + column / kPanel * kPanel * rows + column % kPanel),
        right(kLanes < kPanel ? left + kLanes : left + kPanel * rows) {}
  // The same columns, from row number `first` on.
  Columns from(std::int64_t first) const {
    Columns rest = *this;
    rest.left += first * kPanel, rest.right += first * kPanel;
    return rest;
  }
  Row row(std::int64_t number) const {
    return {Floats::load(left + number * kPanel), Floats::load(right + number * kPanel)};
  }
  const float *left, *right;
};

// One allocation, handed out in pieces that begin at a cache line. It is not filled: a fill is one more pass over it.
// A large one asks Linux for pages of 2 MiB: panels are read from end to end, and each page of 4 KiB is an address to
// translate, which costs most in a virtual machine.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats) : memory_(nullptr, {}) {
    const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
    const std::align_val_t alignment{bytes < 2 * kLargePage ? 64 : kLargePage};
    memory_ = {static_cast<float*>(::operator new(bytes, alignment)), {alignment}};
#if defined(__linux__)
    if (bytes >= 2 * kLargePage) madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // may be refused, and nothing is lost
#endif
  }
  float* take(std::int64_t floats) {
    float* piece = memory_.get() + used_;
    used_ += round_up(floats, kPanel);
    return piece;
  }

 private:
  static constexpr std::size_t kLargePage = std::size_t{1} << 21;
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, alignment); }
    std::align_val_t alignment;
  };
  std::unique_ptr<float, Free> memory_;
  std::int64_t used_ = 0;
};

}  // namespace nanolm
