// Given to lesson 05: the way between main memory and the tiles, which counts what it moves.
//
// It stands for HBM and SRAM: Q, K, V, O and lse are large and reached through it alone, a tile at a time; the tiles
// and the running state are small and free to use. Tile rows behind the end of a sequence are filled with NaN.
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
  // What lies on the chip: room for Q and O [block_q, head_dim], K and V [block_k, head_dim], S [block_q, block_k]. A
  // shorter tile lies at the front, row after row: S then has rows of rows_k elements.
  struct Sram {
    std::vector<float> Q, K, V, S;
    std::vector<float> O;                 // o, not divided by row_sum until the end
    std::vector<float> row_max, row_sum;  // m and d, [block_q]
    std::int64_t elements() const {
      return static_cast<std::int64_t>(Q.size() + K.size() + V.size() + S.size() + O.size() + 2 * row_max.size());
    }
  };

  // Main-memory traffic so far. Bytes are 4 an element, only rows that exist are counted.
  struct Traffic {
    std::int64_t Q_tiles = 0, K_tiles = 0, V_tiles = 0, O_tiles = 0;
    std::int64_t Q_bytes = 0, K_bytes = 0, V_bytes = 0, O_bytes = 0, lse_bytes = 0;
    std::int64_t bytes() const { return Q_bytes + K_bytes + V_bytes + O_bytes + lse_bytes; }
  };

  // Called with the state after each visited tile of K and V, that is, when the next one is loaded or O is stored; at
  // the store O is already divided. kLoadQ: the next query block came, and O was not stored.
  enum class End { kLoadK, kLoadQ, kStoreO };
  struct Visit {
    std::int64_t batch, q_head, q_block, k_block;
    std::span<const float> row_max, row_sum, O;
    End end;
  };
  using Trace = std::function<void(const Visit&)>;

  // Throws std::invalid_argument: bad shapes, a block below 1, spans of the wrong size.
  TileLoader(const AttentionShape& shape, const Tiling& tiling, std::span<const float> Q, std::span<const float> K,
             std::span<const float> V, std::span<float> O, std::span<float> lse)
      : shape_(shape), tiling_(tiling), Q_(Q), K_(K), V_(V), O_(O), lse_(lse) {
    check_shape(shape);
    check_tiling(tiling);
    require_size("Q", Q.size(), q_size(shape));
    require_size("K", K.size(), kv_size(shape));
    require_size("V", V.size(), kv_size(shape));
    require_size("O", O.size(), q_size(shape));
    require_size("lse", lse.size(), lse_size(shape));
    const auto allocate = [](std::vector<float>& tile, std::int64_t rows, std::int64_t columns) {
      tile.resize(static_cast<std::size_t>(checked_product("tile", {rows, columns})));
    };
    // A block longer than the sequence needs no more room than the sequence.
    const std::int64_t rows_q = std::min(tiling.block_q, std::max<std::int64_t>(shape.seqlen_q, 1));
    const std::int64_t rows_k = std::min(tiling.block_k, std::max<std::int64_t>(shape.seqlen_k, 1));
    allocate(sram_.Q, rows_q, shape.head_dim);
    allocate(sram_.O, rows_q, shape.head_dim);
    allocate(sram_.K, rows_k, shape.head_dim);
    allocate(sram_.V, rows_k, shape.head_dim);
    allocate(sram_.S, rows_q, rows_k);
    allocate(sram_.row_max, rows_q, 1);
    allocate(sram_.row_sum, rows_q, 1);
  }

  Sram& sram() { return sram_; }
  const Traffic& traffic() const { return traffic_; }
  void set_trace(Trace trace) { trace_ = std::move(trace); }

  std::int64_t q_blocks() const { return block_count(shape_.seqlen_q, tiling_.block_q); }
  std::int64_t k_blocks() const { return block_count(shape_.seqlen_k, tiling_.block_k); }

  // Copy tile number `block` of a head to sram() and return how many of its rows exist. K and V take the kv head.
  // load_Q also empties the running state: row_max = -inf, row_sum = 0, O = 0.
  // Throw std::out_of_range for a batch, head or block that does not exist.
  std::int64_t load_Q(std::int64_t batch, std::int64_t q_head, std::int64_t q_block) {
    end_visit(End::kLoadQ);
    batch_ = batch, q_head_ = q_head, q_block_ = q_block;
    std::fill(sram_.row_max.begin(), sram_.row_max.end(), -std::numeric_limits<float>::infinity());
    std::fill(sram_.row_sum.begin(), sram_.row_sum.end(), 0.0f);
    std::fill(sram_.O.begin(), sram_.O.end(), 0.0f);
    rows_q_ = load("Q", Q_, {batch, q_head, q_block}, shape_.q_heads, shape_.seqlen_q, tiling_.block_q, sram_.Q);
    return count(traffic_.Q_tiles, traffic_.Q_bytes, rows_q_);
  }
  std::int64_t load_K(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block) {
    end_visit(End::kLoadK);
    k_block_ = k_block;
    return count(traffic_.K_tiles, traffic_.K_bytes,
                 load("K", K_, {batch, kv_head, k_block}, shape_.kv_heads, shape_.seqlen_k, tiling_.block_k, sram_.K));
  }
  std::int64_t load_V(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block) {
    return count(traffic_.V_tiles, traffic_.V_bytes,
                 load("V", V_, {batch, kv_head, k_block}, shape_.kv_heads, shape_.seqlen_k, tiling_.block_k, sram_.V));
  }

  // Write the rows that exist of sram().O, and of a tile of lse, to where load_Q last read.
  void store_O() {
    end_visit(End::kStoreO);
    std::copy_n(sram_.O.begin(), rows_q_ * shape_.head_dim, O_.begin() + first_row() * shape_.head_dim);
    count(traffic_.O_tiles, traffic_.O_bytes, rows_q_);
  }
  void store_lse(std::span<const float> lse_tile) {
    require(static_cast<std::int64_t>(lse_tile.size()) >= rows_q_, "lse_tile holds ", lse_tile.size(),
            " elements, the tile has ", rows_q_, " rows");
    std::copy_n(lse_tile.begin(), rows_q_, lse_.begin() + first_row());
    traffic_.lse_bytes += rows_q_ * kElementBytes;
  }

 private:
  static constexpr std::int64_t kElementBytes = sizeof(float);
  struct Place {
    std::int64_t batch, head, block;
  };

  std::int64_t first_row() const {
    return (batch_ * shape_.q_heads + q_head_) * shape_.seqlen_q + q_block_ * tiling_.block_q;
  }
  std::int64_t count(std::int64_t& tiles, std::int64_t& bytes, std::int64_t rows) const {
    ++tiles;
    bytes += rows * shape_.head_dim * kElementBytes;
    return rows;
  }
  std::int64_t load(const char* name, std::span<const float> from, Place at, std::int64_t heads, std::int64_t length,
                    std::int64_t block, std::vector<float>& tile) const {
    if (at.batch < 0 || at.batch >= shape_.batch || at.head < 0 || at.head >= heads || at.block < 0 ||
        at.block >= block_count(length, block))
      throw std::out_of_range(std::string(name) + " has no tile at batch " + std::to_string(at.batch) + ", head " +
                              std::to_string(at.head) + ", block " + std::to_string(at.block));
    const std::int64_t rows = std::min(block, length - at.block * block);
    const std::int64_t first = (at.batch * heads + at.head) * length + at.block * block;
    const auto end = std::copy_n(from.begin() + first * shape_.head_dim, rows * shape_.head_dim, tile.begin());
    std::fill(end, tile.end(), std::numeric_limits<float>::quiet_NaN());
    return rows;
  }
  void end_visit(End end) {
    if (k_block_ >= 0 && trace_)
      trace_({batch_, q_head_, q_block_, k_block_, sram_.row_max, sram_.row_sum, sram_.O, end});
    k_block_ = -1;
  }

  AttentionShape shape_;
  Tiling tiling_;
  std::span<const float> Q_, K_, V_;
  std::span<float> O_, lse_;
  Sram sram_;
  Traffic traffic_;
  Trace trace_;
  std::int64_t batch_ = 0, q_head_ = 0, q_block_ = 0, rows_q_ = 0;
  std::int64_t k_block_ = -1;  // -1: no K tile since load_Q or store_O
};

}  // namespace nanolm
