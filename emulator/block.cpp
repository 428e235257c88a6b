#include "block.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "faults.h"
#include "profiler.h"
#include "text.h"

namespace nanolm::emulator {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

__thread Thread* current_thread = nullptr;

namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

// Where an exception is thrown the linker calls this one (emulator/CMakeLists.txt).
extern "C" void* __real___cxa_allocate_exception(std::size_t bytes) noexcept;
extern "C" void* __wrap___cxa_allocate_exception(std::size_t bytes) noexcept {
  if (current_thread) current_thread->unchecked = true;
  return __real___cxa_allocate_exception(bytes);
}

// The first and only call of a fiber's function; it ends by a jump and never returns.
void enter_fiber(Thread& thread) {
  BlockRunner& block = *thread.block;
  try {
    block.body_(*block.launch_);
  } catch (...) {
    block.error_ = std::current_exception();
  }
  thread.wait = Wait::kExited;
  jump_fcontext(block.scheduler_, nullptr);
}

BlockRunner::BlockRunner() : threads_(kMaxThreads), owner_(kArena / 4) {
  const auto map = [](std::size_t bytes, int flags) {
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return reinterpret_cast<std::uintptr_t>(pages);
  };
  stacks_ = map(kMaxThreads * (kStack + kGuard), MAP_NORESERVE);
#ifdef MAP_32BIT
  arena_ = map(kArena, MAP_32BIT);  // shared addresses of 32 bits, as PTX has them
#else
  arena_ = map(kArena, 0);
#endif
  for (int n = 0; n < kMaxThreads; ++n) {
    Thread& thread = threads_[static_cast<std::size_t>(n)];
    const std::uintptr_t guard = stacks_ + static_cast<std::size_t>(n) * (kStack + kGuard);
    mprotect(reinterpret_cast<void*>(guard), kGuard, PROT_NONE);
    thread.block = this;
    thread.number = n;
    thread.stack_begin = guard + kGuard;
    thread.stack_end = guard + kGuard + kStack;
  }
}
BlockRunner::~BlockRunner() {
  free_cells(shared_cells_, kArena);
  munmap(reinterpret_cast<void*>(stacks_), kMaxThreads * (kStack + kGuard));
  munmap(reinterpret_cast<void*>(arena_), kArena);
}

void BlockRunner::begin_launch(const Launch& launch, void (*thread)(const Launch&), std::uint64_t first_serial) {
  launch_ = &launch;
  body_ = thread;
  counted = {};
  variables_.clear();
  first_serial_ = first_serial;
  handovers_.begin_launch();
  known_races_.clear();
  if (is_checked() && !shared_cells_) shared_cells_ = allocate_cells(kArena);
  if (!is_checked()) free_cells(std::exchange(shared_cells_, nullptr), kArena);
  std::fill(owner_.begin(), owner_.end(), 0);
  static_bytes_ = static_end_ = 0;
}

Index BlockRunner::index_of_thread(int number) const {
  const dim3& size = launch_->block;
  const auto n = static_cast<unsigned>(number);
  return {n % size.x, n / size.x % size.y, n / size.x / size.y};
}
Index BlockRunner::index_of_block(std::uint64_t serial) const {
  const dim3& size = launch_->grid;
  const std::uint64_t n = serial - first_serial_;
  return {static_cast<unsigned>(n % size.x), static_cast<unsigned>(n / size.x % size.y),
          static_cast<unsigned>(n / size.x / size.y)};
}

void BlockRunner::start(Thread& thread) {
  thread.index = index_of_thread(thread.number);
  thread.wait = Wait::kReady;
  thread.in_flight.clear();
  thread.groups = thread.depth = 0;
  thread.fences = 0;
  thread.device_fence = thread.block_fence = {};
  thread.unchecked = false;
  // Stacks begin at different places of their pages, or all of them would share a few lines of the cache.
  const std::size_t offset = static_cast<std::size_t>(thread.number) * 5 % 64 * 64;
  thread.context =
      make_fcontext(reinterpret_cast<void*>(thread.stack_end - offset), kStack - offset, [](transfer_t from) {
        Thread& self = *static_cast<Thread*>(from.data);
        self.block->scheduler_ = from.fctx;
        enter_fiber(self);
      });
}

void BlockRunner::resume(Thread& thread) {
  current_thread = &thread;
  thread.context = jump_fcontext(thread.context, &thread).fctx;
  current_thread = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (thread.wait == Wait::kExited) exited(thread);
  if (at_barrier_ > 0 && at_barrier_ == live_) release_barrier();
}

std::uint64_t BlockRunner::suspend(Thread& thread, Wait wait, const char* name, Place place) {
  thread.wait = wait;
  thread.waits_in = name;
  thread.place = place;
  scheduler_ = jump_fcontext(scheduler_, nullptr).fctx;
  return thread.result;
}

void BlockRunner::fail(std::exception_ptr error) {
  if (!current_thread) std::rethrow_exception(error);
  error_ = error;
  jump_fcontext(scheduler_, nullptr);
  __builtin_unreachable();
}

void BlockRunner::run_block(std::uint64_t serial, Order order, std::uint64_t seed) {
  block_ = index_of_block(serial);
  serial_ = serial;
  unwritten_.clear();
  first_finding_.clear();
  handovers_.begin_block();
  has_fences_ = false;
  ++epoch_;
  const dim3& size = launch_->block;
  live_ = static_cast<int>(size.x * size.y * size.z);
  at_barrier_ = barrier_count_ = 0;
  error_ = nullptr;
  const int warps = (live_ + kWarp - 1) / kWarp;
  meetings_.assign(static_cast<std::size_t>(warps), {});
  alive_.assign(static_cast<std::size_t>(warps), ~0u);
  if (live_ % kWarp) alive_.back() = (1u << live_ % kWarp) - 1;
  order_.resize(static_cast<std::size_t>(warps));
  random_.seed(static_cast<std::minstd_rand::result_type>(seed));
  for (int w = 0; w < warps; ++w) order_[static_cast<std::size_t>(w)] = order == Order::kDescending ? warps - 1 - w : w;
  choose_order(order);
  // Shared memory starts as NaN in every block.
  for (const SharedVariable& v : variables_) std::memset(reinterpret_cast<void*>(v.begin), 0xff, v.end - v.begin);
  for (int n = 0; n < live_; ++n) start(threads_[static_cast<std::size_t>(n)]);

  while (live_ > 0) {
    const int live = live_, at_barrier = at_barrier_;
    bool moved = false;
    for (const int warp : order_) {
      for (int lane = 0; lane < kWarp && !moved; ++lane)
        moved = alive_[static_cast<std::size_t>(warp)] >> lane & 1 &&
                threads_[static_cast<std::size_t>(warp * kWarp + lane)].wait == Wait::kReady;
      run_warp(warp);
    }
    if (!moved && live == live_ && at_barrier == at_barrier_) report_deadlock();
    if (random_order_) choose_order(Order::kRandom);
  }
  if (profiler::is_on()) profiler::block_met(false);
  report_unwritten();
  if (!first_finding_.empty()) throw Fault(first_finding_);
}

void BlockRunner::choose_order(Order order) {
  random_order_ = order == Order::kRandom;
  lane_factor_ = order == Order::kDescending ? -1 : 1;
  lane_offset_ = order == Order::kDescending ? kWarp - 1 : 0;
  if (!random_order_) return;
  std::shuffle(order_.begin(), order_.end(), random_);
  lane_factor_ = static_cast<int>(random_() % kWarp) | 1;
  lane_offset_ = static_cast<int>(random_() % kWarp);
}

// Until none of its lanes can go on.
void BlockRunner::run_warp(int warp) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < kWarp; ++i) {
      const int lane = (lane_factor_ * i + lane_offset_) & (kWarp - 1);
      if (!(alive_[static_cast<std::size_t>(warp)] >> lane & 1)) continue;
      Thread& thread = threads_[static_cast<std::size_t>(warp * kWarp + lane)];
      if (thread.wait != Wait::kReady) continue;
      resume(thread);
      moved = true;
    }
  }
}

