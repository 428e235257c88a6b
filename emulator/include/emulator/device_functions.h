// Keywords, indices, barriers, warp functions, atomics and arithmetic of device code.
#pragma once

#include <math.h>  // exp(float), isinf(float) and their like at global scope, as CUDA has them

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulator/launch.h"
#include "emulator/vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__ const
// `rewrite` leaves no declaration with it; one that it did not see must not compile.
#define __shared__ this_form_of___shared___is_not_supported_by_the_emulator

namespace nanolm::emulator {

struct Index {
  unsigned x, y, z;
};
Index thread_index();
Index block_index();
Index block_size();
Index grid_size();

enum class Barrier { kPlain, kCount, kAnd, kOr };
int block_barrier(Barrier kind, int predicate, Place place);
void thread_fence(bool of_device);

// Functions in which the lanes of a mask meet. A lane gives 8 bytes and names the lane whose 8 bytes it wants, or gives
// a predicate and gets the lanes for which it holds.
std::uint64_t exchange(const char* name, unsigned mask, std::uint64_t value, int source_lane, Place place);
unsigned vote(const char* name, unsigned mask, bool predicate, Place place);
int lane_id();

// cp.async: 16 bytes to shared memory, of which `bytes` come from the source and the rest are zeros. They land in
// async_wait(), which leaves the latest groups in flight.
void async_copy(void* shared, const void* global, int bytes, Place place = {__builtin_FILE(), __builtin_LINE()});
void async_commit();
void async_wait(int groups_in_flight);

[[noreturn]] void assertion_failed(const char* expression, Place place);

// memcpy() and memset() of a kernel, which checks them; compilers' own are not seen.
extern "C" void* nanolm_memcpy(void* to, const void* from, std::size_t bytes);
extern "C" void* nanolm_memmove(void* to, const void* from, std::size_t bytes);
extern "C" void* nanolm_memset(void* to, int byte, std::size_t bytes);

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Atomic on one object; `next` maps the old value to the new one.
void atomic_access(const void* address, std::size_t bytes, Place place);
template <class T, class Next>
NANOLM_UNCHECKED T atomic(T* address, Next next, Place place) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(T) == sizeof(Word), "atomics are on 4 or 8 bytes");
  atomic_access(address, sizeof(T), place);
  auto* const word = reinterpret_cast<Word*>(address);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &before, std::bit_cast<Word>(next(std::bit_cast<T>(before))), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(before);
}

}  // namespace nanolm::emulator

#define threadIdx (::nanolm::emulator::thread_index())
#define blockIdx (::nanolm::emulator::block_index())
#define blockDim (::nanolm::emulator::block_size())
#define gridDim (::nanolm::emulator::grid_size())
constexpr int warpSize = 32;

#define NANOLM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(NANOLM_HERE) {
  using namespace nanolm::emulator;
  block_barrier(Barrier::kPlain, 0, {file, line});
}
inline int __syncthreads_count(int predicate, NANOLM_HERE) {
  using namespace nanolm::emulator;
  return block_barrier(Barrier::kCount, predicate, {file, line});
}
inline int __syncthreads_and(int predicate, NANOLM_HERE) {
  using namespace nanolm::emulator;
  return block_barrier(Barrier::kAnd, predicate, {file, line});
}
inline int __syncthreads_or(int predicate, NANOLM_HERE) {
  using namespace nanolm::emulator;
  return block_barrier(Barrier::kOr, predicate, {file, line});
}
inline void __threadfence() { nanolm::emulator::thread_fence(true); }
inline void __threadfence_system() { nanolm::emulator::thread_fence(true); }
inline void __threadfence_block() { nanolm::emulator::thread_fence(false); }

