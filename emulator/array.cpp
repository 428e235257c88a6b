#include "array.h"

namespace nanolm::emulator {

std::string text(Index i) { return std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z); }

std::string text(const Array& array) {
  if (!array.name) return "an allocation of device memory";
  return (array.is_shared ? "the shared array " : "") + std::string(array.name);
}

std::string element_text(const Array& array, std::uintptr_t address, std::size_t bytes) {
  const auto first = static_cast<std::int64_t>(address - array.first);
  const auto last = first + static_cast<std::int64_t>(bytes) - 1;
  if (!array.name) return "bytes " + std::to_string(first) + " to " + std::to_string(last);
  // Which element holds the byte at an offset, and how it is written.
  const auto size = static_cast<std::int64_t>(array.elements.bytes);
  const auto element = [size](std::int64_t offset) { return (offset - (offset < 0 ? size - 1 : 0)) / size; };
  const auto index = [&array](std::int64_t i) {
    const auto rows = static_cast<std::int64_t>(array.elements.inner[0]),
               columns = static_cast<std::int64_t>(array.elements.inner[1]);
    std::string says = "[";
    const std::int64_t inner = std::max<std::int64_t>(1, rows) * std::max<std::int64_t>(1, columns);
    says.append(std::to_string(i / inner)).append("]");
    if (rows > 0) says.append("[").append(std::to_string(i % inner / std::max<std::int64_t>(1, columns))).append("]");
    if (columns > 0) says.append("[").append(std::to_string(i % columns)).append("]");
    return says;
  };
  if (element(first) == element(last)) return "element " + index(element(first));
  return "elements " + index(element(first)) + " to " + index(element(last));
}

}  // namespace nanolm::emulator
