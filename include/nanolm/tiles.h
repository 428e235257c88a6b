// Given to lesson 10: a tile of 6 rows in registers, panels in memory, and scratch memory.
#pragma once

#include <memory>
#include <new>

#include "nanolm/fast_attention.h"
#include "nanolm/vectors.h"

namespace nanolm {

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
NANOLM_INLINE void add_scaled(Row& row, float factor, const Row& columns) {
  row.left = multiply_add(Floats(factor), columns.left, row.left);
  row.right = multiply_add(Floats(factor), columns.right, row.right);
}

// Where two vectors of columns, from `column` on, begin in panels of `rows` rows. With 16 lanes each is a panel.
struct Columns {
  Columns(const float* panels, std::int64_t rows, std::int64_t column)
      : left(panels + column / kPanel * kPanel * rows + column % kPanel),
        right(kLanes < kPanel ? left + kLanes : left + kPanel * rows) {}
  Row row(std::int64_t number) const {
    return {Floats::load(left + number * kPanel), Floats::load(right + number * kPanel)};
  }
  const float *left, *right;
};

// One allocation, handed out in pieces that begin at a cache line. It is not filled: a fill is one more pass over it.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats)
      : memory_(static_cast<float*>(::operator new(static_cast<std::size_t>(floats) * sizeof(float), kLine))) {}
  float* take(std::int64_t floats) {
    float* piece = memory_.get() + used_;
    used_ += round_up(floats, kPanel);
    return piece;
  }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, kLine); }
  };
  std::unique_ptr<float, Free> memory_;
  std::int64_t used_ = 0;
};

}  // namespace nanolm
