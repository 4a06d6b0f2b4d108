#include "app/client/stop_signal.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {
namespace {

/// A handler that is late would write to whatever has the number of its descriptor by then.
TEST(StopOnSignals, NoHandlerUsesWhatIsGone) {
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &term, nullptr), 0);
  std::jthread other([](const std::stop_token& over) {
    while (!over.stop_requested()) std::this_thread::yield();
  });
  int late = 0;
  for (int round = 0; round < 2000; ++round) {
    {
      StopSignal stop;
      const StopOnSignals on_signals(stop);
      ASSERT_EQ(::pthread_kill(other.native_handle(), SIGTERM), 0);
      while (!stop.triggered()) std::this_thread::yield();
      EXPECT_EQ(stop.signal(), SIGTERM);
    }
    const UniqueFd next(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ASSERT_TRUE(next);
    for (int looks = 0; looks < 100; ++looks) {
      std::uint64_t count = 0;
      if (::read(next.get(), &count, sizeof count) > 0) ++late;
    }
  }
  EXPECT_EQ(late, 0);
}

}  // namespace
}  // namespace gdrperf::app
