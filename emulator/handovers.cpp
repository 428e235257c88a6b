#include "handovers.h"

#include <algorithm>

#include "block.h"

namespace nanolm::emulator {

void Release::add(const Thread& thread, Fence Thread::*fence) {
  const auto number = static_cast<std::size_t>(thread.number), warp = number / kWarp;
  const std::span<const Thread> threads = thread.block->threads();
  fences_.resize(threads.size());
  warp_epochs_.resize(threads.size() / kWarp + 1);
  const Fence& last = thread.*fence;
  epoch_ = std::max(epoch_, last.epoch);
  warp_epochs_[warp] = std::max(warp_epochs_[warp], last.warp_epoch);
  for (std::size_t t = 0; t < threads.size(); ++t)
    fences_[t] = std::max(fences_[t], (threads[t].*fence).number_at_barrier);
  fences_[number] = std::max(fences_[number], last.number);
}

bool Release::covers(const Touch& touch) const {
  return !fences_.empty() && (touch.epoch < epoch_ || touch.warp_epoch < warp_epochs_[touch.thread / kWarp] ||
                              touch.fences < fences_[touch.thread]);
}

void Handovers::atomic(const Thread& thread, const Cell* cell, const Touch& now) {
  if (released_.count(cell) || within_.count(cell)) {
    const auto known = std::find_if(taken_.begin(), taken_.end(),
                                    [&](const Taken& t) { return t.cell == cell && t.by.thread == now.thread; });
    if (known == taken_.end())
      taken_.push_back({cell, now, within_[cell]});
    else
      known->within = within_[cell];
  }
  if (thread.block_fence.number > 0) within_[cell].add(thread, &Thread::block_fence);
  if (thread.device_fence.number == 0) return;
  std::map<std::uint64_t, Release>& releases = released_[cell];
  Release& release = releases[now.block];
  release.add(thread, &Thread::device_fence);
  // What the block itself has taken goes on with it.
  for (const Taken& t : taken_)
    if (t.cell != cell && release.covers(t.by)) releases.insert(released_[t.cell].begin(), released_[t.cell].end());
}

bool Handovers::order(const Touch& before, const Touch& now) const {
  return std::any_of(taken_.begin(), taken_.end(), [&](const Taken& t) {
    const bool same_warp = t.by.thread / kWarp == now.thread / kWarp;
    if (t.by.thread != now.thread && t.by.epoch >= now.epoch && !(same_warp && t.by.warp_epoch < now.warp_epoch))
      return false;
    if (before.block == now.block) return t.within.covers(before);
    const auto releases = released_.find(t.cell);
    if (releases == released_.end()) return false;
    const auto release = releases->second.find(before.block);
    return release != releases->second.end() && release->second.covers(before);
  });
}

}  // namespace nanolm::emulator
