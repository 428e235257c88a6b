// Lesson 05: how a worker's TileLoader reaches the judge's, which holds the tensors and counts.
#pragma once

#include "judge/wire.h"
#include "nanolm/tile_loader.h"

namespace nanolm {

namespace judge {
enum class TileAsk : std::uint8_t { kSizes, kLoadQ, kLoadK, kLoadV, kStoreO, kStoreLse, kTraffic };
}

#if !defined(NANOLM_WORKER_SIDE)
// Carries out one question on the test's own loader.
inline void answer_tile(TileLoader& loader, judge::Reader& question, judge::Writer& answer) {
  using namespace judge;
  using Elements = std::span<float>;
  TileLoader::Sram& sram = loader.sram();
  const auto what = get<TileAsk>(question);
  if (what == TileAsk::kLoadQ || what == TileAsk::kLoadK || what == TileAsk::kStoreO) {
    get_elements(question, Elements(sram.row_max));
    get_elements(question, Elements(sram.row_sum));
    get_elements(question, Elements(sram.O));
  }
  if (what == TileAsk::kLoadQ || what == TileAsk::kLoadK || what == TileAsk::kLoadV) {
    const auto batch = get<std::int64_t>(question), head = get<std::int64_t>(question),
               block = get<std::int64_t>(question);
    const bool q = what == TileAsk::kLoadQ, k = what == TileAsk::kLoadK;
    put(answer, q   ? loader.load_Q(batch, head, block)
                : k ? loader.load_K(batch, head, block)
                    : loader.load_V(batch, head, block));
    put_elements(answer, Elements(q ? sram.Q : k ? sram.K : sram.V));
  } else if (what == TileAsk::kSizes) {
    put(answer, loader.q_blocks());
    put(answer, loader.k_blocks());
    for (const auto* tile : {&sram.Q, &sram.K, &sram.V, &sram.S, &sram.O, &sram.row_max, &sram.row_sum})
      put<std::uint64_t>(answer, tile->size());
  } else if (what == TileAsk::kStoreO) {
    loader.store_O();
  } else if (what == TileAsk::kStoreLse) {
    loader.store_lse(get<std::vector<float>>(question));
  } else if (what == TileAsk::kTraffic) {
    put(answer, loader.traffic());
  } else {
    throw Malformed("no such question");
  }
}
#endif

}  // namespace nanolm
