// Device memory: a range of addresses that host code cannot touch, and the allocations in it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>

#include "shadow.h"

namespace nanolm::emulator {

struct Allocation {
  std::uintptr_t begin, end;
  bool live;
  Cell* cells;  // null where it is not checked
  Array array;
};

class DeviceMemory {
 public:
  static DeviceMemory& get();

  // Null where no room is left. Aligned to 256 bytes and, so that nobody relies on more, to no more; filled with NaN.
  void* allocate(std::size_t bytes);
  bool free(void* pointer);
  // Calls the array that begins at an address in an allocation by this name from now on.
  void name(const void* pointer, const std::string& name, std::size_t element_bytes);
  // What is allocated from now on: as much as there are addresses, and zeros, so that pages exist once they are
  // touched.
  void set_sparse(bool on) { sparse_ = on; }
  std::size_t free_bytes() const { return limit_ - std::min(limit_, used_); }
  std::size_t limit() const { return limit_; }

  bool contains(std::uintptr_t address) const { return address - base_ < kReserved; }
  // The allocation, live or freed, whose pages hold this address of the range; null between them.
  const Allocation* find(std::uintptr_t address) const { return pages_[(address - base_) / kPage]; }
  // Whether these bytes lie in one live allocation.
  bool holds(std::uintptr_t address, std::size_t bytes) const {
    if (!contains(address)) return false;
    const Allocation* const a = find(address);
    return a && a->live && address >= a->begin && address + bytes <= a->end;
  }

  // Host code wrote these bytes.
  void written(const void* pointer, std::size_t bytes);

  // While one of these lives, the memory can be read and written.
  class Opened {
   public:
    Opened() { get().open(); }
    ~Opened() { get().close(); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
  };

 private:
  static constexpr std::size_t kReserved = std::size_t{1} << 36, kPage = 4096;
  DeviceMemory();
  void open();
  void close();
  void protect(int protection);

  std::uintptr_t base_ = 0;
  const Allocation** pages_ = nullptr;
  std::deque<Allocation> allocations_;  // keeps their addresses
  std::set<std::string> names_;
  std::size_t next_ = kPage;  // offset of the first page never given out
  std::size_t used_ = 0, limit_ = 0;
  int users_ = 0;
  bool sparse_ = false;
  std::recursive_mutex mutex_;
};

}  // namespace nanolm::emulator
