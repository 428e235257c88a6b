// What orders threads that meet at no barrier: one writes, then a fence, then an atomic; one that makes an atomic on
// the same address later sees what was written. __threadfence() orders so the blocks of a launch too,
// __threadfence_block() the threads of one. Where accesses are checked blocks run one after the other: another block's
// releases are complete.
#pragma once

#include <map>
#include <vector>

#include "shadow.h"

namespace nanolm::emulator {

// The last fence of one kind that a thread has behind it. Fences of both kinds are counted together, from 1.
struct Fence {
  std::uint32_t number = 0, epoch = 0, warp_epoch = 0;
  std::uint32_t number_at_barrier = 0;  // of the last one in front of the block's last barrier
};

// The accesses of a block that its atomics on one address hand over.
class Release {
 public:
  // An atomic of this thread, whose last fence that counts is thread.*fence. In front of a fence are its thread's own
  // accesses and, by barriers, those of others; in front of a barrier are the accesses of others that have a fence of
  // their own behind them.
  void add(const Thread& thread, Fence Thread::*fence);
  bool covers(const Touch& touch) const;

 private:
  std::uint32_t epoch_ = 0;                 // covered: what lies in earlier ones,
  std::vector<std::uint32_t> warp_epochs_;  // of a warp in earlier ones of its own,
  std::vector<std::uint32_t> fences_;       // of a thread before this fence
};

class Handovers {
 public:
  void begin_launch() { released_.clear(); }
  void begin_block() { within_.clear(), taken_.clear(); }
  void atomic(const Thread& thread, const Cell* cell, const Touch& now);
  // Whether an earlier access comes before this one.
  bool order(const Touch& before, const Touch& now) const;

 private:
  struct Taken {
    const Cell* cell;
    Touch by;
    Release within;  // of this block, until then
  };
  std::map<const Cell*, std::map<std::uint64_t, Release>> released_;  // to other blocks, by each block
  std::map<const Cell*, Release> within_;                             // to threads of this block
  std::vector<Taken> taken_;                                          // by this block
};

}  // namespace nanolm::emulator
