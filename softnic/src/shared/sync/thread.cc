#include "shared/sync/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "shared/segment/completion.h"

namespace gdrperf::softnic {
namespace {

/// A yield that took longer went to a program that computes, as others will for so long.
constexpr std::uint64_t kLongYieldNs = 500'000;
constexpr std::uint64_t kContendedNs = 500'000'000;
constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 10'000};
constexpr int kNapSlackNs = 1000;

/// Of all threads: the other program moves between their CPUs.
std::atomic<std::uint64_t> contended_until_ns{0};

/// The kernel adds 50 us to a sleep unless the thread, which is the program's, is one of those that ask for less.
void nap() noexcept {
  const int slack_ns = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  const bool shorter = slack_ns > kNapSlackNs;
  if (shorter) ::prctl(PR_SET_TIMERSLACK, kNapSlackNs, 0, 0, 0);
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kNap, nullptr);
  if (shorter) ::prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
}

void* run_body(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

int start_thread(const char* name, std::function<void()> body) {
  auto* owned = new std::function<void()>(std::move(body));
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = ::pthread_create(&thread, nullptr, &run_body, owned);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    delete owned;
    return error;
  }
  ::pthread_setname_np(thread, name);
  ::pthread_detach(thread);
  return 0;
}

void give_cpu_away() noexcept {
  const std::uint64_t begin = monotonic_ns();
  if (begin < contended_until_ns.load(std::memory_order_relaxed)) {
    nap();
    return;
  }
  ::sched_yield();
  if (monotonic_ns() - begin > kLongYieldNs) contended_until_ns.store(begin + kContendedNs, std::memory_order_relaxed);
}

}  // namespace gdrperf::softnic
