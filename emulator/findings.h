// The file that NANOLM_EMULATOR_FINDINGS names, a line of JSON for each thing found. With it races and reads of
// unwritten memory end a block when it is over, not at once, so that one run shows all of them.
#pragma once

#include <string>
#include <vector>

namespace nanolm::emulator {

struct Finding {
  std::string kind;  // "race", "unwritten", "fault"
  std::string says;  // what the launch throws
  std::string kernel, array, element;
  std::vector<std::string> places, threads;  // the later access first
};

bool all_findings_wanted();
// Writes it down, where a file is wanted and this kind was not yet found at these places.
void write_down(const Finding& finding);

}  // namespace nanolm::emulator
