#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gdrperf/engine/resolve.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

struct BandwidthRun;
class LapGate;
struct PeerBytes;
struct PeerClock;

/// Bandwidth runs of one client at the same time, each on a thread of its own: they begin together and end together,
/// and the figures of all and of each are over the time that they had in common. Thread-safe.
class Together {
 public:
  enum class Servers {
    kOne,   ///< of all runs: one clock
    kEach,  ///< one for each run
  };
  Together(int parts, Servers servers);
  ~Together();
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  /// Called now and then while a run waits for the others; what it throws ends the wait.
  using Look = std::function<void()>;

  // Of a run, in this order.
  /// Waits until all have been set up. Throws peer_error where another one has failed.
  void all_set_up(const Look& look);
  /// How the clock of run `part`'s server was found to be. For runs whose clocks are compared.
  void add_clock(int part, const PeerClock& clock);
  /// Waits for the moment at which all begin.
  void all_begin(const Look& look);
  /// The same where the other ends begin: the moment, by this end's clock, late enough for them to be told.
  double all_begin_there(const Look& look);
  /// What add_clock() told of run `part`; where all have one server, the clock that is known best.
  PeerClock clock(int part) const;
  /// Run `part` would end by its own rule: whether all would.
  bool all_finished(int part);
  /// Of verified runs, which meet once more in each lap.
  LapGate& laps();
  /// What run `part` measured, its warm-up included; `peer` null for a one-way run.
  void add(int part, const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer);

  /// A run has failed: no other waits for it.
  void give_up();

  /// All runs are over and were added. Figures of the sum.
  struct Sum {
    report::Measurement measured;
    std::vector<double> gbytes;   ///< mean of each run over the same time
    double start_spread_s = 0;    ///< between the first and the last to begin, at most
  };
  /// Throws Error(kInconclusive) where they had no time in common.
  Sum sum(const TestSpec& spec) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdrperf::engine
