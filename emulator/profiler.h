// Puts the accesses of single threads together to those of warps, and counts what each costs.
#pragma once

#include "block.h"
#include "memory.h"

namespace nanolm::emulator::profiler {

extern bool on;  // blocks then run one after the other
inline bool is_on() { return on; }

void begin_launch(const Launch& launch);
void end_launch();

// An access of the current thread; `variable` is its array where that is a shared one.
void access(const Thread& thread, std::uintptr_t address, std::size_t bytes, Access access, const Origin& origin,
            const SharedVariable* variable);
// All lanes of a warp that still run are at one place.
void warp_met(int warp);
// All threads of a block are; is_barrier: in a barrier, not at its end.
void block_met(bool is_barrier);

}  // namespace nanolm::emulator::profiler
