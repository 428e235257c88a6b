// Comparison that names the worst element. Accepts only what is within the tolerance: NaN never is.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace nanolm {

// "[batch 1, head 0, row 7, column 3]" for dims {{"batch", 2}, {"head", 3}, {"row", 9}, {"column", 4}}.
struct Dim {
  const char* name;
  std::int64_t size;
  std::int64_t tile = 0;  // that the lesson cuts this dimension into; 0: none, or not known
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

// Where the wrong elements lie, if not everywhere: for each dimension that they share one place in, or fill from some
// place to the end, or lie in whose last tile, "head 1, from row 15 on". Such a pattern is often half of the diagnosis.
inline std::string pattern(const std::vector<std::size_t>& wrong, const std::vector<Dim>& dims) {
  std::string text;
  std::size_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(dims[d].size);
    std::vector<bool> seen(size);
    for (const std::size_t flat : wrong) seen[flat / stride % size] = true;
    stride *= size;
    const auto first = static_cast<std::size_t>(std::find(seen.begin(), seen.end(), true) - seen.begin());
    const auto places = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
    const std::int64_t tail = dims[d].tile > 0 ? dims[d].size % dims[d].tile : 0;  // rows of a last, partial tile
    const bool in_tail = tail > 0 && tail < dims[d].size && first + static_cast<std::size_t>(tail) >= size;
    if (places == size || (places > 1 && first + places != size && !in_tail)) continue;
    const std::string place = std::string(dims[d].name) + " " + std::to_string(first);
    text = (places == 1 ? place : "from " + place + " on") + (in_tail ? " (only the last, partial tile)" : "") +
           (text.empty() ? "" : ", ") + text;
  }
  return text;
}

template <class Actual, class Expected>
testing::AssertionResult all_close(const Actual& actual, const Expected& expected, double tolerance,
                                   const std::vector<Dim>& dims = {}) {
  if (actual.size() != expected.size())
    return testing::AssertionFailure() << actual.size() << " elements, expected " << expected.size();
  std::vector<std::size_t> wrong;
  std::size_t worst = 0, nans = 0;
  double worst_error = -1;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    if (is_close(a, e, tolerance)) continue;
    wrong.push_back(i);
    nans += std::isnan(a);
    const double error = std::isnan(a) ? HUGE_VAL : std::abs(a - e);
    if (error > worst_error) worst_error = error, worst = i;
  }
  if (wrong.empty()) return testing::AssertionSuccess();
  std::ostringstream says;
  says.precision(7);
  says << wrong.size() << " of " << actual.size() << " elements are wrong, the worst at " << index_name(worst, dims)
       << ": " << static_cast<double>(actual[worst]) << ", expected " << static_cast<double>(expected[worst])
       << ", tolerance " << tolerance;
  const std::string where =
      pattern(wrong, dims.empty() ? std::vector<Dim>{{"element", static_cast<std::int64_t>(actual.size())}} : dims);
  if (nans == wrong.size()) says << "\nall of them are NaN";
  if (wrong.size() == actual.size()) says << "\nevery element is wrong";
  if (!where.empty()) says << "\nall of them lie in " << where;
  return testing::AssertionFailure() << says.str();
}

// One number, compared by relative error; the default is what a formula in double precision reaches.
inline testing::AssertionResult is_near(double actual, double expected, double relative = 1e-9) {
  if (is_close(actual, expected, relative * std::abs(expected))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << testing::PrintToString(actual) << ", expected "
                                     << testing::PrintToString(expected) << " (relative tolerance " << relative << ")";
}

}  // namespace nanolm
