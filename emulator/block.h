// One block at a time: its threads as fibers, its shared memory, its barriers and the meetings of its warps' lanes.
#pragma once

#include <array>
#include <exception>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/counters.h"
#include "emulator/device_functions.h"
#include "emulator/launch.h"
#include "findings.h"
#include "handovers.h"
#include "memory.h"

namespace nanolm::emulator {

class BlockRunner;

constexpr int kWarp = 32;  // lanes

enum class Wait { kReady, kBarrier, kWarp, kExited };

struct AsyncCopy {
  void* to;
  const void* from;
  int bytes, group;
  Place place;
};

struct Thread {
  BlockRunner* block = nullptr;
  Index index{};
  int number = 0;  // in its block, x fastest
  Wait wait = Wait::kReady;
  Place place{};  // of the barrier or warp function that it waits in
  const char* waits_in = "";
  std::uint64_t result = 0;  // of that function
  void* context = nullptr;   // where it goes on
  std::uintptr_t stack_begin = 0, stack_end = 0;
  std::vector<AsyncCopy> in_flight;
  const void* calls[32] = {};  // return addresses of the functions that it is in, the kernel's first
  int depth = 0;
  int groups = 0;                   // committed
  std::uint32_t fences = 0;         // so far
  Fence device_fence, block_fence;  // the last one that orders blocks; the last one
  bool unchecked = false;           // what it does now is not its kernel's
};

// The thread that runs now on this system thread; null in host code.
extern __thread Thread* current_thread;

// While one lives, what this thread does is not its kernel's: the linker may have chosen a kernel's copy of the
// library's functions, which report their accesses.
class Unchecked {
 public:
  Unchecked() : thread_(current_thread), before_(thread_ && std::exchange(thread_->unchecked, true)) {}
  ~Unchecked() {
    if (thread_) thread_->unchecked = before_;
  }
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;

 private:
  Thread* thread_;
  bool before_;
};

// A __shared__ array; all of one launch keep their addresses.
struct SharedVariable {
  Array array;
  Place place;
  std::uintptr_t begin, end;
  bool dynamic;
};

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  void begin_launch(const Launch& launch, void (*thread)(const Launch&), std::uint64_t first_serial);
  // Throws what a thread threw, or a Fault; the block's other threads are then abandoned where they are.
  void run_block(std::uint64_t serial, Order order, std::uint64_t seed);

  // Called from fibers.
  int barrier(Barrier kind, int predicate, Place place);
  void fence(bool of_device);
  std::uint64_t meet(const char* name, unsigned mask, std::uint64_t value, int source_lane, Place place, bool is_vote);
  void* shared(const char* name, std::size_t bytes, Elements elements, std::size_t alignment, Place place);
  void* dynamic_shared(const char* name, Elements elements, std::size_t alignment, Place place);
  [[noreturn]] void fail(std::exception_ptr error);
  // text() is called when accesses are no longer checked: the linker may have chosen a kernel's copy of std::string's
  // functions, which report theirs.
  template <class Text>
  [[noreturn]] void fail(Text text) {
    if (current_thread) current_thread->unchecked = true;
    fail(std::make_exception_ptr(Fault(text())));
  }

  bool in_shared(std::uintptr_t address) const { return address - arena_ < kArena; }
  // The variable that holds these bytes; null where none does.
  const SharedVariable* shared_variable(std::uintptr_t address, std::size_t bytes) const {
    const std::uint8_t id = owner_[(address - arena_) / 4];
    return id && address + bytes <= variables_[id - 1].end ? &variables_[id - 1] : nullptr;
  }
  const SharedVariable* nearest_shared(std::uintptr_t address) const;

  void note_unwritten(const Unwritten& read);
  // Ends the launch, at once or after this block.
  void found(const Finding& finding);
  // Whether this launch met a race at these two places before; from now on it has.
  bool already_found(const Origin& a, const Origin& b) {
    return !known_races_.insert({a.return_address, a.call, b.return_address, b.call}).second;
  }

  std::uintptr_t arena() const { return arena_; }
  Cell* shared_cells() const { return shared_cells_; }  // null where accesses are not checked

  // Of accesses: blocks are numbered through all launches, an epoch ends with a barrier, a warp's with __syncwarp().
  std::uint64_t serial() const { return serial_; }
  Index index_of_block(std::uint64_t serial) const;
  Index index_of_thread(int number) const;
  std::uint64_t first_block_of_launch() const { return first_serial_; }
  std::uint32_t epoch() const { return epoch_; }
  const Handovers& handovers() const { return handovers_; }
  Handovers& handovers() { return handovers_; }
  std::span<const Thread> threads() const {
    return {threads_.data(), std::size_t{launch_->block.x} * launch_->block.y * launch_->block.z};
  }
  std::uint32_t warp_epoch(int warp) const { return warp_epochs_[static_cast<std::size_t>(warp)]; }

  Index block_index() const { return block_; }
  const Launch& launch() const { return *launch_; }
  Counters counted;  // since begin_launch

 private:
  // Static variables first, 48 KiB of them with gaps of 128 bytes between; then the dynamic part.
  static constexpr std::size_t kStatic = 96 * 1024, kDynamic = 256 * 1024, kArena = kStatic + kDynamic + 4096;
  static constexpr std::size_t kStack = 128 * 1024, kGuard = 4096;
  struct Meeting {
    const char* name;
    unsigned mask, arrived, said_yes;
    Place place;
    bool is_vote;
    std::uint64_t value[32];
    int source[32];
  };

  void start(Thread& thread);
  void resume(Thread& thread);
  std::uint64_t suspend(Thread& thread, Wait wait, const char* name, Place place);
  void exited(Thread& thread);
  void release_barrier();
  void report_unwritten();
  void complete(Meeting& meeting, int warp);
  void run_warp(int warp);
  void choose_order(Order order);
  [[noreturn]] void report_deadlock();
  void* add_variable(const SharedVariable& variable);

  const Launch* launch_ = nullptr;
  void (*body_)(const Launch&) = nullptr;
  Index block_{};
  int live_ = 0, at_barrier_ = 0;
  Barrier barrier_kind_ = Barrier::kPlain;
  int barrier_count_ = 0;
  std::vector<Thread> threads_;
  std::vector<std::vector<Meeting>> meetings_;  // of each warp
  std::vector<unsigned> alive_;                 // lanes of each warp that have not exited
  std::vector<int> order_;                      // of warps
  int lane_factor_ = 1, lane_offset_ = 0;       // the i-th lane to run is factor * i + offset, modulo 32
  bool random_order_ = false;
  std::minstd_rand random_;

  friend void enter_fiber(Thread& thread);

  std::uintptr_t stacks_ = 0, arena_ = 0;
  std::vector<SharedVariable> variables_;
  std::vector<std::uint8_t> owner_;  // of each 4 bytes of the arena: 1 + index into variables_
  std::size_t static_bytes_ = 0, static_end_ = 0;
  Cell* shared_cells_ = nullptr;
  std::uint64_t serial_ = 0, first_serial_ = 0;
  std::uint32_t epoch_ = 0;
  Handovers handovers_;
  bool has_fences_ = false;
  std::vector<Unwritten> unwritten_;  // since the last barrier, one for each place
  std::set<std::array<const void*, 4>> known_races_;
  std::string first_finding_;
  std::vector<std::uint32_t> warp_epochs_ = std::vector<std::uint32_t>(32);
  void* scheduler_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace nanolm::emulator
