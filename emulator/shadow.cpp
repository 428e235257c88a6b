#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "block.h"
#include "emulator/counters.h"
#include "environment.h"
#include "faults.h"
#include "findings.h"

namespace nanolm::emulator {
namespace {

bool checked = environment("NANOLM_EMULATOR_CHECKED", 0) != 0;

std::size_t map_bytes(std::size_t bytes) { return (bytes / 4 + 1) * sizeof(Cell); }

// Whether nothing orders an earlier access and this one, of which one writes.
bool races(const Touch& before, const Touch& now, bool is_shared, const BlockRunner& block) {
  if (!before.block || !(before.bytes & now.bytes) || (before.is_atomic && now.is_atomic)) return false;
  if (before.block != now.block)
    return !is_shared && before.block >= block.first_block_of_launch() && !block.handovers().order(before, now);
  if (before.thread == now.thread || before.epoch != now.epoch) return false;
  if (before.thread / kWarp == now.thread / kWarp && before.warp_epoch != now.warp_epoch) return false;
  return !block.handovers().order(before, now);
}

void report_race(Thread& thread, const Touch& before, bool before_wrote, const Touch& now, Access access,
                 const Array& array, std::uintptr_t address) {
  if (thread.block->already_found(now.origin, before.origin)) return;
  const Unchecked unchecked;
  const BlockRunner& block = *thread.block;
  const bool blocks = before.block != now.block;
  const auto who = [&](const Touch& touch) {
    return text(block.index_of_thread(touch.thread)) +
           (blocks ? " of block " + text(block.index_of_block(touch.block)) : "");
  };
  const int first_byte = std::countr_zero(static_cast<unsigned>(before.bytes & now.bytes));
  Finding race{"race",
               "",
               block.launch().name,
               array.name ? array.name : "",
               element_text(array, address + static_cast<unsigned>(first_byte), 1),
               {place_text(now.origin, &thread), place_text(before.origin, &thread)},
               {who(now), who(before)}};
  race.says = race.places[0] + ": race on " + text(array) + ", " + race.element + ": thread " + race.threads[0] +
              (access == Access::kRead ? " reads" : " writes") + " here what thread " + race.threads[1] +
              (before_wrote ? " writes at " : " reads at ") + race.places[1];
  race.says +=
      blocks ? ". Nothing orders two blocks of one launch: use an atomic, a place for each block, two kernels, or "
               "__threadfence() and behind it an atomic that both blocks make."
      : before_wrote && access != Access::kRead
          ? ", with no barrier between. Let one of them write it, or put __syncthreads() between the two."
          : ", with no barrier between. Put __syncthreads() between the two.";
  thread.block->found(race);
}

}  // namespace

bool is_checked() { return checked; }
void set_checked(bool on) { checked = on; }

Cell* allocate_cells(std::size_t bytes) {
  void* const pages =
      mmap(nullptr, map_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Cell*>(pages);
}
void free_cells(Cell* cells, std::size_t bytes) {
  if (cells) munmap(cells, map_bytes(bytes));
}
void mark_written(Cell* cells, std::size_t offset, std::size_t bytes) {
  for (std::size_t b = offset; b < offset + bytes; ++b)
    cells[b / 4].written = static_cast<std::uint8_t>(cells[b / 4].written | 1u << b % 4);
}

void touch(Thread& thread, const Array& array, Cell* cells, std::uintptr_t memory, std::uintptr_t address,
           std::size_t bytes, Access access, const Origin& origin) {
  const bool is_shared = array.is_shared;
  const std::size_t offset = address - memory;
  BlockRunner& block = *thread.block;
  Touch now{origin,
            block.serial(),
            block.epoch(),
            block.warp_epoch(thread.number / kWarp),
            thread.fences,
            static_cast<std::uint16_t>(thread.number),
            0,
            access == Access::kAtomic};
  const std::uint64_t first = block.first_block_of_launch();
  for (std::size_t at = offset; at < offset + bytes;) {
    Cell& cell = cells[at / 4];
    const std::size_t begin = at % 4, end = std::min<std::size_t>(4, begin + (offset + bytes - at));
    now.bytes = static_cast<std::uint8_t>((1u << end) - (1u << begin));
    const auto conflict = [&](const Touch& before, bool wrote) {
      if (races(before, now, is_shared, block))
        report_race(thread, before, wrote, now, access, array, memory + at / 4 * 4);
    };
    if (is_shared && cell.written_by != now.block) cell.written = 0, cell.written_by = now.block;
    conflict(cell.write, true);
    if (access != Access::kRead) {
      conflict(cell.read, false);
      conflict(cell.other_read, false);
    }
    const bool reads = access == Access::kRead || access == Access::kAtomic;
    if (reads && (cell.written & now.bytes) != now.bytes)
      thread.block->note_unwritten({origin, thread.number, &array, address, bytes});
    if (access == Access::kRead) {
      // Of two readers keep those that a later writer is most likely to meet: of two blocks, else of two threads.
      const bool stale = cell.read.block < first || (is_shared && cell.read.block != now.block);
      if (stale || (cell.read.block == now.block && (cell.read.epoch != now.epoch || cell.read.thread == now.thread))) {
        if (!stale && cell.read.block == now.block && cell.other_read.block == now.block) cell.other_read = {};
        cell.read = now;
      } else if (cell.other_read.block < first || cell.other_read.block == cell.read.block ||
                 (is_shared && cell.other_read.block != now.block)) {
        cell.other_read = now;
      }
    } else {
      cell.write = now;
      if (access != Access::kBegunWrite) cell.written |= now.bytes;
    }
    at += end - begin;
  }
  if (access == Access::kAtomic) block.handovers().atomic(thread, cells + offset / 4, now);
}

}  // namespace nanolm::emulator
