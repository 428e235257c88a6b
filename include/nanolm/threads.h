// Given to lesson 10: a function on several threads, which stay between calls.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace nanolm {

// Returns when the value is not `old`, and what it then is. It looks for 2 ms, in which other threads may have the
// processor, before it sleeps: to wake a thread takes 50 us, and a processor of a virtual machine that has nothing to
// do may take a millisecond to come back.
template <class T>
T wait_while(const std::atomic<T>& value, T old) {
  const auto sleep = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  T now;
  while ((now = value.load(std::memory_order_acquire)) == old)
    if (std::chrono::steady_clock::now() < sleep)
      std::this_thread::yield();
    else
      value.wait(old, std::memory_order_acquire);
  return now;
}

// Threads 1, 2, ... They never end: the process's end is theirs.
class Workers {
 public:
  void run(int threads, const std::function<void(int)>& body) {
    while (static_cast<int>(jobs_.size()) < threads - 1) {
      Job& job = *jobs_.emplace_back(new Job{nullptr});
      std::thread(work, std::ref(job), static_cast<int>(jobs_.size())).detach();
    }
    for (int i = 1; i < threads; ++i) {
      Job& job = *jobs_[static_cast<std::size_t>(i - 1)];
      job.store(&body, std::memory_order_release);
      job.notify_one();
    }
    body(0);
    for (int i = 1; i < threads; ++i)
      for (Job& job = *jobs_[static_cast<std::size_t>(i - 1)]; wait_while(job, &body) == &body;) continue;
  }

 private:
  using Job = std::atomic<const std::function<void(int)>*>;  // nothing: done
  static void work(Job& job, int number) {
    for (;;) {
      (*wait_while<const std::function<void(int)>*>(job, nullptr))(number);
      job.store(nullptr, std::memory_order_release);
      job.notify_one();
    }
  }
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Calls body(0) to body(threads - 1), each on a thread of its own, and returns when all have. What one throws is thrown
// again here. Threads stay for the next call, unless two calls meet or the process is a fork of another: then there are
// new ones.
inline void run_on_threads(int threads, const std::function<void(int)>& body) {
  std::exception_ptr failure;
  std::mutex guard;
  const std::function<void(int)> run = [&](int thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  static std::mutex busy;
  const std::unique_lock lock(busy, std::try_to_lock);
  if (threads == 1) {
    run(0);
  } else if (lock) {
    static Workers* workers = nullptr;  // never destroyed, since its threads may wait when the process ends
    static long process = -1;
#if defined(__unix__) || defined(__APPLE__)
    const long this_process = getpid();
#else
    const long this_process = 0;
#endif
    if (process != this_process) workers = new Workers, process = this_process;
    workers->run(threads, run);
  } else {
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(std::cref(run), i);
    run(0);
    for (std::thread& other : others) other.join();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace nanolm
