// Every load and store of a kernel, as the compiler's thread-sanitizer instrumentation reports it: the .cu files are
// compiled with -fsanitize=thread and linked with these functions instead of the sanitizer's library.
#include "faults.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "block.h"
#include "memory.h"
#include "profiler.h"
#include "runtime.h"
#include "text.h"

extern char __executable_start, _end;

namespace nanolm::emulator {

namespace {
std::string hex(std::uintptr_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%zx", number);
  return text;
}
}  // namespace

// By addr2line, which every compiler's package brings.
std::vector<std::string> source_lines(const void* return_address) {
  Dl_info object;
  if (!return_address || !dladdr(return_address, &object)) return {};
  const auto* const header = static_cast<const ElfW(Ehdr)*>(object.dli_fbase);
  const std::uintptr_t base = header->e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(object.dli_fbase) : 0;
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(return_address) - base;
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[std::max<ssize_t>(length, 0)] = 0;
  const std::string file = object.dli_fbase == &__executable_start ? program : object.dli_fname;
  // Optimised code may have an instruction without a line: then that of one a little before it.
  std::string command = "addr2line -a -i -e '";
  for (const char c : file) command += c == '\'' ? "'\\''" : std::string(1, c);
  command += "'";
  for (std::uintptr_t back = 1; back < 64; ++back) command.append(" ").append(hex(address - back));
  std::vector<std::string> found;
  if (FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    char text[4096];
    bool is_over = false;
    while (std::fgets(text, sizeof text, pipe)) {
      const std::string line(text, std::strcspn(text, " (\n"));
      if (line.rfind("0x", 0) == 0) is_over = !found.empty();  // the next address
      const auto colon = line.rfind(':');
      // What a function of the emulator or of the library does for a kernel stands at its caller's line: the .cu file's
      // name is a relative one (rewrite gives it).
      const bool known = colon != std::string::npos && line[0] != '?' && line[0] != '/' && line[colon + 1] != '?' &&
                         line[colon + 1] != '0' && line.find("include/emulator/") == std::string::npos;
      if (!is_over && known) found.push_back(line.rfind("./", 0) == 0 ? line.substr(2) : line);
    }
    pclose(pipe);
  }
  return found;
}

std::string place_text(const Origin& origin, const Thread* thread) {
  if (origin.place.file) return text(origin.place);
  std::vector<std::string> lines = source_lines(origin.return_address);
  if (lines.empty()) return thread ? std::string("kernel ") + thread->block->launch().name : "";
  for (const std::string& line : source_lines(origin.call)) lines.push_back(line);
  std::string says = lines[0];
  const char* front = " (called at line ";
  for (std::size_t i = 1; i < lines.size(); ++i, front = ", at line ")
    says += front + lines[i].substr(lines[i].rfind(':') + 1);
  return says + (lines.size() > 1 ? ")" : "");
}

namespace {

// "3 bytes behind the end of an allocation of 400 bytes"
std::string distance(std::uintptr_t address, std::uintptr_t begin, std::uintptr_t end, const std::string& what) {
  const std::string where = address < begin  ? std::to_string(begin - address) + " bytes in front of "
                            : address > end  ? std::to_string(address - end) + " bytes behind the end of "
                            : address == end ? "right behind the end of "
                                             : "across the end of ";
  return where + what + " of " + std::to_string(end - begin) + " bytes";
}

std::string place(std::uintptr_t address, const Thread& thread) {
  const BlockRunner& block = *thread.block;
  DeviceMemory& memory = DeviceMemory::get();
  if (address < 4096) return "at address " + std::to_string(address) + ": a null pointer";
  if (memory.contains(address)) {
    const Allocation* a = memory.find(address);
    if (!a) a = memory.find(address - 4096);  // the page between two allocations counts for the one before it
    if (!a) return "in device memory that was never allocated";
    if (!a->live) return distance(address, a->begin, a->begin, "freed device memory");
    return distance(address, a->begin, a->end, text(a->array));
  }
  if (block.in_shared(address)) {
    const SharedVariable* const v = block.nearest_shared(address);
    if (!v) return "in shared memory, of which the kernel declared none";
    return distance(address, v->begin, v->end, text(v->array));
  }
  unsigned char is_resident = 0;
  if (mincore(reinterpret_cast<void*>(address & ~std::uintptr_t{4095}), 1, &is_resident) != 0)
    return "at an address where no memory is: did an offset overflow its type?";
  return "in host memory: a kernel sees only what cudaMalloc gave";
}

enum class Wrong { kPlace, kAlignment };
[[noreturn, gnu::cold, gnu::noinline]] void report(std::uintptr_t address, std::size_t bytes, bool write, Wrong wrong,
                                                   const Origin& origin) {
  Thread* const thread = current_thread;
  if (!thread) {
    const std::string place = place_text(origin, nullptr);
    std::fprintf(stderr, "%s%shost code %s device memory; only cudaMemcpy and kernels can\n", place.c_str(),
                 place.empty() ? "" : ": ", write ? "writes" : "reads");
    std::abort();
  }
  thread->unchecked = true;
  std::string says = place_text(origin, thread) + ": thread " + text(thread->index) + " of block " +
                     text(thread->block->block_index()) + (write ? " writes " : " reads ") + std::to_string(bytes) +
                     " bytes ";
  if (wrong == Wrong::kAlignment)
    says += "at an address that is no multiple of " + std::to_string(bytes) + ", but of " +
            std::to_string(address & (~address + 1)) + ": a vector access must be aligned to its size";
  else
    says += place(address, *thread);
  thread->block->fail([&] { return says; });
}

inline Origin here(const void* return_address) {
  const Thread* const thread = current_thread;
  const bool called = thread && thread->depth > 1 && thread->depth <= 32;
  return {return_address, called ? thread->calls[thread->depth - 1] : nullptr};
}

inline void access(const void* pointer, std::size_t bytes, Access kind, bool aligned, const Origin& origin) {
  const bool write = kind != Access::kRead;
  static DeviceMemory* memory = nullptr;
  if (!memory) [[unlikely]]
    memory = &DeviceMemory::get();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Thread* const thread = current_thread;
  if (memory->contains(address)) {
    if (!thread || !memory->holds(address, bytes)) report(address, bytes, write, Wrong::kPlace, origin);
    if (aligned && address % bytes) report(address, bytes, write, Wrong::kAlignment, origin);
    Counters& counted = thread->block->counted;
    if (kind != Access::kRead) ++counted.stores, counted.store_bytes += static_cast<std::int64_t>(bytes);
    if (kind != Access::kWrite) ++counted.loads, counted.load_bytes += static_cast<std::int64_t>(bytes);
    if (profiler::is_on()) [[unlikely]]
      profiler::access(*thread, address, bytes, kind, origin, nullptr);
    const Allocation* const a = memory->find(address);
    if (a->cells) [[unlikely]]
      touch(*thread, a->array, a->cells, a->begin, address, bytes, kind, origin);
    return;
  }
  if (!thread || thread->unchecked || address - thread->stack_begin < thread->stack_end - thread->stack_begin) return;
  if (thread->block->in_shared(address)) {
    const SharedVariable* const v = thread->block->shared_variable(address, bytes);
    if (!v) report(address, bytes, write, Wrong::kPlace, origin);
    if (aligned && address % bytes) report(address, bytes, write, Wrong::kAlignment, origin);
    if (profiler::is_on() && kind != Access::kBegunWrite) [[unlikely]]
      profiler::access(*thread, address, bytes, kind, origin, v);
    if (Cell* const cells = thread->block->shared_cells()) [[unlikely]]
      touch(*thread, v->array, cells, thread->block->arena(), address, bytes, kind, origin);
    return;
  }
  const auto within = [address](const void* begin, std::size_t size) {
    return address - reinterpret_cast<std::uintptr_t>(begin) < size;
  };
  // __constant__ arrays and literals; the kernel's parameters.
  if (within(&__executable_start, static_cast<std::size_t>(&_end - &__executable_start))) return;
  const Launch& launch = thread->block->launch();
  if (!write && within(launch.parameters, launch.parameter_bytes)) return;
  report(address, bytes, write, Wrong::kPlace, origin);
}

void on_segv(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const char* says = nullptr;
  if (current_thread && current_thread->stack_begin - address <= 4096) {
    says = "the local variables of a CUDA thread do not fit its stack of 128 KiB\n";
  } else if (!current_thread && DeviceMemory::get().contains(address)) {
    says = "host code touches device memory; only cudaMemcpy and kernels can\n";
  }
  if (says) (void)!write(2, says, std::strlen(says));
  signal(SIGSEGV, SIG_DFL);  // the access is made again and ends the program
}

}  // namespace

void watch_stack_overflow() {
  // AddressSanitizer gives each thread a signal stack of its own, and takes it back.
  struct SignalStack {
    std::unique_ptr<char[]> memory;
    SignalStack() {
      stack_t known{};
      if (sigaltstack(nullptr, &known) == 0 && !(known.ss_flags & SS_DISABLE)) return;
      constexpr std::size_t kBytes = 64 * 1024;
      memory.reset(new char[kBytes]);
      stack_t own{};
      own.ss_sp = memory.get();
      own.ss_size = kBytes;
      sigaltstack(&own, nullptr);
    }
    ~SignalStack() {
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      if (memory) sigaltstack(&none, nullptr);
    }
  };
  thread_local const SignalStack stack;
  static const bool handled = [] {
    struct sigaction action {};
    action.sa_sigaction = on_segv;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGSEGV, &action, nullptr) == 0;
  }();
  (void)stack, (void)handled;
}

