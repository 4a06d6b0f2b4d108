#include "engine/session/lap_gate.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "gdrperf/base/error.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

using namespace std::chrono_literals;

constexpr auto kLapLookEvery = 20ms;

}  // namespace

LapGate::LapGate(std::size_t parts)
    : parts_(parts),
      present_(parts),
      laps_(parts),
      batch_messages_(parts),
      series_(parts, BatchSeries(kLeastBatchSeconds, kBatchSeconds)),
      late_s_(parts) {}

double LapGate::meet(const Look& look) {
  MutexLock lock(mutex_);
  const std::uint64_t round = round_;
  if (++arrived_ == present_) open();
  while (round_ == round && !given_up_) {
    lock.wait_until(changed_, std::chrono::steady_clock::now() + kLapLookEvery);
    lock.unlock();
    look();
    lock.lock();
  }
  if (given_up_) throw peer_error("another of the runs at the same time has failed");
  return begin_ns_;
}

void LapGate::add(int part, const Lap& lap) {
  const MutexLock lock(mutex_);
  laps_[static_cast<std::size_t>(part)] = lap;
}

void LapGate::leave() {
  const MutexLock lock(mutex_);
  if (--present_ == arrived_) open();
}

void LapGate::give_up() {
  const MutexLock lock(mutex_);
  given_up_ = true;
  changed_.notify_all();
}

void LapGate::open() {
  fold();
  arrived_ = 0;
  ++round_;
  begin_ns_ = now_ns() + wake_ns(static_cast<int>(parts_));
  changed_.notify_all();
}

void LapGate::fold() {
  double from_ns = std::numeric_limits<double>::infinity();
  double to_ns = 0;
  bool all = true;
  bool alone = false;
  for (const std::optional<Lap>& lap : laps_) {
    all = all && lap;
    if (!lap) continue;
    alone = alone || lap->alone;
    from_ns = std::min(from_ns, lap->from_ns);
    to_ns = std::max(to_ns, lap->to_ns);
  }
  if ((all || alone) && to_ns > from_ns) {
    for (std::size_t part = 0; part < parts_; ++part) {
      if (!laps_[part]) continue;
      if (total_s_ == 0) late_s_[part] = (laps_[part]->from_ns - from_ns) * 1e-9;
      batch_messages_[part] += laps_[part]->messages;
    }
    batch_s_ += (to_ns - from_ns) * 1e-9;
    total_s_ += (to_ns - from_ns) * 1e-9;
  }
  if (batch_s_ >= series_.front().target_seconds() || (present_ == 0 && batch_s_ > 0)) close_batch();
  std::fill(laps_.begin(), laps_.end(), std::nullopt);
}

void LapGate::close_batch() {
  for (std::size_t part = 0; part < parts_; ++part)
    series_[part].add(batch_s_, std::exchange(batch_messages_[part], 0));
  batch_s_ = 0;
}

bool LapGate::any() const {
  const MutexLock lock(mutex_);
  return total_s_ > 0;
}

std::vector<PartCurve> LapGate::curves(std::vector<PartCurve> parts, const TestSpec& spec) const {
  const MutexLock lock(mutex_);
  for (std::size_t part = 0; part < parts_; ++part) {
    BandwidthRun run = parts[part].run;
    run.series = series_[part];
    run.sent = run.messages = series_[part].total_messages();
    run.start_ns = late_s_[part] * 1e9;
    run.first_batch_ns = 0;
    run.end_ns = total_s_ * 1e9;
    run.seconds = total_s_;
    run.ramp_s = 0;
    parts[part] = curve_of(run, spec, nullptr);
  }
  return parts;
}

}  // namespace gdrperf::engine
