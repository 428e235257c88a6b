// The TileLoader that a worker is built with: the same class to a lesson, but Q, K, V, O and lse lie in the judge.
//
// Every load and store is a question to the judge, whose own loader carries it out and counts it. The tiles and the
// running state lie here, in sram(); the running state goes with each question that ends a visit or stores. So no byte
// of main memory reaches the lesson uncounted. set_trace does nothing here: the trace is the judge's.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "nanolm/attention_shape.h"

namespace nanolm {

class TileLoader {
 public:
  struct Sram {
    std::vector<float> Q, K, V, S;
    std::vector<float> O;
    std::vector<float> row_max, row_sum;
    std::int64_t elements() const {
      return static_cast<std::int64_t>(Q.size() + K.size() + V.size() + S.size() + O.size() + 2 * row_max.size());
    }
  };
  struct Traffic {
    std::int64_t Q_tiles = 0, K_tiles = 0, V_tiles = 0, O_tiles = 0;
    std::int64_t Q_bytes = 0, K_bytes = 0, V_bytes = 0, O_bytes = 0, lse_bytes = 0;
    std::int64_t bytes() const { return Q_bytes + K_bytes + V_bytes + O_bytes + lse_bytes; }
  };
  enum class End { kLoadK, kLoadQ, kStoreO };
  struct Visit {
    std::int64_t batch, q_head, q_block, k_block;
    std::span<const float> row_max, row_sum, O;
    End end;
  };
  using Trace = std::function<void(const Visit&)>;

  explicit TileLoader(unsigned char number);  // asks the judge for the sizes
  // One on tensors of the lesson's own has nothing to do here.
  TileLoader(const AttentionShape&, const Tiling&, std::span<const float>, std::span<const float>,
             std::span<const float>, std::span<float>, std::span<float>) {
    throw std::logic_error("a TileLoader on other tensors than the test's");
  }

  Sram& sram() { return sram_; }
  const Traffic& traffic() const;
  void set_trace(Trace) {}
  std::int64_t q_blocks() const { return q_blocks_; }
  std::int64_t k_blocks() const { return k_blocks_; }

  std::int64_t load_Q(std::int64_t batch, std::int64_t q_head, std::int64_t q_block);
  std::int64_t load_K(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block);
  std::int64_t load_V(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block);
  void store_O();
  void store_lse(std::span<const float> lse_tile);

 private:
  unsigned char number_ = 0;
  std::int64_t q_blocks_ = 0, k_blocks_ = 0;
  Sram sram_;
  mutable Traffic traffic_;
};

}  // namespace nanolm
