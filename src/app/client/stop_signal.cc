#include "app/client/stop_signal.h"

#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

// A handler has no argument: the language leaves no other way.
std::atomic<StopSignal*> g_on_signal = nullptr;
/// How many handlers, and others that look at what `g_on_signal` points to, are running now, on any thread.
std::atomic<int> g_users = 0;

/// Calls `use` with the signal that a StopOnSignals is for, which lives until `use` returns. Safe in a handler.
template <typename Use>
void with_signal(const Use& use) {
  g_users.fetch_add(1);
  if (StopSignal* signal = g_on_signal.load()) use(*signal);
  g_users.fetch_sub(1);
}

void handle(int number) {
  const int saved = errno;
  with_signal([number](StopSignal& signal) { signal.trigger(number); });
  errno = saved;
}

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw call_error("eventfd", errno);
}

void StopSignal::trigger(int signal) noexcept {
  if (signal != 0) signal_.store(signal);
  // clock_gettime(2) is safe in a handler (signal-safety(7)).
  std::int64_t never = 0;
  at_ns_.compare_exchange_strong(never,
                                 std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  flag_.store(true);
  const std::uint64_t one = 1;
  // Full is as readable as can be.
  if (::write(event_.get(), &one, sizeof one) < 0) return;
}

StopOnSignals::StopOnSignals(StopSignal& signal) {
  g_on_signal.store(&signal);
  // RESETHAND: whoever presses Ctrl-C twice means it.
  set_handler(handle, SA_RESTART | SA_RESETHAND);
}

StopOnSignals::~StopOnSignals() {
  set_handler(SIG_DFL, 0);
  g_on_signal.store(nullptr);
  // A handler on another thread may still be using it.
  while (g_users.load() != 0) ::sched_yield();
}

std::chrono::nanoseconds StopSignal::since() const noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() - std::chrono::nanoseconds(at_ns_.load());
}

std::optional<std::chrono::nanoseconds> signalled_for() noexcept {
  std::optional<std::chrono::nanoseconds> since;
  with_signal([&since](const StopSignal& signal) {
    if (signal.triggered()) since = signal.since();
  });
  return since;
}

void end_as_signalled(const StopSignal& stop) {
  ::raise(stop.signal());
  // Blocked or ignored: what a shell makes of it.
  std::_Exit(128 + stop.signal());
}

}  // namespace gdrperf::app
