// Comparison that names the worst element. Accepts only what is within the tolerance: NaN never is.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace nanolm {

// "[batch 1, head 0, row 7, column 3]" for dims {{"batch", 2}, {"head", 3}, {"row", 9}, {"column", 4}}.
struct Dim {
  const char* name;
  std::int64_t size;
};
inline std::string index_name(std::size_t flat, const std::vector<Dim>& dims) {
  if (dims.empty()) return "[" + std::to_string(flat) + "]";
  std::string text;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(dims[d].size);
    text = std::string(d == 0 ? "[" : ", ") + dims[d].name + " " + std::to_string(flat % size) + text;
    flat /= size;
  }
  return text + "]";
}

// Equal infinities are equal (GoogleTest 1.12's EXPECT_NEAR says they are not).
inline bool is_close(double actual, double expected, double tolerance) {
  return actual == expected || std::abs(actual - expected) <= tolerance;
}

template <class Actual, class Expected>
testing::AssertionResult all_close(const Actual& actual, const Expected& expected, double tolerance,
                                   const std::vector<Dim>& dims = {}) {
  if (actual.size() != expected.size())
    return testing::AssertionFailure() << actual.size() << " elements, expected " << expected.size();
  std::size_t wrong = 0, worst = 0;
  double worst_error = -1;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    if (is_close(a, e, tolerance)) continue;
    ++wrong;
    const double error = std::isnan(a) ? HUGE_VAL : std::abs(a - e);
    if (error > worst_error) worst_error = error, worst = i;
  }
  if (wrong == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << wrong << " of " << actual.size() << " elements are wrong, the worst at "
                                     << index_name(worst, dims) << ": " << static_cast<double>(actual[worst])
                                     << ", expected " << static_cast<double>(expected[worst]) << ", tolerance "
                                     << tolerance;
}

// One number, compared by relative error; the default is what a formula in double precision reaches.
inline testing::AssertionResult is_near(double actual, double expected, double relative = 1e-9) {
  if (is_close(actual, expected, relative * std::abs(expected))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << testing::PrintToString(actual) << ", expected "
                                     << testing::PrintToString(expected) << " (relative tolerance " << relative << ")";
}

}  // namespace nanolm
