// How much memory a piece of code holds at its peak, beyond what it was given.
#pragma once

#include <cstdint>

namespace nanolm {

// Counts what operator new and malloc hand out while it lives, less what is freed; one at a time.
// Programs that use it link nanolm_scratch, which replaces both.
class ScratchMeter {
 public:
  ScratchMeter();
  ~ScratchMeter();
  ScratchMeter(const ScratchMeter&) = delete;
  ScratchMeter& operator=(const ScratchMeter&) = delete;
  std::int64_t peak_bytes() const;
};

// Writable static and thread-local storage of the loaded library that holds this address; -1 where the system does not
// tell (anything but Linux).
std::int64_t static_bytes(const void* address_of_a_function);

}  // namespace nanolm