void BlockRunner::exited(Thread& thread) {
  --live_;
  const int warp = thread.number / kWarp;
  alive_[static_cast<std::size_t>(warp)] &= ~(1u << thread.number % kWarp);
  // Those that wait for it, wait no longer.
  auto& meetings = meetings_[static_cast<std::size_t>(warp)];
  for (std::size_t m = meetings.size(); m-- > 0;) {
    const unsigned awaited = meetings[m].mask & alive_[static_cast<std::size_t>(warp)];
    if ((meetings[m].arrived & awaited) != awaited) continue;
    Meeting met = meetings[m];
    meetings.erase(meetings.begin() + static_cast<std::ptrdiff_t>(m));
    complete(met, warp);
  }
}

int BlockRunner::barrier(Barrier kind, int predicate, Place place) {
  Thread& self = *current_thread;
  barrier_kind_ = kind;
  barrier_count_ += predicate != 0;
  ++at_barrier_;
  return static_cast<int>(suspend(self, Wait::kBarrier, "__syncthreads()", place));
}

void BlockRunner::fence(bool of_device) {
  Thread& self = *current_thread;
  has_fences_ = true;
  const auto pass = [&](Fence& last) {
    last.number = self.fences, last.epoch = epoch_, last.warp_epoch = warp_epoch(self.number / kWarp);
  };
  ++self.fences;
  pass(self.block_fence);
  if (of_device) pass(self.device_fence);
}

