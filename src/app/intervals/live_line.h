#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "app/output/output.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/engine/observer.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/progress.h"

namespace gdrperf::app {

/// Line in which a command says what its runs are doing.
enum class LiveTo {
  kTerminal,  ///< a line rewritten in place, where standard error is a terminal
  kLines,     ///< a line a second, wherever it goes (--progress)
  kNowhere,   ///< --quiet
};

LiveTo live_to(const OutputOptions& options);

/// Says what is set up and measured while a run goes on: rate, interval, time left.
/// A thread of its own writes, so that a terminal that is slow or held up (Ctrl-S)
/// does not hold up the run. begin() and end() are called by one thread.
class LiveLine final : public engine::RunObserver {
 public:
  /// `total` runs lie ahead.
  LiveLine(LiveTo to, report::RateUnit unit, std::size_t total);
  ~LiveLine() override;
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  /// `done` runs have ended and `what` ("write_bw 64 KiB") is on.
  void begin(std::size_t done, std::string what);
  /// The run is over: nothing is shown any more. Before anything else is printed.
  void end();
  /// What is known of the run that is on, or was last: "0.998 GB/s +-0.3 %, after 12 s"; "" for nothing.
  std::string so_far();

  void setting_up(const std::string& what) override;
  void measuring(const engine::RunState& state) override;
  /// Also where nothing is shown: when a run fails, so_far() is what is left of it.
  bool wants_rate() const override { return true; }

 private:
  void write_now_and_then();
  void write();
  std::string text() const REQUIRES(mutex_);

  LiveTo to_;
  report::RateUnit unit_;
  std::size_t total_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Mutex writing_ ACQUIRED_BEFORE(mutex_);  ///< held while something is written
  report::ProgressLine line_;              ///< written to under writing_

  Mutex mutex_;
  std::condition_variable changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  bool on_ GUARDED_BY(mutex_) = false;
  bool due_ GUARDED_BY(mutex_) = false;  ///< something new, not only newer figures
  std::size_t done_ GUARDED_BY(mutex_) = 0;
  std::string what_ GUARDED_BY(mutex_);
  std::string set_up_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point set_up_since_ GUARDED_BY(mutex_);
  std::optional<engine::RunState> state_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point told_ GUARDED_BY(mutex_);  ///< state_

  std::jthread writer_;  ///< last: joined first
};

/// For a run of `spec` that ended without a result: prints so_far(), if there is any.
void say_what_is_known(LiveLine& live, const TestSpec& spec);

/// Progress of a run: "3.42 GB/s +-0.8 %, 3 s left"; "measuring" without a figure.
std::string state_text(const engine::RunState& state, report::RateUnit unit);

/// Shows progress while this lives.
class LiveScope {
 public:
  LiveScope(LiveLine& line, std::size_t done, std::string what) : line_(line) { line_.begin(done, std::move(what)); }
  ~LiveScope() { line_.end(); }
  LiveScope(const LiveScope&) = delete;
  LiveScope& operator=(const LiveScope&) = delete;

 private:
  LiveLine& line_;
};

}  // namespace gdrperf::app
