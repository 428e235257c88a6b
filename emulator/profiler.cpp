#include "profiler.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "emulator/profile.h"
#include "faults.h"

namespace nanolm::emulator {
namespace profiler {

bool on = false;

namespace {

constexpr std::size_t kSector = 32, kBanks = 32, kPass = 128;  // bytes, words, bytes

// One instruction of a warp.
struct WarpAccess {
  const SharedVariable* variable = nullptr;  // null: global memory
  std::uint32_t lanes = 0, bytes = 0;        // bytes of one lane
  std::uintptr_t address[kWarp];
};
// Where it stands in the code.
struct Site {
  Access access;
  Origin origin;
  LineProfile line;
  std::vector<WarpAccess> of_warp[kWarp];    // of each warp, in the order of visits
  std::uint32_t visits[kWarp * kWarp] = {};  // of each thread
};
struct SiteKey {
  const void *return_address, *call;
  int line;
  Access access;
  bool operator==(const SiteKey&) const = default;
};
struct SiteHash {
  std::size_t operator()(const SiteKey& key) const {
    const auto mix = [](const void* p) { return reinterpret_cast<std::size_t>(p) * 0x9E3779B97F4A7C15; };
    return mix(key.return_address) ^ mix(key.call) >> 7 ^ static_cast<std::size_t>(key.line) << 3 ^
           static_cast<std::size_t>(key.access);
  }
};
// Which bytes of an allocation a launch has read, and written; one bit each.
struct Seen {
  std::vector<std::uint64_t> loads, stores;
  explicit Seen(std::size_t bytes) : loads(bytes / 64 + 1), stores(bytes / 64 + 1) {}
  static void mark(std::vector<std::uint64_t>& bits, std::size_t first, std::size_t bytes) {
    for (std::size_t b = first; b < first + bytes; ++b) bits[b / 64] |= std::uint64_t{1} << b % 64;
  }
  static std::int64_t count(const std::vector<std::uint64_t>& bits) {
    std::int64_t sum = 0;
    for (const std::uint64_t word : bits) sum += std::popcount(word);
    return sum;
  }
};

std::vector<KernelProfile> kernels;
std::size_t current = 0;  // index of the launch's kernel
std::unordered_map<SiteKey, Site, SiteHash> sites;
std::map<const Allocation*, Seen> seen;

template <class Traffic>
ArrayProfile<Traffic>& row(std::vector<ArrayProfile<Traffic>>& rows, const std::string& name) {
  for (auto& found : rows)
    if (found.name == name) return found;
  rows.push_back({name, {}, {}, {}});
  return rows.back();
}
template <class Traffic>
Traffic& column(ArrayProfile<Traffic>& array, Access access) {
  return access == Access::kRead ? array.loads : access == Access::kWrite ? array.stores : array.atomics;
}
std::string name_of(const Allocation* allocation) {
  return allocation && allocation->array.name ? allocation->array.name : "without a name";
}

// The fewest pieces of so many bytes that hold what the lanes ask for: different addresses count once.
std::int64_t least(const WarpAccess& a, std::size_t piece) {
  std::uintptr_t addresses[kWarp];
  std::size_t count = 0;
  for (int lane = 0; lane < kWarp; ++lane)
    if (a.lanes >> lane & 1) addresses[count++] = a.address[lane];
  std::sort(addresses, addresses + count);
  const auto different = static_cast<std::size_t>(std::unique(addresses, addresses + count) - addresses);
  return static_cast<std::int64_t>((different * a.bytes + piece - 1) / piece);
}

void count_global(const WarpAccess& a, Site& site) {
  DeviceMemory& memory = DeviceMemory::get();
  std::uintptr_t sectors[2 * kWarp];
  std::size_t count = 0;
  const Allocation* first = nullptr;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(a.lanes >> lane & 1)) continue;
    if (!first) first = memory.find(a.address[lane]);
    for (std::uintptr_t s = a.address[lane] / kSector; s <= (a.address[lane] + a.bytes - 1) / kSector; ++s)
      sectors[count++] = s;
  }
  std::sort(sectors, sectors + count);
  const std::int64_t different = std::unique(sectors, sectors + count) - sectors;
  GlobalTraffic& traffic = column(row(kernels[current].global, name_of(first)), site.access);
  traffic.requests += 1;
  traffic.bytes += std::popcount(a.lanes) * static_cast<std::int64_t>(a.bytes);
  traffic.sectors += different;
  if (site.line.array.empty()) site.line.array = name_of(first);
  site.line.cost += different;
  site.line.least += least(a, kSector);
}

void count_shared(const WarpAccess& a, Site& site) {
  SharedTraffic& traffic = column(row(kernels[current].shared, a.variable->array.name), site.access);
  if (site.line.array.empty()) site.line.array = a.variable->array.name, site.line.is_shared = true;
  traffic.requests += 1;
  traffic.bytes += std::popcount(a.lanes) * static_cast<std::int64_t>(a.bytes);
  const int together = static_cast<int>(std::min<std::size_t>(kWarp, kPass / a.bytes));  // lanes of a pass
  for (int group = 0; group < kWarp; group += together) {
    std::uintptr_t words[kWarp * 4];
    std::size_t count = 0;
    for (int lane = group; lane < group + together; ++lane)
      for (std::uintptr_t w = a.address[lane] / 4; a.lanes >> lane & 1 && w <= (a.address[lane] + a.bytes - 1) / 4; ++w)
        words[count++] = w;
    if (count == 0) continue;
    std::sort(words, words + count);
    std::int64_t in_bank[kBanks] = {}, passes = 0;
    const std::uintptr_t* const end = std::unique(words, words + count);
    for (const std::uintptr_t* w = words; w != end; ++w) passes = std::max(passes, ++in_bank[*w % kBanks]);
    traffic.passes += passes;
    traffic.conflicts += passes - 1;
    site.line.cost += passes;
    site.line.least += 1;
  }
}

}  // namespace