// `width` cuts a warp into parts of that many lanes; lanes count within their part.
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, NANOLM_HERE) {
  using namespace nanolm::emulator;
  const int first = lane_id() & ~(width - 1);
  return from_bits<T>(exchange("__shfl_sync", mask, to_bits(value), first + (lane & (width - 1)), {file, line}));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, NANOLM_HERE) {
  using namespace nanolm::emulator;
  const int lane = lane_id(), first = lane & ~(width - 1), from = lane - static_cast<int>(delta);
  return from_bits<T>(exchange("__shfl_up_sync", mask, to_bits(value), from < first ? lane : from, {file, line}));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, NANOLM_HERE) {
  using namespace nanolm::emulator;
  const int lane = lane_id(), last = lane | (width - 1), from = lane + static_cast<int>(delta);
  return from_bits<T>(exchange("__shfl_down_sync", mask, to_bits(value), from > last ? lane : from, {file, line}));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, NANOLM_HERE) {
  using namespace nanolm::emulator;
  const int lane = lane_id(), from = lane ^ bits;
  // A lane of a later part is not read, one of an earlier part is.
  return from_bits<T>(
      exchange("__shfl_xor_sync", mask, to_bits(value), from > (lane | (width - 1)) ? lane : from, {file, line}));
}
inline void __syncwarp(unsigned mask = 0xffffffffu, NANOLM_HERE) {
  nanolm::emulator::vote("__syncwarp", mask, false, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, NANOLM_HERE) {
  return nanolm::emulator::vote("__ballot_sync", mask, predicate != 0, {file, line});
}
inline int __any_sync(unsigned mask, int predicate, NANOLM_HERE) {
  return nanolm::emulator::vote("__any_sync", mask, predicate != 0, {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, NANOLM_HERE) {
  return nanolm::emulator::vote("__all_sync", mask, predicate == 0, {file, line}) == 0;
}

#define NANOLM_ATOMIC(NAME, EXPRESSION)                                                                              \
  template <class T>                                                                                                 \
  T NAME(T* address, std::type_identity_t<T> value, NANOLM_HERE) {                                                   \
    return nanolm::emulator::atomic(address, [value]([[maybe_unused]] T old) { return static_cast<T>(EXPRESSION); }, \
                                    {file, line});                                                                   \
  }
NANOLM_ATOMIC(atomicAdd, old + value)
NANOLM_ATOMIC(atomicSub, old - value)
NANOLM_ATOMIC(atomicMax, old < value ? value : old)
NANOLM_ATOMIC(atomicMin, value < old ? value : old)
NANOLM_ATOMIC(atomicExch, value)
NANOLM_ATOMIC(atomicAnd, old& value)
NANOLM_ATOMIC(atomicOr, old | value)
NANOLM_ATOMIC(atomicXor, old ^ value)
#undef NANOLM_ATOMIC
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value, NANOLM_HERE) {
  return nanolm::emulator::atomic(address, [=](T old) { return old == compare ? value : old; }, {file, line});
}

// Arithmetic. The compiler may contract a * b + c as nvcc does; the functions below it may not.
inline float __fmul_rn(float a, float b) {
  volatile float product = a * b;
  return product;
}
inline float __fadd_rn(float a, float b) {
  volatile float x = a, y = b;
  return x + y;
}
inline float __fsub_rn(float a, float b) {
  volatile float x = a, y = b;
  return x - y;
}
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __expf(float a) { return std::exp(a); }
inline float __logf(float a) { return std::log(a); }
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
inline int __float_as_int(float a) { return std::bit_cast<int>(a); }
inline unsigned __float_as_uint(float a) { return std::bit_cast<unsigned>(a); }
inline float __int_as_float(int a) { return std::bit_cast<float>(a); }
inline float __uint_as_float(unsigned a) { return std::bit_cast<float>(a); }
inline int __popc(unsigned a) { return std::popcount(a); }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __clz(int a) { return std::countl_zero(static_cast<unsigned>(a)); }
template <class T>
T __ldg(const T* address) {
  return *address;
}
// As CUDA has them: for any two arithmetic types, at global scope. Of a NaN and a number, the number.
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  if constexpr (std::is_floating_point_v<std::common_type_t<A, B>>) {
    return std::fmin(static_cast<std::common_type_t<A, B>>(a), static_cast<std::common_type_t<A, B>>(b));
  } else {
    return static_cast<std::common_type_t<A, B>>(b) < static_cast<std::common_type_t<A, B>>(a) ? b : a;
  }
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  if constexpr (std::is_floating_point_v<std::common_type_t<A, B>>) {
    return std::fmax(static_cast<std::common_type_t<A, B>>(a), static_cast<std::common_type_t<A, B>>(b));
  } else {
    return static_cast<std::common_type_t<A, B>>(a) < static_cast<std::common_type_t<A, B>>(b) ? b : a;
  }
}

// assert() in a kernel ends the launch and names the thread; on the host it is the ordinary one.
#ifndef NDEBUG
#undef assert
#define assert(expression) \
  ((expression) ? static_cast<void>(0) : ::nanolm::emulator::assertion_failed(#expression, {__FILE__, __LINE__}))
#endif

#ifdef NANOLM_EMULATED
namespace std {
using ::nanolm::emulator::nanolm_memcpy;
using ::nanolm::emulator::nanolm_memmove;
using ::nanolm::emulator::nanolm_memset;
}  // namespace std
using std::nanolm_memcpy, std::nanolm_memmove, std::nanolm_memset;
#define memcpy(...) nanolm_memcpy(__VA_ARGS__)
#define memmove(...) nanolm_memmove(__VA_ARGS__)
#define memset(...) nanolm_memset(__VA_ARGS__)
#ifdef __clang__
// Clang copies a struct by a call of memcpy; g++ reports the range that it copies.
__asm__(".set memcpy, nanolm_memcpy\n.set memmove, nanolm_memmove\n.set memset, nanolm_memset");
#endif
#endif
