// Where the lanes of a warp meet: shuffles, votes, __syncwarp().
#include <bit>
#include <cstdio>

#include "block.h"
#include "profiler.h"
#include "text.h"

namespace nanolm::emulator {
namespace {

std::string lanes_text(unsigned mask) {
  std::vector<int> lanes;
  for (int lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1) lanes.push_back(lane);
  return numbers_text("lane", lanes);
}

}  // namespace

std::uint64_t BlockRunner::meet(const char* name, unsigned mask, std::uint64_t value, int source_lane, Place place,
                                bool is_vote) {
  Thread& self = *current_thread;
  const int warp = self.number / kWarp, lane = self.number % kWarp;
  const unsigned me = 1u << lane;
  const auto who = [&] { return text(place) + ": " + name + ": "; };
  if (!(mask & me)) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "0x%08x", mask);
    fail([&] {
      return who() + "lane " + std::to_string(lane) + " calls it with the mask " + hex + ", in which it is not named";
    });
  }
  auto& meetings = meetings_[static_cast<std::size_t>(warp)];
  Meeting* meeting = nullptr;
  for (Meeting& m : meetings) {
    if (m.mask != mask) continue;  // another mask may wait for lanes of this one, which come later
    if (!same(m.name, name) || !same(m.place, place))
      fail([&] {
        return who() + "lane " + std::to_string(lane) + " is here while " + lanes_text(m.arrived) +
               " of the same mask wait" + (std::popcount(m.arrived) == 1 ? "s" : "") + " in " + m.name + " at line " +
               std::to_string(m.place.line) + ". All lanes of a mask must reach the same call.";
      });
    meeting = &m;
  }
  if (!meeting) {
    meetings.push_back({name, mask, 0, 0, place, is_vote, {}, {}});
    meeting = &meetings.back();
  }
  meeting->arrived |= me;
  meeting->value[lane] = value;
  meeting->source[lane] = source_lane;
  if (is_vote && value) meeting->said_yes |= me;
  const unsigned awaited = mask & alive_[static_cast<std::size_t>(warp)];
  if ((meeting->arrived & awaited) != awaited) return suspend(self, Wait::kWarp, name, place);
  Meeting met = *meeting;
  meetings.erase(meetings.begin() + (meeting - meetings.data()));
  complete(met, warp);
  return self.result;
}

void BlockRunner::complete(Meeting& meeting, int warp) {
  // Of all warp functions only this one orders memory.
  if (same(meeting.name, "__syncwarp")) ++warp_epochs_[static_cast<std::size_t>(warp)];
  if (profiler::is_on() &&
      (meeting.arrived & alive_[static_cast<std::size_t>(warp)]) == alive_[static_cast<std::size_t>(warp)])
    profiler::warp_met(warp);
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(meeting.arrived >> lane & 1)) continue;
    Thread& thread = threads_[static_cast<std::size_t>(warp * kWarp + lane)];
    const int source = meeting.source[lane];
    if (!meeting.is_vote && !(meeting.arrived >> source & 1))
      fail([&] {
        return text(meeting.place) + ": " + meeting.name + ": lane " + std::to_string(lane) + " reads lane " +
               std::to_string(source) + ", which " +
               (meeting.mask >> source & 1 ? "has exited" : "the mask does not name") + ": what it gets is undefined";
      });
    thread.result = meeting.is_vote ? meeting.said_yes : meeting.value[source];
    thread.wait = Wait::kReady;
  }
}

}  // namespace nanolm::emulator
