#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/perftest/run.h"
#include "gdrperf/engine/account.h"
#include "gdrperf/engine/resolve.h"
#include "engine/setup/local_end.h"
#include "engine/figures/measure.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {

/// One end of a run whose other end is perftest: set up by its handshake, and ended by it.
class PerftestEnd {
 public:
  /// `link` has been greeted. Borrows all.
  PerftestEnd(proto::Channel& channel, proto::PerftestLink& link, conn::Side side, const PerftestTerms& terms);

  /// Sets up this end, connects it with perftest's and waits until both are ready.
  void set_up(const TestSpec& asked);

  /// bounce_latency(); where perftest counts as well, without the first round, for which it first measures its clock.
  LatencyRun bounce(Transfer& transfer, Watchers watchers);

  /// After the messages: waits for perftest, tells it this end's figures where it wants them and lets it go. `own` is
  /// of this end, in GB/s. What perftest says in return; of tests without figures nothing.
  proto::PerftestReport part(const report::Measurement* own);

  LocalEnd& end() { return *end_; }
  const LocalEnd& end() const { return *end_; }
  Peer& peer() { return peer_; }
  const ResolvedSpec& spec() const { return end_->spec(); }
  /// "perftest 6.06".
  std::string program() const { return "perftest " + link_.version(); }

 private:
  LatencyRun bounce_for_a_time(Transfer& transfer, Watchers watchers);
  /// Takes `device`.
  void make(const ResolvedSpec& spec, OpenDevice& device, const proto::PerftestAddress* theirs);
  proto::PerftestAddress own_address(std::size_t q) const;
  proto::PerftestAddress exchange(std::size_t q, const char* step);
  proto::Endpoint remote_endpoint(const std::vector<proto::PerftestAddress>& theirs) const;
  void wait_for_each_other(std::size_t steps);

  proto::PerftestLink& link_;
  conn::Side side_;
  const PerftestTerms& terms_;
  Peer peer_;
  bool by_gid_ = true;  ///< as against by LID alone
  std::chrono::nanoseconds asked_duration_{0};
  Account::Share share_;  ///< given back after `end_` has gone
  std::unique_ptr<LocalEnd> end_;
};

/// Bytes per second that perftest's figures are multiples of: MiB or Gb.
double perftest_unit_bytes(report::RateUnit unit);

/// What is known of a run before it is measured.
report::RunRecord record_of_perftest(const PerftestEnd& perftest, const TestSpec& asked);

/// Whether perftest's end counts messages, or the time, on its own: it has to be started with the same -n or -D.
bool perftest_counts(Test test);

}  // namespace gdrperf::engine
