// The __shared__ arrays of a block: where they lie in the arena, and which of them an address belongs to.
#include <cstring>

#include "block.h"
#include "text.h"

namespace nanolm::emulator {
namespace {

constexpr std::size_t kGap = 128;  // behind each; also their alignment

}  // namespace

void* BlockRunner::add_variable(const SharedVariable& variable) {
  if (variables_.size() >= 255)
    fail([&] { return text(variable.place) + ": more than 255 shared variables in a kernel"; });
  variables_.push_back(variable);
  const auto id = static_cast<std::uint8_t>(variables_.size());
  for (std::uintptr_t a = variable.begin; a < variable.end; a += 4) owner_[(a - arena_) / 4] = id;
  std::memset(reinterpret_cast<void*>(variable.begin), 0xff, variable.end - variable.begin);
  return reinterpret_cast<void*>(variable.begin);
}

void* BlockRunner::shared(const char* name, std::size_t bytes, Elements elements, std::size_t alignment, Place place) {
  for (const SharedVariable& v : variables_)
    if (v.place.line == place.line && !v.dynamic && same(v.array.name, name) && same(v.place, place))
      return reinterpret_cast<void*>(v.begin);
  static_bytes_ = (static_bytes_ + alignment - 1) / alignment * alignment + bytes;
  const std::size_t begin = static_end_;
  static_end_ += (bytes + 2 * kGap - 1) / kGap * kGap;
  if (static_bytes_ > 48 * 1024 || static_end_ > kStatic)
    fail([&] {
      return text(place) + ": " + name + ": the kernel's __shared__ arrays take " + std::to_string(static_bytes_) +
             " bytes, the limit is 49152. More is to be had as extern __shared__ only.";
    });
  return add_variable({{name, true, arena_ + begin, elements}, place, arena_ + begin, arena_ + begin + bytes, false});
}

void* BlockRunner::dynamic_shared(const char* name, Elements elements, std::size_t alignment, Place place) {
  const std::uintptr_t begin = arena_ + kStatic;
  if (begin % alignment)
    fail([&] {
      return text(place) + ": " + name + ": no dynamic shared memory is aligned to " + std::to_string(alignment);
    });
  for (const SharedVariable& v : variables_)
    if (v.dynamic) return reinterpret_cast<void*>(v.begin);
  return add_variable({{name, true, begin, elements}, place, begin, begin + launch_->dynamic_bytes, true});
}

const SharedVariable* BlockRunner::nearest_shared(std::uintptr_t address) const {
  const SharedVariable* nearest = nullptr;
  std::uintptr_t distance = 0;
  for (const SharedVariable& v : variables_) {
    const std::uintptr_t d = address < v.begin ? v.begin - address : address - v.end + 1;
    if (!nearest || d < distance) nearest = &v, distance = d;
  }
  return nearest;
}

}  // namespace nanolm::emulator
