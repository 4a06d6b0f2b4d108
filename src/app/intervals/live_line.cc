#include "app/intervals/live_line.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using std::chrono::steady_clock;

std::string figure_text(const engine::RunState& state, report::RateUnit unit) {
  if (state.p50_ns > 0) return fmt::format("p50 {} us", plain_digits(state.p50_ns / 1e3));
  if (state.bytes_per_s <= 0) return "measuring";
  const bool bits = unit == report::RateUnit::kGigabits;
  return fmt::format("{} {}", plain_digits(state.bytes_per_s * (bits ? 8e-9 : 1e-9)), bits ? "Gb/s" : "GB/s");
}

}  // namespace

std::string state_text(const engine::RunState& state, report::RateUnit unit) {
  std::string text = figure_text(state, unit);
  if (std::isfinite(state.half_width))
    text += state.half_width > 1 ? " not known" : fmt::format(" +-{} %", plain_digits(state.half_width * 100, 2));
  if (!std::isfinite(state.left_s)) return text;
  return text + fmt::format(", {}{} left", state.may_end_earlier ? "at most " : "", report::short_time(state.left_s));
}

std::string so_far_text(const engine::RunState& state, report::RateUnit unit) {
  if (state.p50_ns <= 0 && state.bytes_per_s <= 0) return {};
  const bool known = std::isfinite(state.half_width) && state.half_width <= 1;
  return fmt::format("{}{}, after {}", figure_text(state, unit),
                     known ? fmt::format(" +-{} %", plain_digits(state.half_width * 100, 2)) : "",
                     report::short_time(state.elapsed_s));
}

void say_what_is_known(LiveLine& live, const TestSpec& spec) {
  const std::string known = live.so_far();
  if (known.empty()) return;
  say(fmt::format("until then: {}{}", known,
                  spec.direction == Direction::kBidirectional ? ", of what the client sent" : ""));
}

LiveTo live_to(const OutputOptions& options) {
  if (options.talk == Talk::kQuiet) return LiveTo::kNowhere;
  return options.progress_lines ? LiveTo::kLines : LiveTo::kTerminal;
}

LiveLine::LiveLine(LiveTo to, report::RateUnit unit, std::size_t total)
    : to_(to), unit_(unit), total_(total), line_(stderr) {
  if (to_ != LiveTo::kLines && (to_ != LiveTo::kTerminal || !line_.enabled())) return;
  writer_ = start_thread("progress", [this] { write_now_and_then(); }, [](const std::exception_ptr&) {});
}

LiveLine::~LiveLine() {
  {
    const MutexLock guard(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  writer_ = {};  // joins
}

void LiveLine::begin(std::size_t done, std::string what) {
  const MutexLock guard(mutex_);
  on_ = true;
  done_ = done;
  what_ = std::move(what);
  set_up_.clear();
  state_.reset();
  // On a terminal at once; a line in a log has to say something.
  due_ = to_ == LiveTo::kTerminal;
  changed_.notify_one();
}

void LiveLine::end() {
  const MutexLock writing(writing_);
  const MutexLock guard(mutex_);
  on_ = false;
  line_.clear();
}

std::string LiveLine::so_far() {
  const MutexLock guard(mutex_);
  return state_ ? so_far_text(*state_, unit_) : std::string();
}

void LiveLine::setting_up(const std::string& what) {
  const MutexLock guard(mutex_);
  set_up_ = what;
  set_up_since_ = steady_clock::now();
  due_ = true;
  changed_.notify_one();
}

void LiveLine::measuring(const engine::RunState& state) {
  const MutexLock guard(mutex_);
  const bool first = !state_;
  state_ = state;
  told_ = steady_clock::now();
  if (!first) return;
  due_ = true;
  changed_.notify_one();
}

void LiveLine::write_now_and_then() {
  const auto pause = std::chrono::milliseconds(to_ == LiveTo::kLines ? 1000 : 250);
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto deadline = steady_clock::now() + pause;
      while (!over_ && !due_ && lock.wait_until(changed_, deadline) != std::cv_status::timeout) {}
      if (over_) return;
      due_ = false;
    }
    write();
  }
}

void LiveLine::write() {
  const MutexLock writing(writing_);
  std::string shown;
  {
    const MutexLock guard(mutex_);
    if (!on_ || (to_ == LiveTo::kLines && !state_ && set_up_.empty())) return;
    shown = text();
  }
  if (to_ == LiveTo::kLines) say(shown);
  else line_.show(printable(shown));
}

std::string LiveLine::text() const {
  std::string text = what_;
  if (state_) {
    text += ": " + state_text(*state_, unit_);
    const std::chrono::duration<double> since = steady_clock::now() - told_;
    if (since.count() >= 2) text += fmt::format(", nothing new for {}", report::short_time(since.count()));
  } else if (!set_up_.empty()) {
    const std::chrono::duration<double> since = steady_clock::now() - set_up_since_;
    text += ": " + set_up_;
    if (since.count() >= 1) text += fmt::format(", {} so far", report::short_time(since.count()));
  }
  return total_ == 1 ? text : report::progress_line(done_, total_, text, steady_clock::now() - started_);
}

}  // namespace gdrperf::app
