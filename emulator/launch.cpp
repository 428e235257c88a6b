// A launch: its configuration is checked, its blocks are shared out to system threads.
#include "emulator/launch.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "block.h"
#include "environment.h"
#include "faults.h"
#include "findings.h"
#include "memory.h"
#include "profiler.h"
#include "runtime.h"

namespace nanolm::emulator {
namespace {

struct Totals {
  std::atomic<std::int64_t> launches{0}, load_bytes{0}, store_bytes{0}, loads{0}, stores{0};
} totals;
std::atomic<Order> wanted_order{Order::kMixed};
std::atomic<unsigned> grid_limit{65535};
std::atomic<std::uint64_t> block_sample{0};

// Runners keep their stacks and shared memory from launch to launch.
class Runners {
 public:
  std::unique_ptr<BlockRunner> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<BlockRunner>();
    std::unique_ptr<BlockRunner> runner = std::move(idle_.back());
    idle_.pop_back();
    return runner;
  }
  void give_back(std::unique_ptr<BlockRunner> runner) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(runner));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BlockRunner>> idle_;
};
Runners& runners() {
  static Runners* const all = new Runners;
  return *all;
}

// Notes what is wrong with it.
cudaError_t check(const Launch& launch) {
  const dim3 &g = launch.grid, &b = launch.block;
  const auto product = [](const dim3& d) { return std::uint64_t{d.x} * d.y * d.z; };
  const auto text = [](const dim3& d) {
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
  };
  Runtime& runtime = Runtime::get();
  if (product(b) == 0 || b.z > 64 || product(b) > 1024)
    return runtime.note(cudaErrorInvalidConfiguration,
                        "a block of " + text(b) + " threads; 1 to 1024 are allowed, 64 in the third dimension");
  if (product(g) == 0 || g.x > 0x7fffffff || g.y > grid_limit || g.z > grid_limit)
    return runtime.note(cudaErrorInvalidConfiguration, "a grid of " + text(g) + " blocks; at least 1, at most " +
                                                           std::to_string(grid_limit) + " in y and z" +
                                                           (grid_limit < 65535 ? " (65535 on a device)" : ""));
  const std::size_t limit = runtime.dynamic_limit(reinterpret_cast<const void*>(launch.kernel));
  if (launch.dynamic_bytes > limit)
    return runtime.note(cudaErrorInvalidValue,
                        std::to_string(launch.dynamic_bytes) + " bytes of dynamic shared memory; " +
                            std::to_string(limit) + " are allowed unless more is asked for by " +
                            "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)");
  return cudaSuccess;
}

// The i-th block to run of n, in an order that visits each once.
struct BlockOrder {
  std::uint64_t n, factor = 1, offset = 0;
  BlockOrder(std::uint64_t blocks, Order order, std::uint64_t seed) : n(blocks) {
    if (order == Order::kDescending) factor = n - 1, offset = n - 1;  // -1 modulo n
    if (order == Order::kRandom) {
      std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
      offset = random() % n;
      do factor = 1 + random() % n;
      while (std::gcd(factor, n) != 1);
    }
  }
  std::uint64_t operator[](std::uint64_t i) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(factor) * i + offset) % n);
  }
};

Order mixed(Order order, std::uint64_t turn) {
  return order == Order::kMixed ? static_cast<Order>(1 + turn % 3) : order;
}

}  // namespace

void reset_counters() { totals.launches = totals.load_bytes = totals.store_bytes = totals.loads = totals.stores = 0; }
Counters counters() { return {totals.launches, totals.load_bytes, totals.store_bytes, totals.loads, totals.stores}; }
void set_order(Order order) { wanted_order = order; }
void set_grid_limit(unsigned blocks) { grid_limit = blocks; }
void set_block_sample(std::uint64_t blocks) {
  block_sample = blocks;
  DeviceMemory::get().set_sparse(blocks > 0);
}

void run(const Launch& launch, void (*thread)(const Launch&)) {
  Runtime& runtime = Runtime::get();
  if (current_thread)
    current_thread->block->fail(
        [] { return std::string("a kernel launched from a kernel is not supported by the emulator"); });
  if (runtime.broken()) return;
  if (check(launch) != cudaSuccess) return;
  static const std::uint64_t seed = environment("NANOLM_SEED", 13);
  static const std::uint64_t most =
      environment("NANOLM_EMULATOR_THREADS", std::min(8u, std::thread::hardware_concurrency()));
  const std::uint64_t number = static_cast<std::uint64_t>(totals.launches++);
  const std::uint64_t all_blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z, sample = block_sample;
  const std::uint64_t blocks = sample ? std::min(all_blocks, 2 * sample) : all_blocks;
  const Order order = wanted_order;
  const BlockOrder sequence(blocks, mixed(order, number), seed + number);

  static std::atomic<std::uint64_t> blocks_so_far{1};
  const std::uint64_t first_serial = blocks_so_far.fetch_add(all_blocks);

  const DeviceMemory::Opened opened;
  if (profiler::is_on()) profiler::begin_launch(launch);
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  const auto work = [&] {
    watch_stack_overflow();
    std::unique_ptr<BlockRunner> runner = runners().take();
    runner->begin_launch(launch, thread, first_serial);
    try {
      for (std::uint64_t i; !failed && (i = next++) < blocks;) {
        const std::uint64_t chosen = sequence[i], b = chosen < sample ? chosen : chosen + all_blocks - blocks;
        runner->run_block(first_serial + b, mixed(order, number + b), seed + number + b);
      }
    } catch (const Fault& fault) {
      write_down({"fault", fault.what(), launch.name, "", "", {}, {}});
      if (!failed.exchange(true)) error = std::current_exception();
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
    totals.load_bytes += runner->counted.load_bytes;
    totals.store_bytes += runner->counted.store_bytes;
    totals.loads += runner->counted.loads;
    totals.stores += runner->counted.stores;
    runners().give_back(std::move(runner));
  };
  // A system thread costs as much as some hundred fibers.
  const std::uint64_t worth = blocks * launch.block.x * launch.block.y * launch.block.z / 1024;
  std::vector<std::thread> helpers;
  for (std::uint64_t t = 1; t < std::min({is_checked() || profiler::is_on() ? 1 : most, blocks, worth}); ++t)
    helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (profiler::is_on()) profiler::end_launch();
  if (error) {
    runtime.break_down();
    std::rethrow_exception(error);
  }
}

}  // namespace nanolm::emulator
