#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "batches.h"
#include "gdrperf/report/record.h"
#include "laps.h"
#include "mover.h"

namespace gdrperf::engine {

/// A batch is long against the clock and short against the run.
inline constexpr double kBatchSeconds = 0.010;
inline constexpr std::size_t kMinBatches = 30;

inline double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// What the initiating end saw of a bandwidth run; condense() makes figures of
/// it, after the peer's share has come.
struct BandwidthRun {
  BatchSeries series;
  double ramp_s = 0;          ///< filling the pipe, before the first batch
  double first_batch_ns = 0;  ///< our clock at the start of the first batch
  report::StopReason stop = report::StopReason::kPrecision;
};

/// Streams until the stop rule is met; nothing is drained. 10 ms per batch
/// where the run is long enough for 30 of them.
BandwidthRun stream_bandwidth(Mover& streamer, const TestSpec& spec);

/// The same in verified laps: a batch is laps that took 10 ms together, filling
/// and comparing not counted. Time limits are those of the clock on the wall.
BandwidthRun lap_bandwidth(Laps& laps, const TestSpec& spec);

/// Bytes the peer sent in a bidirectional run, and how far its clock is ahead.
struct PeerBytes {
  std::vector<std::pair<double, std::uint64_t>> series;
  double clock_ahead_ns = 0;
};

/// Median of batches after the warm-up cut and all that goes with it. `peer`
/// null for a one-way run.
report::Measurement condense(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer);

/// Round trips until the stop rule is met; with `laps` (else null) every one is
/// a verified lap.
report::Measurement bounce_latency(Mover& streamer, Plan& plan, const TestSpec& spec, Laps* laps);

/// This process's clock in ns since some fixed moment.
double now_ns();

}  // namespace gdrperf::engine
