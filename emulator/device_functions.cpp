// What device_functions.h and launch.h call from a kernel.
#include "emulator/device_functions.h"

#include "block.h"
#include "faults.h"
#include "text.h"

namespace nanolm::emulator {
namespace {

BlockRunner& runner(const char* what, Place place) {
  if (!current_thread) throw Fault(text(place) + ": " + what + " outside a kernel");
  return *current_thread->block;
}

}  // namespace

Index thread_index() { return current_thread->index; }
Index block_index() { return current_thread->block->block_index(); }
Index block_size() {
  const dim3& d = current_thread->block->launch().block;
  return {d.x, d.y, d.z};
}
Index grid_size() {
  const dim3& d = current_thread->block->launch().grid;
  return {d.x, d.y, d.z};
}
int lane_id() { return current_thread->number % kWarp; }
int block_barrier(Barrier kind, int predicate, Place place) {
  return runner("__syncthreads()", place).barrier(kind, predicate, place);
}
void thread_fence(bool of_device) {
  if (current_thread) current_thread->block->fence(of_device);
}
std::uint64_t exchange(const char* name, unsigned mask, std::uint64_t value, int source_lane, Place place) {
  return runner(name, place).meet(name, mask, value, source_lane & (kWarp - 1), place, false);
}
unsigned vote(const char* name, unsigned mask, bool predicate, Place place) {
  return static_cast<unsigned>(runner(name, place).meet(name, mask, predicate, 0, place, true));
}
void* shared_address(const char* name, std::size_t bytes, Elements elements, std::size_t alignment, Place place) {
  return runner(name, place).shared(name, bytes, elements, alignment, place);
}
void* dynamic_shared_address(const char* name, Elements elements, std::size_t alignment, Place place) {
  return runner(name, place).dynamic_shared(name, elements, alignment, place);
}
void async_copy(void* shared, const void* global, int bytes, Place place) {
  BlockRunner& block = runner("cp.async", place);
  if (!block.in_shared(reinterpret_cast<std::uintptr_t>(shared)) || bytes < 0 || bytes > 16)
    block.fail([&] { return text(place) + ": cp.async copies up to 16 bytes to shared memory"; });
  checked_access(shared, 16, Access::kBegunWrite, place);  // may land from now on
  current_thread->in_flight.push_back({shared, global, bytes, current_thread->groups, place});
}
void async_commit() { ++current_thread->groups; }
void async_wait(int groups_in_flight) {
  std::vector<AsyncCopy>& copies = current_thread->in_flight;
  const int landed = current_thread->groups - groups_in_flight;
  for (const AsyncCopy& c : copies) {
    if (c.group >= landed) continue;
    checked_access(c.to, 16, Access::kWrite, c.place);
    if (reinterpret_cast<std::uintptr_t>(c.from) % 16)
      current_thread->block->fail(
          [&] { return text(c.place) + ": cp.async from an address that is no multiple of 16"; });
    if (c.bytes > 0) checked_access(c.from, static_cast<std::size_t>(c.bytes), Access::kRead, c.place);
    std::memcpy(c.to, c.from, static_cast<std::size_t>(c.bytes));
    std::memset(static_cast<char*>(c.to) + c.bytes, 0, static_cast<std::size_t>(16 - c.bytes));
  }
  std::erase_if(copies, [landed](const AsyncCopy& c) { return c.group < landed; });
}

void assertion_failed(const char* expression, Place place) {
  if (!current_thread) {
    std::fprintf(stderr, "%s:%d: assert(%s) does not hold\n", place.file, place.line, expression);
    std::abort();
  }
  runner("assert", place).fail([&] {
    const Index t = current_thread->index;
    return text(place) + ": assert(" + expression + ") does not hold in thread " + std::to_string(t.x) + ", " +
           std::to_string(t.y) + ", " + std::to_string(t.z);
  });
}

}  // namespace nanolm::emulator
