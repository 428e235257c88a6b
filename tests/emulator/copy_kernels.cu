// Every way to copy a vector of 8 or 16 bytes from one place in memory to another: tests/emulator/copies_test.cpp
// counts the accesses.
#include <cstring>

#include "kernels.h"

namespace nanolm::emulated {

namespace {

template <class T>
struct Pair {
  int index;
  T value;
};
template <class T>
struct Both {
  T values[2];
};

template <class T>
__device__ T loaded(const T* from) {
  return *from;
}
template <class T>
__device__ void store(T* to, T value) {
  *to = value;
}
template <class T>
__device__ __attribute__((noinline)) T passed_on(T value) {
  return value;
}
template <class T>
__device__ const T& larger(const T& a, const T& b) {
  return a.x < b.x ? b : a;
}

// memory[0] is copied to memory[1] and, where a copy is of two, memory[2] to memory[3].
template <class T>
__global__ void copy_kernel(Copy how, T* memory) {
  T *const from = memory, *const to = memory + 1;
  if (how == Copy::kAssignment) *to = *from;
  if (how == Copy::kConstruction) {
    const T value(*from);
    *to = value;
  }
  if (how == Copy::kInitialisation) {
    T value = from[0];
    to[0] = value;
  }
  if (how == Copy::kZeroThenAssignment) {
    T value{};
    if (threadIdx.x < blockDim.x) value = *from;
    *to = value;
  }
  if (how == Copy::kReturnedByValue) *to = loaded(from);
  if (how == Copy::kPassedByValue) store(to, *from);
  if (how == Copy::kPassedOn) *to = passed_on(*from);
  if (how == Copy::kElementToElement) memory[threadIdx.x + 1] = memory[threadIdx.x];
  if (how == Copy::kReinterpreted) {
    const char* const bytes = reinterpret_cast<const char*>(memory);
    *reinterpret_cast<T*>(reinterpret_cast<char*>(memory) + sizeof(T)) = *reinterpret_cast<const T*>(bytes);
  }
  if (how == Copy::kReadOnly) *to = __ldg(from);
  if (how == Copy::kConditional) *to = threadIdx.x < blockDim.x ? *from : T{};
  if (how == Copy::kByReference) {
    const T& value = *from;
    T& place = *to;
    place = value;
  }
  if (how == Copy::kMemberOfAStruct)
    reinterpret_cast<Both<T>*>(memory)->values[1] = reinterpret_cast<Both<T>*>(memory)->values[0];
  if (how == Copy::kThroughAStruct) {
    const Pair<T> pair{1, *from};
    *to = pair.value;
  }
  if (how == Copy::kThroughLocalArray) {
    T values[2];
    for (int i = 0; i < 2; ++i) values[i] = memory[2 * i];
    for (int i = 0; i < 2; ++i) memory[2 * i + 1] = values[i];
  }
  if (how == Copy::kStruct) reinterpret_cast<Both<T>*>(memory)[1] = reinterpret_cast<Both<T>*>(memory)[0];
  if (how == Copy::kMemcpy) memcpy(to, from, sizeof(T));
  if (how == Copy::kStdMemcpy) std::memcpy(static_cast<void*>(to), from, sizeof(T));
  if (how == Copy::kMemcpyOfTwo) memcpy(memory + 2, memory, 2 * sizeof(T));
  if (how == Copy::kLambda) {
    const auto get = [from](int i) { return from[i]; };
    *to = get(0);
  }
  if (how == Copy::kMakeAndMembers) to->x = from->x, to->y = from->y;
}

}  // namespace

template <class T>
void copy(Copy how, T* memory) {
  copy_kernel<T><<<1, 1>>>(how, memory);
}
template void copy(Copy, float2*);
template void copy(Copy, float4*);
template void copy(Copy, int2*);
template void copy(Copy, int4*);
template void copy(Copy, uint4*);
template void copy(Copy, double2*);
template void copy(Copy, longlong2*);

}  // namespace nanolm::emulated
