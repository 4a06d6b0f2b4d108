#include "app/client/stop_signal.h"

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

void handle(int number) {
  const int saved = errno;
  if (StopSignal* signal = g_on_signal.load()) signal->trigger(number);
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
}

std::chrono::nanoseconds StopSignal::since() const noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() - std::chrono::nanoseconds(at_ns_.load());
}

std::optional<std::chrono::nanoseconds> signalled_for() noexcept {
  const StopSignal* const signal = g_on_signal.load();
  return signal != nullptr && signal->triggered() ? std::optional(signal->since()) : std::nullopt;
}

void end_as_signalled(const StopSignal& stop) {
  ::raise(stop.signal());
  // Blocked or ignored: what a shell makes of it.
  std::_Exit(128 + stop.signal());
}

}  // namespace gdrperf::app
