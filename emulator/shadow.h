// What is known of each 4 bytes of memory that kernels share: who wrote and who read them last, and whether anybody
// wrote them at all. It finds races and reads of unwritten memory; it is kept only when NANOLM_EMULATOR_CHECKED is set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.h"
#include "emulator/launch.h"

namespace nanolm::emulator {

struct Thread;

enum class Access { kRead, kWrite, kAtomic, kBegunWrite };  // the last: of cp.async, which lands later

// Where an access is made: a return address and that of the call which led there, or a place where one is known.
struct Origin {
  const void* return_address;
  const void* call = nullptr;
  Place place{};
};

struct Touch {
  Origin origin{};
  std::uint64_t block = 0;  // its serial number, 0: nobody
  std::uint32_t epoch = 0, warp_epoch = 0;
  std::uint32_t fences = 0;  // that its thread had behind it
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  // which of the 4
  bool is_atomic = false;
};
struct Cell {
  Touch write, read, other_read;  // two readers, of two blocks or threads where there were two
  std::uint64_t written_by = 0;   // shared memory is new in each block
  std::uint8_t written = 0;       // which of the 4 bytes
};

// A read of what nobody had written. It is reported at the next barrier: until then a write may show that it is a race.
struct Unwritten {
  Origin origin;
  int thread;
  const Array* array;
  std::uintptr_t address;
  std::size_t bytes;
};

bool is_checked();

// The cells of memory that begins at a multiple of 4. They are zero pages until they are touched.
Cell* allocate_cells(std::size_t bytes);
void free_cells(Cell* cells, std::size_t bytes);
void mark_written(Cell* cells, std::size_t offset, std::size_t bytes);

// A thread's access to bytes of an array, whose cells begin with those of address `begin`; ends the launch when it is a
// race, or reads what nobody wrote.
void touch(Thread& thread, const Array& array, Cell* cells, std::uintptr_t begin, std::uintptr_t address,
           std::size_t bytes, Access access, const Origin& origin);

}  // namespace nanolm::emulator