void BlockRunner::release_barrier() {
  const Thread* first = nullptr;
  int waiting = at_barrier_;
  for (Thread& thread : threads_) {
    if (waiting == 0) break;
    if (thread.wait != Wait::kBarrier) continue;
    --waiting;
    if (!first) first = &thread;
    if (!same(thread.place, first->place)) report_deadlock();
  }
  const int count = barrier_count_;
  const int result = barrier_kind_ == Barrier::kAnd  ? count == at_barrier_
                     : barrier_kind_ == Barrier::kOr ? count > 0
                                                     : count;
  for (Thread& thread : threads_) {
    if (at_barrier_ == 0) break;
    if (thread.wait != Wait::kBarrier) continue;
    thread.wait = Wait::kReady;
    thread.result = static_cast<std::uint64_t>(result);
    --at_barrier_;
  }
  barrier_count_ = 0;
  ++epoch_;
  if (has_fences_)
    for (Thread& thread : threads_) {
      thread.device_fence.number_at_barrier = thread.device_fence.number;
      thread.block_fence.number_at_barrier = thread.block_fence.number;
    }
  if (profiler::is_on()) profiler::block_met(true);
  report_unwritten();
}

void BlockRunner::note_unwritten(const Unwritten& read) {
  for (const Unwritten& known : unwritten_)
    if (known.origin.return_address == read.origin.return_address && known.origin.call == read.origin.call) return;
  const Unchecked unchecked;
  unwritten_.push_back(read);
}

void BlockRunner::report_unwritten() {
  for (const Unwritten& read : unwritten_) {
    Thread& thread = threads_[static_cast<std::size_t>(read.thread)];
    Finding finding{"unwritten",
                    "",
                    launch_->name,
                    read.array->name ? read.array->name : "",
                    element_text(*read.array, read.address, read.bytes),
                    {place_text(read.origin, &thread)},
                    {text(thread.index) + " of block " + text(block_)}};
    finding.says = finding.places[0] + ": thread " + finding.threads[0] + " reads " + text(*read.array) + ", " +
                   finding.element + ", which nobody wrote";
    found(finding);
  }
  unwritten_.clear();
}

void BlockRunner::found(const Finding& finding) {
  write_down(finding);
  if (!all_findings_wanted()) {
    if (current_thread) fail([&] { return finding.says; });
    throw Fault(finding.says);
  }
  if (first_finding_.empty()) first_finding_ = finding.says;
}

// Says who waits where; called when nobody can go on.
void BlockRunner::report_deadlock() {
  std::map<std::pair<int, std::string>, std::vector<int>> waiting;  // by line and function
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.number >= static_cast<int>(launch_->block.x * launch_->block.y * launch_->block.z)) break;
    if (thread.wait != Wait::kBarrier && thread.wait != Wait::kWarp) continue;
    if (!first || (thread.wait == Wait::kBarrier && first->wait != Wait::kBarrier)) first = &thread;
    waiting[{thread.place.line, thread.waits_in}].push_back(thread.number);
  }
  std::string says = text(first->place) + ": " + first->waits_in + ": ";
  says += waiting.size() > 1 ? "the block's threads wait in different places and none can go on: "
                             : "some lanes of its mask never come: ";
  bool more = false;
  for (const auto& [where, numbers] : waiting) {
    says += (more ? "; " : "") + numbers_text("thread", numbers) + " at line " + std::to_string(where.first) + " in " +
            where.second;
    more = true;
  }
  says += " (kernel " + std::string(launch_->name) + ", block " + std::to_string(block_.x) + ", " +
          std::to_string(block_.y) + ", " + std::to_string(block_.z) + ")";
  throw Fault(says);
}

}  // namespace nanolm::emulator
