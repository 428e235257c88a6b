#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "emulator/counters.h"
#include "environment.h"

namespace nanolm::emulator {
namespace {

void* map(std::size_t bytes, int protection) {
  void* const pages = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

}  // namespace

void name_array(const void* pointer, const std::string& name, std::size_t element_bytes) {
  DeviceMemory::get().name(pointer, name, element_bytes);
}

DeviceMemory& DeviceMemory::get() {
  static DeviceMemory* const memory = new DeviceMemory;  // outlives whatever static objects hold buffers
  return *memory;
}

DeviceMemory::DeviceMemory()
    : base_(reinterpret_cast<std::uintptr_t>(map(kReserved, PROT_NONE))),
      pages_(static_cast<const Allocation**>(map(kReserved / kPage * sizeof(Allocation*), PROT_READ | PROT_WRITE))),
      limit_(environment("NANOLM_EMULATOR_MEMORY_BYTES", std::size_t{8} << 30)) {}

void* DeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kOffset = 256;
  const std::size_t pages = (kOffset + bytes + kPage - 1) / kPage;
  // A page that belongs to nobody ends each allocation. Freed addresses are not given out again while others are left.
  if ((bytes > free_bytes() && !sparse_) || next_ + (pages + 1) * kPage > kReserved) return nullptr;
  const std::uintptr_t begin = base_ + next_ + kOffset;
  allocations_.push_back({begin,
                          begin + bytes,
                          true,
                          is_checked() && !sparse_ ? allocate_cells(bytes) : nullptr,
                          {nullptr, false, begin, {}}});
  for (std::size_t p = 0; p < pages; ++p) pages_[next_ / kPage + p] = &allocations_.back();
  next_ += (pages + 1) * kPage;
  used_ += bytes;
  if (users_ > 0) protect(PROT_READ | PROT_WRITE);
  if (sparse_) return reinterpret_cast<void*>(begin);
  const Opened opened;
  std::memset(reinterpret_cast<void*>(begin), 0xff, bytes);
  return reinterpret_cast<void*>(begin);
}

bool DeviceMemory::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!contains(address)) return false;
  auto* const a = const_cast<Allocation*>(find(address));
  if (!a || !a->live || a->begin != address) return false;
  a->live = false;
  used_ -= a->end - a->begin;
  free_cells(std::exchange(a->cells, nullptr), a->end - a->begin);
  madvise(reinterpret_cast<void*>(address & ~(kPage - 1)), a->end - (address & ~(kPage - 1)), MADV_DONTNEED);
  return true;
}

void DeviceMemory::name(const void* pointer, const std::string& name, std::size_t element_bytes) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!contains(address)) return;
  if (auto* const a = const_cast<Allocation*>(find(address)))
    a->array = {names_.insert(name).first->c_str(), false, address, {element_bytes}};
}

void DeviceMemory::written(const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const Allocation* const a = find(address);
  if (a->cells) mark_written(a->cells, address - a->begin, bytes);
}

void DeviceMemory::open() {
  const std::lock_guard lock(mutex_);
  if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
}
void DeviceMemory::close() {
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) protect(PROT_NONE);
}
void DeviceMemory::protect(int protection) {
  if (mprotect(reinterpret_cast<void*>(base_), next_, protection)) std::abort();
}

}  // namespace nanolm::emulator
