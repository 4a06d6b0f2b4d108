#include "engine/watch/contention.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>

#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

constexpr double kSpanNs = 20e6;
/// Of a thread that polls: beside one other program the kernel changes between them every three or four milliseconds.
constexpr long kInterruptions = 3;
constexpr double kLastsNs = 1e9;

/// What the threads of the process tell each other.
std::atomic<double> contended_until_ns{0};

long interruptions() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/// A sleep ends some 50 us late unless the thread asks for more; 0: as at its start.
void set_timer_slack(unsigned long nanoseconds) { ::prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0); }

}  // namespace

ContentionWatch::ContentionWatch() : last_ns_(now_ns()), interruptions_(interruptions()) {}

ContentionWatch::~ContentionWatch() {
  if (contended_) set_timer_slack(0);
}

bool ContentionWatch::is_due() const {
  const double now = now_ns();
  return now - last_ns_ >= kSpanNs || (now < contended_until_ns) != contended_;
}

double ContentionWatch::look() {
  const double now = now_ns();
  const double span_ns = now - last_ns_;
  const long interrupted = interruptions();
  if (interrupted - interruptions_ >= kInterruptions && span_ns < 10 * kSpanNs) contended_until_ns = now + kLastsNs;
  interruptions_ = interrupted;
  last_ns_ = now;
  const bool contended = now < contended_until_ns;
  if (contended != contended_) set_timer_slack(contended ? 1000 : 0);
  contended_ = contended;
  return span_ns;
}

}  // namespace gdrperf::engine