void checked_access(const void* address, std::size_t bytes, Access kind, Place place) {
  access(address, bytes, kind, (bytes & (bytes - 1)) == 0, {nullptr, nullptr, place});
}
void atomic_access(const void* address, std::size_t bytes, Place place) {
  checked_access(address, bytes, Access::kAtomic, place);
}

namespace {
const bool watched = (watch_stack_overflow(), true);  // for host code in front of the first launch
}

}  // namespace nanolm::emulator

using nanolm::emulator::Access;
using nanolm::emulator::access;
using nanolm::emulator::here;

#define NANOLM_HOOK(N)                                                                                              \
  void __tsan_read##N(void* a) { access(a, N, Access::kRead, true, here(__builtin_return_address(0))); }            \
  void __tsan_write##N(void* a) { access(a, N, Access::kWrite, true, here(__builtin_return_address(0))); }          \
  void __tsan_volatile_read##N(void* a) { access(a, N, Access::kRead, true, here(__builtin_return_address(0))); }   \
  void __tsan_volatile_write##N(void* a) { access(a, N, Access::kWrite, true, here(__builtin_return_address(0))); } \
  void __tsan_unaligned_read##N(void* a) { access(a, N, Access::kRead, false, here(__builtin_return_address(0))); } \
  void __tsan_unaligned_write##N(void* a) { access(a, N, Access::kWrite, false, here(__builtin_return_address(0))); }
