#pragma once

#include <chrono>
#include <cstdint>

#include "gdrperf/conn/connector.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/perftest/link.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

// Runs of which one end is an unmodified perftest: docs/reference/perftest-handshake.md.
namespace gdrperf::engine {

/// Messages of a test without -n and -D whose two ends count alike.
inline constexpr std::uint64_t kPerftestIterations = 1000;

/// What this end of a run with perftest goes by.
struct PerftestTerms {
  ClientTerms own;
  report::RateUnit rate_unit = report::RateUnit::kGigabytes;  ///< both ends': of the figures that they tell each other
  std::chrono::nanoseconds max_time{0};  ///< of a run that is served; 0: no limit
};

/// Throws usage_error naming the option for what perftest's handshake, or perftest's end, does not carry; `side`:
/// gdrperf's.
void check_perftest(const TestSpec& spec, conn::Side side);

/// Runs one test against perftest's server of the same test, which has been greeted over `channel`, and returns its
/// record. What nobody there tells stays open in it. Throws as run_client(). The connection is used up.
report::RunRecord run_perftest_client(proto::Channel& channel, proto::PerftestLink& link, const TestSpec& spec,
                                      const PerftestTerms& terms);

/// Serves one run of perftest's client of the same test, which has been greeted; `spec.server` is this end. The record
/// has the figures that perftest tells (write_bw, read_bw), those of this end (send_bw, write_lat), or none. Throws as
/// serve_run().
report::RunRecord serve_perftest(proto::Channel& channel, proto::PerftestLink& link, const TestSpec& spec,
                                 const PerftestTerms& terms);

}  // namespace gdrperf::engine
