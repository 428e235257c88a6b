// Words that faults are made of.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "emulator/launch.h"

namespace nanolm::emulator {

inline std::string text(Place place) { return std::string(place.file) + ":" + std::to_string(place.line); }
inline bool same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }
inline bool same(Place a, Place b) { return a.line == b.line && same(a.file, b.file); }

// "threads 0 to 31, 40", of sorted numbers.
inline std::string numbers_text(const char* what, const std::vector<int>& numbers) {
  std::string says;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    says += (says.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) says += " to " + std::to_string(numbers[last]);
    i = last + 1;
  }
  return std::string(what) + (numbers.size() == 1 ? " " : "s ") + says;
}

}  // namespace nanolm::emulator