#define NANOLM_ATOMIC_HOOK(BITS, T)                                                                                 \
  T __tsan_atomic##BITS##_load(const volatile T* a, int) { return __atomic_load_n(a, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##BITS##_store(volatile T* a, T v, int) { __atomic_store_n(a, v, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##BITS##_exchange(volatile T* a, T v, int) { return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##BITS##_fetch_add(volatile T* a, T v, int) { return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##BITS##_fetch_sub(volatile T* a, T v, int) { return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST); } \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* a, T* e, T v, int, int) {                           \
    return __atomic_compare_exchange_n(a, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                 \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* a, T* e, T v, int, int) {                             \
    return __atomic_compare_exchange_n(a, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                 \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* a, T e, T v, int, int) {                                 \
    __atomic_compare_exchange_n(a, &e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                               \
    return e;                                                                                                       \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void* call) {
  nanolm::emulator::Thread* const thread = nanolm::emulator::current_thread;
  if (thread && ++thread->depth <= 32) thread->calls[thread->depth - 1] = call;
}
void __tsan_func_exit() {
  if (nanolm::emulator::current_thread) --nanolm::emulator::current_thread->depth;
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
NANOLM_HOOK(1)
NANOLM_HOOK(2)
NANOLM_HOOK(4)
NANOLM_HOOK(8)
NANOLM_HOOK(16)
void __tsan_read_range(void* a, unsigned long n) {
  if (n) access(a, n, Access::kRead, false, here(__builtin_return_address(0)));
}
void __tsan_write_range(void* a, unsigned long n) {
  if (n) access(a, n, Access::kWrite, false, here(__builtin_return_address(0)));
}
#define NANOLM_COPY_HOOK(NAME)                                                  \
  void* nanolm_##NAME(void* to, const void* from, unsigned long n) {            \
    if (n && nanolm::emulator::current_thread) {                                \
      access(from, n, Access::kRead, false, here(__builtin_return_address(0))); \
      access(to, n, Access::kWrite, false, here(__builtin_return_address(0)));  \
    }                                                                           \
    return std::NAME(to, from, n);                                              \
  }
NANOLM_COPY_HOOK(memcpy)
NANOLM_COPY_HOOK(memmove)
void* nanolm_memset(void* to, int byte, unsigned long n) {
  if (n && nanolm::emulator::current_thread) access(to, n, Access::kWrite, false, here(__builtin_return_address(0)));
  return std::memset(to, byte, n);
}
// Host code of a .cu file: static objects, std::string, std::shared_ptr.
NANOLM_ATOMIC_HOOK(8, unsigned char)
NANOLM_ATOMIC_HOOK(32, unsigned)
NANOLM_ATOMIC_HOOK(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}
