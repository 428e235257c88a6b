// What catches an access that a device would not have, and says where it is.
#pragma once

#include <cstddef>

#include "emulator/launch.h"

namespace nanolm::emulator {

// Checks and counts what the runtime itself reads or writes for a kernel's thread; aligned accesses of a size that is a
// power of two must lie on a multiple of it.
void checked_access(const void* address, std::size_t bytes, bool write, Place place);

// Lets this system thread say that a fiber's stack is used up, or that host code touched device memory, before it ends.
void watch_stack_overflow();

}  // namespace nanolm::emulator
