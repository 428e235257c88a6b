// Threads that stay between calls: nanolm/threads.h.
#include "nanolm/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <barrier>
#include <stdexcept>

#if defined(__SANITIZE_THREAD__)
#define NANOLM_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NANOLM_THREAD_SANITIZER
#endif
#endif

namespace nanolm {
namespace {

std::vector<std::thread::id> ids_of(int threads) {
  std::vector<std::thread::id> ids(static_cast<std::size_t>(threads));
  std::barrier all(threads);  // nobody ends before everybody runs
  run_on_threads(threads, [&](int thread) {
    ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
    all.arrive_and_wait();
  });
  return ids;
}

TEST(Threads, EachNumberHasAThreadOfItsOwn) {
  for (const int threads : {1, 2, 5, 3, 8}) {
    std::vector<std::thread::id> ids = ids_of(threads);
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end()) << threads << " threads";
  }
}

TEST(Threads, StayForTheNextCall) {
  const std::vector<std::thread::id> first = ids_of(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // they sleep by now
  EXPECT_EQ(ids_of(3), first);
}

TEST(Threads, WhatOneThrowsIsThrownInTheCaller) {
  for (const int thrower : {0, 2})
    EXPECT_THROW(run_on_threads(3,
                                [&](int thread) {
                                  if (thread == thrower) throw std::runtime_error("one of three");
                                }),
                 std::runtime_error);
  EXPECT_EQ(ids_of(3).size(), 3u);
}

TEST(Threads, CallsMayMeetAndNest) {
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) run_on_threads(2, [&](int) { run_on_threads(2, [&](int) { ++calls; }); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 3 * 50 * 2 * 2);
}

TEST(Threads, AForkHasItsOwn) {
#if defined(NANOLM_THREAD_SANITIZER)
  GTEST_SKIP() << "ThreadSanitizer allows no threads behind a fork";
#else
  ids_of(2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(ids_of(2).size() == 2 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
#endif
}

}  // namespace
}  // namespace nanolm
