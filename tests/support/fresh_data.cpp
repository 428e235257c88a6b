// Every test starts with the same random numbers, alone or after others: what it says of a wrong answer can be
// repeated.
#include <gtest/gtest.h>

#include "support/data.h"

namespace nanolm {
namespace {

class FreshData : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { reseed(); }
};
[[maybe_unused]] const bool installed = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new FreshData);  // which deletes it
  return true;
}();

}  // namespace
}  // namespace nanolm
