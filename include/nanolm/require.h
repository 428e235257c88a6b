// The checks that every lesson is given: a broken precondition is one std::invalid_argument that names the values.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace nanolm {

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void refuse(const Parts&... parts) {
  std::ostringstream message;
  message.precision(17);
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}
// require(block_size > 0, "block_size must be positive, got ", block_size);
// Small enough to be compiled into its callers: a check that holds costs a comparison.
template <class... Parts>
inline void require(bool holds, const Parts&... parts) {
  if (!holds) refuse(parts...);
}

// Product of non-negative sizes; refuses a negative one and a product above 2^63 - 1.
inline std::int64_t checked_product(const char* name, std::initializer_list<std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    require(size >= 0, name, ": size ", size, " is negative");
    require(size == 0 || product <= std::numeric_limits<std::int64_t>::max() / size, name, ": ", product, " x ", size,
            " elements do not fit 64 bits");
    product *= size;
  }
  return product;
}

// Counts in cost formulas are double: finite and not negative.
inline void check_counts(std::initializer_list<double> counts) {
  for (const double c : counts) require(std::isfinite(c) && c >= 0, "a count must be finite and not negative, got ", c);
}

// A span must hold exactly what its shape says.
inline void require_size(const char* name, std::size_t size, std::int64_t expected) {
  require(size == static_cast<std::size_t>(expected), name, " holds ", size, " elements, its shape needs ", expected);
}

}  // namespace nanolm
