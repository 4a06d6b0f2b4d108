#include "engine/watch/contention.h"

#include <sys/prctl.h>

#include <atomic>

#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

/// Shares of a span in the queue for the CPU. Beside one other program a thread that polls waits for half of a span,
/// and one that rests waits for some microseconds after each rest.
constexpr double kCrowdedShare = 0.3;
constexpr double kStillShare = 0.01;
constexpr int kCrowdedSpans = 3;
constexpr double kLastsNs = 5 * ContentionWatch::kSpanNs;

/// What the threads of the process tell each other.
std::atomic<double> contended_until_ns{0};

/// A sleep ends some 50 us late unless the thread asks for more; 0: as at its start.
void set_timer_slack(unsigned long nanoseconds) { ::prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0); }

}  // namespace

ContentionWatch::ContentionWatch() : last_ns_(now_ns()), queued_s_(queue_.seconds()) {}

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
  const double queued_s = queue_.seconds();
  if (span_ns >= kSpanNs) {
    const double share = (queued_s - queued_s_) * 1e9 / span_ns;
    crowded_spans_ = share >= kCrowdedShare ? crowded_spans_ + 1 : 0;
    if (crowded_spans_ >= kCrowdedSpans || (contended_ && share >= kStillShare)) contended_until_ns = now + kLastsNs;
  }
  queued_s_ = queued_s;
  last_ns_ = now;
  const bool contended = now < contended_until_ns;
  if (contended != contended_) set_timer_slack(contended ? 1000 : 0);
  contended_ = contended;
  return span_ns;
}

}  // namespace gdrperf::engine
