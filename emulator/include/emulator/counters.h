// What tests and tools ask of the emulator, beyond CUDA's own functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nanolm::emulator {

// Global memory that kernels asked for since the last reset: the sum over all threads, as if there were no cache. A
// vector is one load or store.
struct Counters {
  std::int64_t launches = 0, load_bytes = 0, store_bytes = 0, loads = 0, stores = 0;
};
void reset_counters();
Counters counters();

// In which order blocks, warps of a block and lanes of a warp run where nothing orders them. Mixed, the default, takes
// the other three in turn from block to block; random is seeded by the environment variable NANOLM_SEED.
enum class Order { kMixed, kAscending, kDescending, kRandom };
void set_order(Order order);

// Whether races and reads of unwritten memory are looked for, as the environment variable NANOLM_EMULATOR_CHECKED asks.
// Memory that was allocated before is not checked.
void set_checked(bool checked);

// What messages call the array at a pointer that cudaMalloc gave, or behind it in the same allocation.
void name_array(const void* pointer, const std::string& name, std::size_t element_bytes);

// The most blocks that a grid's second and third dimension may have: 65535, as on every device. A smaller one shows
// what that limit would stop, without so many blocks.
void set_grid_limit(unsigned blocks);

// Of each grid only the first and the last so many blocks run; 0, the default, runs all. Device memory that is
// allocated meanwhile is without limit, holds zeros, and may be read unwritten: an array of more than 2^31 elements
// costs what is touched of it.
void set_block_sample(std::uint64_t blocks);
struct BlockSample {
  explicit BlockSample(std::uint64_t blocks) { set_block_sample(blocks); }
  ~BlockSample() { set_block_sample(0); }
  BlockSample(const BlockSample&) = delete;
  BlockSample& operator=(const BlockSample&) = delete;
};

}  // namespace nanolm::emulator
