#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/engine/observer.h"
#include "gdrperf/proto/counters.h"
#include "app/intervals/interval_metrics.h"
#include "app/intervals/metrics_server.h"

namespace gdrperf::app {

/// Where intervals of a run go, and how long they are.
struct IntervalOptions {
  double seconds = 0;  ///< 0: none
  std::string file;    ///< a JSON record for each, "-": on standard output; "": none
  bool lines = false;  ///< on standard error
  MetricsServer* metrics = nullptr;  ///< is given the last one; may be null
};

/// Writes each interval of a run as it ends, with what the counters of this end's ports rose by; passes all else on. A
/// thread of its own reads the counters and writes: neither holds up the run. Past kMostWaiting intervals that are not
/// written, the oldest go.
class IntervalLog final : public engine::RunObserver {
 public:
  /// `next` outlives it. Throws Error(kEnvironment) naming the file where it cannot be written.
  IntervalLog(IntervalOptions options, engine::RunObserver& next);
  ~IntervalLog() override;
  IntervalLog(const IntervalLog&) = delete;
  IntervalLog& operator=(const IntervalLog&) = delete;

  void setting_up(const std::string& what) override { next_.setting_up(what); }
  void measuring(const engine::RunState& state) override { next_.measuring(state); }
  bool wants_rate() const override { return next_.wants_rate(); }
  double interval_seconds() const override { return options_.seconds; }
  void port(const std::string& device, int number) override;
  void interval(const engine::IntervalState& state) override;
  bool wants_samples() const override { return next_.wants_samples(); }
  void samples(const engine::RunSamples& run) override { next_.samples(run); }
  /// Until all intervals are written. Before anything else is printed.
  void finish();

 private:
  static constexpr std::size_t kMostWaiting = 1000;
  struct Entry {
    engine::IntervalState state;
    std::chrono::system_clock::time_point end;
  };
  void write_all();
  void write(const Entry& entry);
  void write_record(const std::string& line);
  gdrperf::Counters read_ports() const REQUIRES(counting_);
  gdrperf::Counters risen_counters(std::string& devices);

  const IntervalOptions options_;
  engine::RunObserver& next_;
  UniqueFd file_;  ///< of options_.file, where that is none of the standard ones
  int out_ = -1;   ///< none: not asked for, or a file that could not be written
  IntervalMetrics sums_;  ///< of the writer
  std::string names_;     ///< of the writer: columns printed last

  Mutex counting_;
  std::vector<std::pair<std::string, int>> ports_ GUARDED_BY(counting_);
  gdrperf::Counters counters_ GUARDED_BY(counting_);  ///< of all ports together

  Mutex mutex_;
  std::condition_variable changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::deque<Entry> waiting_ GUARDED_BY(mutex_);
  std::jthread writer_;  ///< last: joined first
};

/// One interval as a JSON object, without the line's end; `end`: when it ended.
std::string interval_json(const engine::IntervalState& state, std::chrono::system_clock::time_point end,
                          const gdrperf::Counters& risen);

/// Names of the columns of interval_text().
std::string interval_names(const engine::IntervalState& state);

/// The same for people, in columns, with the dips and the counters that show trouble behind them.
std::string interval_text(const engine::IntervalState& state, const gdrperf::Counters& risen);

}  // namespace gdrperf::app