void begin_launch(const Launch& launch) {
  for (current = 0; current < kernels.size() && kernels[current].name != launch.name;) ++current;
  if (current == kernels.size()) kernels.push_back({launch.name, 0, 0, 0, 0, {}, {}, {}});
  const auto product = [](const dim3& d) { return std::int64_t{d.x} * d.y * d.z; };
  KernelProfile& kernel = kernels[current];
  kernel.launches += 1;
  kernel.blocks += product(launch.grid);
  kernel.threads += product(launch.grid) * product(launch.block);
}

void end_launch() {
  for (const auto& [allocation, bytes] : seen) {
    auto& array = row(kernels[current].global, name_of(allocation));
    array.loads.compulsory += Seen::count(bytes.loads);
    array.stores.compulsory += Seen::count(bytes.stores);
  }
  seen.clear();
  for (const auto& [key, site] : sites) {
    if (site.line.cost <= site.line.least) continue;
    LineProfile line = site.line;
    line.place = place_text(site.origin, nullptr);
    line.access = site.access == Access::kRead ? "load" : site.access == Access::kWrite ? "store" : "atomic";
    auto& lines = kernels[current].lines;
    const auto known = std::find_if(lines.begin(), lines.end(), [&](const LineProfile& l) {
      return l.place == line.place && l.access == line.access && l.array == line.array;
    });
    if (known == lines.end()) {
      lines.push_back(line);
    } else {
      known->cost += line.cost, known->least += line.least;
    }
  }
  std::stable_sort(kernels[current].lines.begin(), kernels[current].lines.end(),
                   [](const LineProfile& a, const LineProfile& b) { return a.cost - a.least > b.cost - b.least; });
  sites.clear();
}

void access(const Thread& thread, std::uintptr_t address, std::size_t bytes, Access access, const Origin& origin,
            const SharedVariable* variable) {
  const Unchecked unchecked;
  constexpr std::size_t kMost = 16;  // of one instruction; a memset() or a struct is a row of them
  for (; bytes > kMost; address += kMost, bytes -= kMost)
    profiler::access(thread, address, kMost, access, origin, variable);
  const SiteKey key{origin.return_address, origin.call, origin.place.line, access};
  auto found = sites.find(key);
  if (found == sites.end()) found = sites.emplace(key, Site{access, origin, {}, {}, {}}).first;
  Site& site = found->second;
  const int warp = thread.number / kWarp, lane = thread.number % kWarp;
  std::vector<WarpAccess>& accesses = site.of_warp[warp];
  const std::size_t visit = site.visits[thread.number]++;
  if (visit >= accesses.size()) accesses.resize(visit + 1);
  WarpAccess& a = accesses[visit];
  a.variable = variable;
  a.bytes = static_cast<std::uint32_t>(bytes);
  a.lanes |= 1u << lane;
  a.address[lane] = address;
  if (variable) return;
  const Allocation* const allocation = DeviceMemory::get().find(address);
  auto marked = seen.find(allocation);
  if (marked == seen.end()) marked = seen.emplace(allocation, allocation->end - allocation->begin).first;
  Seen& marks = marked->second;
  if (access != Access::kWrite) Seen::mark(marks.loads, address - allocation->begin, bytes);
  if (access != Access::kRead) Seen::mark(marks.stores, address - allocation->begin, bytes);
}

void warp_met(int warp) {
  const Unchecked unchecked;
  for (auto& [key, site] : sites) {
    std::vector<WarpAccess>& accesses = site.of_warp[warp];
    for (const WarpAccess& a : accesses) a.variable ? count_shared(a, site) : count_global(a, site);
    accesses.clear();
    std::fill_n(site.visits + warp * kWarp, kWarp, 0u);
  }
}

void block_met(bool is_barrier) {
  for (int warp = 0; warp < kWarp; ++warp) warp_met(warp);
  kernels[current].barriers += is_barrier;
}

}  // namespace profiler

void set_profiled(bool on) {
  profiler::on = on;
  profiler::kernels.clear();
}
std::vector<KernelProfile> profile() { return profiler::kernels; }

}  // namespace nanolm::emulator
