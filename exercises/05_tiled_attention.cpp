// FlashAttention forward, a tile of scores at a time (notes/05_tiled_attention.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/tiled_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

void tile_scores(const TileSize& size, float scale, std::span<const float> Q, std::span<const float> K,
                 std::span<float> S) {
  check_tile_scores(size, Q, K, S);
  // TODO: fill the tile of scores. About 9 lines.
  todo();
  // end
}

void update_tile(const TileSize& size, std::span<const float> S, std::span<const float> V, std::span<float> row_max,
                 std::span<float> row_sum, std::span<float> O) {
  check_update_tile(size, S, V, row_max, row_sum, O);
  // TODO: fold the tile into the running state of each row. About 19 lines.
  todo();
  // end
}

void finish_tile(const TileSize& size, std::span<const float> row_max, std::span<const float> row_sum,
                 std::span<float> O, std::span<float> lse) {
  check_finish_tile(size, row_max, row_sum, O, lse);
  // TODO: divide by the row sum and write the log-sum-exp. About 6 lines.
  todo();
  // end
}

void mask_tile(const AttentionShape& shape, const TileSize& size, std::int64_t first_q, std::int64_t first_k,
               std::span<float> S) {
  check_mask_tile(shape, size, S);
  // TODO: hide the keys behind the causal diagonal. About 4 lines.
  todo();
  // end
}

std::int64_t visible_k_blocks(const AttentionShape& shape, const Tiling& tiling, std::int64_t q_block) {
  check_visible_k_blocks(shape, tiling, q_block);
  // TODO: count the K blocks that the block's last row sees something of. About 5 lines.
  todo();
  // end
}

void tiled_attention(const AttentionShape& shape, const Tiling& tiling, TileLoader& loader) {
  // TODO: loop over batches, query heads, query blocks and their visible K blocks. About 18 lines.
  todo();
  // end
}

double ideal_traffic(double seqlen, double head_dim) {
  check_traffic({seqlen, head_dim});
  // TODO: count Q, K, V and O once. About 1 line.
  todo();
  // end
}

double flash1_traffic(double seqlen, double head_dim, double sram_elements) {
  check_traffic({seqlen, head_dim, sram_elements});
  // TODO: count K and V once, and Q, O in and O out for each block of keys. About 2 lines.
  todo();
  // end
}

double flash2_traffic(double seqlen, double head_dim, double block_q) {
  check_traffic({seqlen, head_dim, block_q});
  // TODO: count Q and O once, and K and V for each query block. About 1 line.
  todo();
  // end
}

bool flash1_wins(double head_dim, double sram_elements) {
  check_traffic({head_dim, sram_elements});
  // TODO: compare what grows with the square of the length. About 1 line.
  todo();
  // end
}

}  // namespace nanolm
