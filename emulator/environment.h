// Whole numbers from environment variables.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace nanolm::emulator {

inline std::size_t environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end || *text == '-') throw std::invalid_argument(std::string(name) + "='" + text + "' is not a whole number");
  return value;
}

}  // namespace nanolm::emulator
