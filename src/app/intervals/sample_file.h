#pragma once

#include <string>

#include "gdrperf/engine/observer.h"
#include "app/output/sink.h"

namespace gdrperf::app {

/// What runs were made of, in a file: latencies of latency tests as an HdrHistogram log, batches of bandwidth tests as
/// CSV. Passes on what is said of progress.
class SampleFile final : public engine::RunObserver {
 public:
  /// `path` "": none. `next` outlives it.
  SampleFile(const std::string& path, engine::RunObserver& next) : sink_(path), next_(next) {}

  void setting_up(const std::string& what) override { next_.setting_up(what); }
  void measuring(const engine::RunState& state) override { next_.measuring(state); }
  bool wants_rate() const override { return next_.wants_rate(); }
  bool wants_samples() const override { return sink_.given(); }
  void samples(const engine::RunSamples& run) override;

  /// Writes what there is of the runs so far: a stream gets each line once. Throws Error(kEnvironment).
  void write();

 private:
  Sink sink_;
  engine::RunObserver& next_;
  std::string text_;
  double log_start_s_ = -1;  ///< since the epoch; negative: no line yet
};

}  // namespace gdrperf::app
