// What `rewrite` makes of a .cu file:
//   k<T, 4><<<grid, block, bytes, stream>>>(a, b);   emulator::configure("k<T, 4>", k<T, 4>, grid, block, bytes,
//   stream)(a, b);
//   __shared__ float tile[N][M];                     auto& tile = emulator::shared<float[N][M]>("tile");
//   extern __shared__ float memory[];                auto& memory = emulator::dynamic_shared<float>("memory");
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "emulator/vector_types.h"

// Functions so marked are not seen as accesses by a kernel.
#define NANOLM_UNCHECKED __attribute__((no_sanitize("thread")))

namespace nanolm::emulator {

// What a kernel did wrong; what() begins with file and line.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Place {
  const char* file;
  int line;
};
struct Launch {
  const char* name;
  void (*kernel)();  // of its own type
  Place place;
  dim3 grid, block;
  std::size_t dynamic_bytes;
  cudaStream_t stream;
  const void* parameters = nullptr;  // the kernel's arguments, which its threads may read
  std::size_t parameter_bytes = 0;
};
// Runs thread(parameters) for each thread of each block. Throws what a thread threw, or a Fault. A bad configuration
// runs nothing and is what cudaGetLastError() then tells.
void run(const Launch& launch, void (*thread)(const Launch& launch));

template <class... P>
class Configured {
 public:
  explicit Configured(const Launch& launch) : launch_(launch) {}
  void operator()(std::type_identity_t<P>... arguments) const {
    const std::tuple<P...> parameters(arguments...);
    Launch launch = launch_;
    launch.parameters = &parameters;
    launch.parameter_bytes = sizeof parameters;
    // Each thread gets its own copy of the arguments.
    run(launch, [](const Launch& l) NANOLM_UNCHECKED {
      auto* const kernel = reinterpret_cast<void (*)(P...)>(l.kernel);
      std::apply(*kernel, *static_cast<const std::tuple<P...>*>(l.parameters));
    });
  }

 private:
  Launch launch_;
};
template <class... P>
Configured<P...> configure(const char* name, void (*kernel)(P...), dim3 grid, dim3 block, std::size_t dynamic_bytes = 0,
                           cudaStream_t stream = nullptr, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
  return Configured<P...>(
      {name, reinterpret_cast<void (*)()>(kernel), {file, line}, grid, block, dynamic_bytes, stream});
}

// An array's elements, as messages write them: tile[3][5] where `inner` is {columns, 0}.
struct Elements {
  std::size_t bytes = 1, inner[2] = {0, 0};  // sizes of the second and third dimension, 0 where there is none
};
template <class T>
constexpr Elements elements_of() {
  return {sizeof(std::remove_all_extents_t<T>), {std::extent_v<T, 1>, std::extent_v<T, 2>}};
}

// Where a shared variable of the running block lies; the same for each of its threads.
void* shared_address(const char* name, std::size_t bytes, Elements elements, std::size_t alignment, Place place);
void* dynamic_shared_address(const char* name, Elements elements, std::size_t alignment, Place place);

// `alignment` is that of __align__(n).
template <class T, std::size_t alignment = 1>
NANOLM_UNCHECKED T& shared(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return *static_cast<T*>(
      shared_address(name, sizeof(T), elements_of<T>(), std::max(alignof(T), alignment), {file, line}));
}
template <class T, std::size_t alignment = 1>
NANOLM_UNCHECKED T (&dynamic_shared(const char* name, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()))[] {
  return *static_cast<T(*)[]>(
      dynamic_shared_address(name, elements_of<T[1]>(), std::max(alignof(T), alignment), {file, line}));
}

}  // namespace nanolm::emulator
