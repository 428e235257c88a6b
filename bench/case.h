// One thing to measure: a kernel at a length, with or without the causal mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "nanolm/tile_loader.h"

namespace nanolm {

struct Options {
  std::vector<std::int64_t> seqlens{256, 512, 1024, 2048, 4096};
  std::int64_t heads = 8;
  std::int64_t head_dim = 64;
  std::int64_t samples = 5;
};

struct Tensors {
  std::vector<float> Q, K, V, O, lse;
};

struct Case {
  std::string kernel;  // "naive", "tiled" or "fast"
  AttentionShape shape;
  Tiling tiling;
  bool for_frontier = false;  // another block size, measured for the Pareto frontier alone

  std::string name() const {
    return kernel + "/" + std::to_string(shape.seqlen_q) + (shape.causal ? "/causal" : "") +
           (for_frontier ? "/block_" + std::to_string(tiling.block_q) : "");
  }
  double scratch_formula_bytes() const;  // NaN where lesson 04 is not written

  // What is known once it has run.
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::string problem;  // empty: none
  double scratch_bytes = kUnknown;
  double largest_difference = kUnknown;  // of O, against the naive kernel; the others of the main table hold it
  bool not_finite = false;               // O holds NaN or inf
  std::vector<double> seconds;           // the samples, in time order

  std::unique_ptr<Tensors> tensors;  // while it runs
};

}  // namespace nanolm
