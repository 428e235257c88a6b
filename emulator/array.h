// An array that threads share, as messages call it and its elements.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/device_functions.h"
#include "emulator/launch.h"

namespace nanolm::emulator {

struct Array {
  const char* name;  // null where nobody named the allocation
  bool is_shared;
  std::uintptr_t first;  // address of element 0
  Elements elements;
};

std::string text(Index i);
// "the shared array tile", "K", "an allocation of device memory"
std::string text(const Array& array);
// "element [3][5]", "elements [4] to [7]"; of an allocation without a name "bytes 16 to 31"
std::string element_text(const Array& array, std::uintptr_t address, std::size_t bytes);

}  // namespace nanolm::emulator
