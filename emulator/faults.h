// What catches an access that a device would not have, and says where it is.
#pragma once

#include <cstddef>
#include <string>

#include "emulator/launch.h"
#include "shadow.h"

namespace nanolm::emulator {

// "exercises/cuda/03_flash_forward.cu:52 (called at line 66)", or "kernel NAME" where no line is known.
std::string place_text(const Origin& origin, const Thread* thread);

// Checks and counts what the runtime itself reads or writes for a kernel's thread; aligned accesses of a size that is a
// power of two must lie on a multiple of it.
void checked_access(const void* address, std::size_t bytes, Access kind, Place place);

// Lets this system thread say that a fiber's stack is used up, or that host code touched device memory, before it ends.
void watch_stack_overflow();

}  // namespace nanolm::emulator
