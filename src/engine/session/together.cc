#include "gdrperf/engine/together.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "engine/session/lap_gate.h"
#include "engine/figures/measure.h"
#include "engine/figures/part_sum.h"

namespace gdrperf::engine {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 20ms;
/// From the last run's arrival to the begin: all wake up, however few CPUs there are.
constexpr double kWakeNs = 500e3;
constexpr double kWakeOfEachNs = 50e3;
/// A thread that sleeps is woken so much before it is due, and spins.
constexpr double kSpinNs = 80e3;

/// Until the other ends have been told.
constexpr double kTellNs = 5e6;

}  // namespace

double wake_ns(int parts) { return kWakeNs + kWakeOfEachNs * parts; }

void wait_until(double at_ns) {
  const double left_ns = at_ns - now_ns() - kSpinNs;
  if (left_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(left_ns)));
  while (now_ns() < at_ns) ::sched_yield();
}

class Together::Impl {
 public:
  Impl(int parts, Servers servers)
      : laps_(static_cast<std::size_t>(parts)),
        servers_(servers),
        clocks_(static_cast<std::size_t>(parts)),
        curves_(static_cast<std::size_t>(parts)),
        finished_(static_cast<std::size_t>(parts)) {}

  /// The last one to come decides when all go on.
  double meet(int& arrived, double& begin_ns, const Look& look) {
    MutexLock lock(mutex_);
    const int parts = static_cast<int>(curves_.size());
    if (++arrived == parts) {
      begin_ns = now_ns() + wake_ns(parts);
      changed_.notify_all();
    }
    while (arrived < parts && !given_up_) {
      lock.wait_until(changed_, std::chrono::steady_clock::now() + kLookEvery);
      lock.unlock();
      look();
      lock.lock();
    }
    if (given_up_) throw peer_error("another of the runs at the same time has failed");
    return begin_ns;
  }

  void give_up() {
    laps_.give_up();
    const MutexLock lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

  bool all_finished(int part) {
    const MutexLock lock(mutex_);
    finished_[static_cast<std::size_t>(part)] = true;
    return given_up_ || std::find(finished_.begin(), finished_.end(), false) == finished_.end();
  }

  void add_clock(int part, const PeerClock& clock) {
    const MutexLock lock(mutex_);
    clocks_[static_cast<std::size_t>(part)] = clock;
  }

  PeerClock clock(int part) {
    const MutexLock lock(mutex_);
    if (servers_ == Servers::kEach) return clocks_[static_cast<std::size_t>(part)];
    return *std::min_element(clocks_.begin(), clocks_.end(),
                             [](const PeerClock& a, const PeerClock& b) { return a.unsure_ns < b.unsure_ns; });
  }

  void add(int part, PartCurve curve) {
    const MutexLock lock(mutex_);
    curves_[static_cast<std::size_t>(part)] = std::move(curve);
  }

  std::vector<PartCurve> curves() {
    const MutexLock lock(mutex_);
    return curves_;
  }

  LapGate laps_;
  int set_up_ = 0;
  int begun_ = 0;
  double set_up_ns_ = 0;
  double begin_ns_ = 0;

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  const Servers servers_;
  std::vector<PeerClock> clocks_ GUARDED_BY(mutex_);
  std::vector<PartCurve> curves_ GUARDED_BY(mutex_);
  std::vector<bool> finished_ GUARDED_BY(mutex_);
  bool given_up_ GUARDED_BY(mutex_) = false;
};

Together::Together(int parts, Servers servers) : impl_(std::make_unique<Impl>(parts, servers)) {}
Together::~Together() = default;

void Together::all_set_up(const Look& look) { impl_->meet(impl_->set_up_, impl_->set_up_ns_, look); }
void Together::add_clock(int part, const PeerClock& clock) { impl_->add_clock(part, clock); }
PeerClock Together::clock(int part) const { return impl_->clock(part); }
void Together::all_begin(const Look& look) { wait_until(impl_->meet(impl_->begun_, impl_->begin_ns_, look)); }
double Together::all_begin_there(const Look& look) {
  return impl_->meet(impl_->begun_, impl_->begin_ns_, look) + kTellNs;
}
bool Together::all_finished(int part) { return impl_->all_finished(part); }
LapGate& Together::laps() { return impl_->laps_; }
void Together::add(int part, const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  impl_->add(part, curve_of(run, spec, peer));
}
void Together::give_up() { impl_->give_up(); }
Together::Sum Together::sum(const TestSpec& spec) const {
  return sum_of(impl_->laps_.any() ? impl_->laps_.curves(impl_->curves(), spec) : impl_->curves(), spec);
}

}  // namespace gdrperf::engine
