#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/figures/batches.h"
#include "gdrperf/engine/observer.h"
#include "gdrperf/report/record.h"
#include "engine/transfer/laps.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/standstill.h"
#include "engine/figures/stop_rule.h"

namespace gdrperf::engine {

/// A batch is long against the clock and short against the run.
inline constexpr double kBatchSeconds = 0.010;
/// Of a run that ends by its precision and whose cap is less than the usual one, as those of a sweep: at first.
inline constexpr double kBriskBatchSeconds = 0.005;
/// With -D below 0.3 s, and at first with -n, they are shorter: no less than this.
inline constexpr double kLeastBatchSeconds = 0.001;
/// Of a run that tells its intervals: two of them date a dip.
inline constexpr double kWatchedBatchSeconds = 0.005;

/// First batches of a run that ends by its precision.
inline double first_batch_seconds(const StopRule& stop) {
  return stop.cap < StopRule().cap ? kBriskBatchSeconds : kBatchSeconds;
}

class Peer;
class Together;

/// Observers of a run in progress.
struct Watchers {
  StandstillWatch& standstill;
  RunObserver* observer = nullptr;          ///< null: nobody
  const std::atomic<bool>* stop = nullptr;  ///< ends the run before its time; null: nothing does
  Peer* follower = nullptr;                 ///< may say Stop between chunks; null: what comes is an error
  Together* together = nullptr;             ///< other runs at the same time; null: none
  Peer* peer = nullptr;                     ///< with `together`: looked after while this end waits for others
  double begin_ns = 0;                      ///< now_ns() of the first post; 0: at once
};

/// Another end's clock, as this end knows it.
struct PeerClock {
  double ahead_ns = 0;
  double unsure_ns = 0;  ///< in either direction
  bool operator==(const PeerClock&) const = default;
};

/// A bandwidth run as the initiating end saw it; bandwidth_figures() makes figures of
/// it, after the peer's share has come.
struct BandwidthRun {
  BatchSeries series;
  double ramp_s = 0;          ///< filling the pipe, before the first batch
  double first_batch_ns = 0;  ///< our clock at the start of the first batch
  report::StopReason stop = report::StopReason::kPrecision;
  // All of it, from the first post, when nothing was in flight.
  double start_ns = 0;
  double end_ns = 0;            ///< `messages` had completed by then
  double seconds = 0;           ///< what counts of that time
  std::uint64_t sent = 0;       ///< messages of this end
  std::uint64_t messages = 0;   ///< that the rate is of: those, in laps both ends'
  PeerClock clock = {};         ///< that its times are from, put into this end's; {}: this end's own
  ProgressSeries progress = {};  ///< of one of several runs at the same time, from the first batch on; else empty
};

/// Streams until the stop rule is met; nothing is drained but after -n. 10 ms per
/// batch where the run is long enough for 30 of them.
BandwidthRun stream_bandwidth(Transfer& transfer, const TestSpec& spec, const Watchers& watchers);

/// The same in verified laps: a batch is laps that took 10 ms together, filling
/// and comparing not counted. Time limits are those of the clock on the wall.
BandwidthRun lap_bandwidth(Laps& laps, const TestSpec& spec, const Watchers& watchers);

/// Bytes the peer sent in a bidirectional run, by its clock.
struct PeerBytes {
  std::vector<std::pair<double, std::uint64_t>> series;
  PeerClock clock;
};

/// Median of batches after the warm-up cut and all that goes with it; with too few
/// batches for an interval, all bytes over all time. `peer` null for a one-way run.
report::Measurement bandwidth_figures(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer);

/// A measured run and its batches: what judge_standstill() wants of them.
struct LatencyRun {
  report::Measurement measured;
  double longest_batch_s = 0;
  double typical_batch_s = 0;  ///< 0: not known
};

/// Round trips until the stop rule is met; with `laps` (else null) every one is
/// a verified lap.
LatencyRun bounce_latency(Transfer& transfer, const ResolvedSpec& spec, Laps* laps, const Watchers& watchers);

/// This process's clock in ns since its first use, always above 0.
double now_ns();

/// Sleeps, and spins at the end: on time to some microseconds.
void wait_until(double at_ns);

/// From the arrival of the last of `parts` threads to the moment at which all are awake, however few CPUs there are.
double wake_ns(int parts);

}  // namespace gdrperf::engine
