// Which cases of a test fail: when all that fail have something in common that others lack, the test says so at its
// end.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "nanolm/attention_shape.h"

namespace nanolm {

inline constexpr std::array kTraits{"causal cases", "cases of grouped heads",
                                    "cases whose last tile of keys is partial",
                                    "cases whose last tile of queries is partial"};
struct CaseResult {
  bool failed;
  std::array<bool, kTraits.size()> traits;
};

// "only causal cases fail: 3 of 4" for the rarest trait of all that fail, if a case without it passes; else "".
inline std::string only_failing(const std::vector<CaseResult>& cases) {
  std::string text;
  std::size_t rarest = cases.size();
  for (std::size_t t = 0; t < kTraits.size(); ++t) {
    std::size_t failed = 0, with = 0, failed_without = 0;
    for (const CaseResult& c : cases) {
      failed += c.failed;
      with += c.traits[t];
      failed_without += c.failed && !c.traits[t];
    }
    if (failed == 0 || failed_without > 0 || with >= rarest) continue;
    rarest = with;
    text = std::string("only ") + kTraits[t] + " fail: " + std::to_string(failed) + " of " + std::to_string(with);
  }
  return text;
}

inline std::vector<CaseResult>& cases_of_this_test() {
  static std::vector<CaseResult> cases;
  return cases;
}

// One case of a test, from here to the end of the block.
class Case {
 public:
  explicit Case(const AttentionShape& s) : traits_{s.causal, s.q_heads > s.kv_heads} {}
  Case(const AttentionShape& s, const Tiling& tiling)
      : traits_{s.causal, s.q_heads > s.kv_heads, s.seqlen_k % tiling.block_k != 0, s.seqlen_q % tiling.block_q != 0} {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case() { cases_of_this_test().push_back({failures() > before_, traits_}); }

 private:
  static int failures() {
    const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
    int count = 0;
    for (int i = 0; i < result.total_part_count(); ++i) count += result.GetTestPartResult(i).failed();
    return count;
  }
  std::array<bool, kTraits.size()> traits_;
  int before_ = failures();
};

class SaysWhichCasesFail : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { cases_of_this_test().clear(); }
  void OnTestEnd(const testing::TestInfo&) override {
    const std::string text = only_failing(cases_of_this_test());
    if (!text.empty()) std::printf("%s\n", text.c_str());
  }
};
[[maybe_unused]] inline const bool says_which_cases_fail = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SaysWhichCasesFail);  // which deletes it
  return true;
}();

}  // namespace nanolm
