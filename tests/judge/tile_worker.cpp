// The worker's TileLoader (include/nanolm/tile_loader.h in this folder).
#define NANOLM_WORKER_SIDE
#include "judge/tiles.h"
#include "judge/worker.h"

namespace nanolm {

using judge::get;
using judge::get_elements;
using judge::put;
using judge::put_elements;
using judge::Reader;
using judge::TileAsk;
using judge::Writer;

namespace {

Writer& question(TileAsk what) {
  static Writer out;
  out.clear();
  put(out, what);
  return out;
}
void put_state(Writer& out, TileLoader::Sram& sram) {
  for (auto* part : {&sram.row_max, &sram.row_sum, &sram.O}) put_elements(out, std::span<float>(*part));
}
std::int64_t take(Reader answer, std::vector<float>& tile) {
  const auto rows = get<std::int64_t>(answer);
  get_elements(answer, std::span<float>(tile));
  return rows;
}

}  // namespace

TileLoader::TileLoader(unsigned char number) : number_(number) {
  Reader answer = judge::ask(number_, question(TileAsk::kSizes));
  q_blocks_ = get<std::int64_t>(answer);
  k_blocks_ = get<std::int64_t>(answer);
  for (auto* tile : {&sram_.Q, &sram_.K, &sram_.V, &sram_.S, &sram_.O, &sram_.row_max, &sram_.row_sum})
    tile->resize(get<std::uint64_t>(answer));
}

std::int64_t TileLoader::load_Q(std::int64_t batch, std::int64_t q_head, std::int64_t q_block) {
  Writer& out = question(TileAsk::kLoadQ);
  put_state(out, sram_);
  for (const std::int64_t part : {batch, q_head, q_block}) put(out, part);
  const std::int64_t rows = take(judge::ask(number_, out), sram_.Q);
  std::fill(sram_.row_max.begin(), sram_.row_max.end(), -std::numeric_limits<float>::infinity());
  std::fill(sram_.row_sum.begin(), sram_.row_sum.end(), 0.0f);
  std::fill(sram_.O.begin(), sram_.O.end(), 0.0f);
  return rows;
}
std::int64_t TileLoader::load_K(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block) {
  Writer& out = question(TileAsk::kLoadK);
  put_state(out, sram_);
  for (const std::int64_t part : {batch, kv_head, k_block}) put(out, part);
  return take(judge::ask(number_, out), sram_.K);
}
std::int64_t TileLoader::load_V(std::int64_t batch, std::int64_t kv_head, std::int64_t k_block) {
  Writer& out = question(TileAsk::kLoadV);
  for (const std::int64_t part : {batch, kv_head, k_block}) put(out, part);
  return take(judge::ask(number_, out), sram_.V);
}
void TileLoader::store_O() {
  Writer& out = question(TileAsk::kStoreO);
  put_state(out, sram_);
  judge::ask(number_, out);
}
void TileLoader::store_lse(std::span<const float> lse_tile) {
  Writer& out = question(TileAsk::kStoreLse);
  put_elements(out, lse_tile);
  judge::ask(number_, out);
}
const TileLoader::Traffic& TileLoader::traffic() const {
  Reader answer = judge::ask(number_, question(TileAsk::kTraffic));
  return traffic_ = get<Traffic>(answer);
}

std::unique_ptr<TileLoader> judge::tile_loader(std::uint8_t number) { return std::make_unique<TileLoader>(number); }

}  // namespace nanolm
