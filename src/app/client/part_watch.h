#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/engine/observer.h"
#include "app/intervals/interval_sum.h"

namespace gdrperf::app {

/// Runs at the same time as one, for those who watch it: the sum of their rates and intervals, the samples of each in
/// turn. Thread-safe.
class PartWatch {
 public:
  /// `inner` null: nobody watches; else it outlives this.
  PartWatch(engine::RunObserver* inner, std::vector<std::string> names);

  /// What run `part` is watched by; borrowed.
  engine::RunObserver& of(std::size_t part) { return observers_[part]; }
  /// Messages of all parts have been on their way for a moment.
  bool flowing();
  /// All runs are over.
  void finish();

 private:
  class One final : public engine::RunObserver {
   public:
    One(PartWatch& all, std::size_t part) : all_(all), part_(part) {}
    void setting_up(const std::string& what) override;
    void measuring(const engine::RunState& state) override { all_.measuring(part_, state); }
    bool wants_rate() const override { return all_.inner_ != nullptr && all_.inner_->wants_rate(); }
    double interval_seconds() const override { return all_.seconds_; }
    void port(const std::string& device, int number) override { all_.port(device, number); }
    void interval(const engine::IntervalState& state) override;
    bool wants_samples() const override { return all_.inner_ != nullptr && all_.inner_->wants_samples(); }
    void samples(const engine::RunSamples& run) override;

   private:
    PartWatch& all_;
    std::size_t part_;
  };
  void measuring(std::size_t part, engine::RunState state);
  void port(const std::string& device, int number);

  engine::RunObserver* const inner_;
  const std::vector<std::string> names_;
  const double seconds_;
  std::vector<One> observers_;
  Mutex mutex_;
  std::vector<int> looks_ GUARDED_BY(mutex_);
  std::vector<double> rates_ GUARDED_BY(mutex_);
  std::set<std::pair<std::string, int>> ports_ GUARDED_BY(mutex_);
  IntervalSum intervals_ GUARDED_BY(mutex_);
  std::vector<std::optional<engine::RunSamples>> samples_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::app
