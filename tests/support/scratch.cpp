#include "support/scratch.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define NANOLM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NANOLM_ASAN 1
#endif
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<std::int64_t> held{0}, peak{0};

void count(std::size_t bytes) {
  if (!counting) return;
  const std::int64_t now = held += static_cast<std::int64_t>(bytes);
  for (std::int64_t old = peak; now > old && !peak.compare_exchange_weak(old, now);) {
  }
}
void uncount(std::size_t bytes) {
  if (counting) held -= static_cast<std::int64_t>(bytes);
}
}  // namespace

#if defined(NANOLM_ASAN)

// AddressSanitizer owns malloc; it offers hooks instead. Declared here, since g++ ships the hooks without their header.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                              void (*)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void*);
}
namespace {
[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t bytes) { count(bytes); },
    [](const volatile void* p) { uncount(__sanitizer_get_allocated_size(p)); });
}  // namespace

#elif defined(__GLIBC__)

// operator new calls malloc, so malloc and its relatives are all there is to replace.
#include <malloc.h>
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

static void* counted(void* p) {
  if (p) count(malloc_usable_size(p));
  return p;
}
void* malloc(std::size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(std::size_t n, std::size_t bytes) { return counted(__libc_calloc(n, bytes)); }
void* memalign(std::size_t alignment, std::size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* p = memalign(alignment, bytes);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
void* realloc(void* p, std::size_t bytes) {
  const std::size_t before = p ? malloc_usable_size(p) : 0;
  void* moved = __libc_realloc(p, bytes);
  if (moved || bytes == 0) uncount(before);
  return counted(moved);
}
void free(void* p) {
  if (p) uncount(malloc_usable_size(p));
  __libc_free(p);
}
}

#else

#if defined(__APPLE__)
#include <malloc/malloc.h>
static std::size_t usable(void* p) { return malloc_size(p); }
#else
#include <malloc.h>
static std::size_t usable(void* p) { return malloc_usable_size(p); }
#endif
void* operator new(std::size_t bytes) {
  void* p = std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  count(usable(p));
  return p;
}
void operator delete(void* p) noexcept {
  if (p) uncount(usable(p));
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

#endif

namespace nanolm {

ScratchMeter::ScratchMeter() {
  held = 0;
  peak = 0;
  counting = true;
}
ScratchMeter::~ScratchMeter() { counting = false; }
std::int64_t ScratchMeter::peak_bytes() const { return peak; }

}  // namespace nanolm

#if defined(__linux__)
#include <link.h>
namespace {
struct Search {
  std::uintptr_t address;
  std::int64_t bytes;
};
int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  std::int64_t writable = 0;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search->address - start < segment.p_memsz) holds = true;
    if (segment.p_type == PT_TLS || (segment.p_type == PT_LOAD && (segment.p_flags & PF_W)))
      writable += static_cast<std::int64_t>(segment.p_memsz);
  }
  if (holds) search->bytes = writable;
  return holds;
}
}  // namespace
std::int64_t nanolm::static_bytes(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), -1};
  dl_iterate_phdr(visit, &search);
  return search.bytes;
}
#else
std::int64_t nanolm::static_bytes(const void*) { return -1; }
#endif
