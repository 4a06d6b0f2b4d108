#include "parts.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/app/companions.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/engine/together.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/inventory.h"
#include "lists.h"
#include "part_record.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

/// Share `part` of `total` things dealt to `parts`.
template <typename Count>
Count dealt(Count total, int parts, int part) {
  const auto n = static_cast<Count>(parts);
  return total / n + (static_cast<Count>(part) < total % n ? 1 : 0);
}

void check_enough(const std::string& what, std::uint64_t total, int parts) {
  if (total >= static_cast<std::uint64_t>(parts)) return;
  throw usage_error(fmt::format("{} {}: fewer than the {} runs at the same time that they are dealt to", what, total, parts));
}

/// What is said of the whole, dealt to one of several parts.
void deal(TestSpec& spec, int parts, int part) {
  if (spec.stop.iterations) spec.stop.iterations = dealt(*spec.stop.iterations, parts, part);
  spec.rate_per_s /= parts;
  spec.rate_bytes_per_s /= parts;
}

std::vector<std::string> active_devices() {
  std::vector<std::string> names;
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    const bool active = std::any_of(device.ports.begin(), device.ports.end(), [](const auto& port) { return port.port.active(); });
    if (active) names.push_back(device.name);
  }
  if (names.empty()) throw verbs::no_device_error();
  return names;
}

std::vector<std::string> rails_of(const TestSpec& spec) {
  if (spec.rails.empty()) return {};
  return spec.rails == "all" ? active_devices() : split_list(spec.rails, flag<&TestSpec::rails>().c_str());
}

/// A run on a thread of its own.
struct Worker {
  PartPlan plan;
  Client* client = nullptr;
  std::unique_ptr<Client> own = nullptr;  ///< a companion
  std::thread thread = {};
  report::RunRecord record = {};
};

/// Rates of all parts as one; told to those who watch the run by the first part's thread.
class LiveSum {
 public:
  LiveSum(engine::RunObserver* inner, std::size_t parts) : inner_(inner), rates_(parts) {}

  void setting_up(std::size_t part, const std::string& what) {
    if (part == 0 && inner_ != nullptr) inner_->setting_up(what);
  }
  void measuring(std::size_t part, engine::RunState state) {
    {
      const MutexLock lock(mutex_);
      rates_[part] = state.bytes_per_s;
      state.bytes_per_s = 0;
      for (const double rate : rates_) state.bytes_per_s += rate;
    }
    if (part == 0 && inner_ != nullptr) inner_->measuring(state);
  }

 private:
  engine::RunObserver* inner_;
  Mutex mutex_;
  std::vector<double> rates_ GUARDED_BY(mutex_);
};

class LivePart : public engine::RunObserver {
 public:
  LivePart(LiveSum& sum, std::size_t part) : sum_(sum), part_(part) {}
  void setting_up(const std::string& what) override { sum_.setting_up(part_, what); }
  void measuring(const engine::RunState& state) override { sum_.measuring(part_, state); }

 private:
  LiveSum& sum_;
  std::size_t part_;
};

class Team {
 public:
  Team(Client& client, std::vector<PartPlan> plans) : terms_(client.terms()), together_(static_cast<int>(plans.size())), live_(terms_.observer, plans.size()) {
    for (PartPlan& plan : plans) {
      Worker& worker = workers_.emplace_back();
      worker.plan = std::move(plan);
      worker.client = &client;
      if (workers_.size() == 1) continue;
      worker.own = client.companion();
      worker.client = worker.own.get();
    }
  }
  ~Team() { join(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void run() {
    for (std::size_t part = 0; part < workers_.size(); ++part) {
      {
        const MutexLock lock(mutex_);
        ++running_;
      }
      workers_[part].thread = std::thread([this, part] { work(part); });
    }
    wait();
    join();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  const engine::Together& together() const { return together_; }
  const std::vector<Worker>& workers() const { return workers_; }

 private:
  void work(std::size_t part) {
    Worker& worker = workers_[part];
    std::exception_ptr failure;
    try {
      worker.client->open();
      LivePart live(live_, part);
      engine::ClientTerms terms = terms_;
      terms.observer = &live;
      terms.stop = &stop_;
      terms.together = &together_;
      worker.record = worker.client->run_alone(worker.plan.spec, terms);
    } catch (const Error& error) {
      failure = std::make_exception_ptr(error.in(worker.plan.name));
    } catch (...) {
      failure = std::current_exception();
    }
    const MutexLock lock(mutex_);
    // What follows a failure is others' giving up.
    if (failure && !failure_) failure_ = failure;
    if (failure) {
      stop_ = true;
      together_.give_up();
    }
    --running_;
    changed_.notify_all();
  }

  /// Until all have ended; a signal is theirs too.
  void wait() {
    MutexLock lock(mutex_);
    while (running_ > 0) {
      lock.wait_until(changed_, std::chrono::steady_clock::now() + 50ms);
      if (terms_.stop != nullptr && terms_.stop->load()) stop_ = true;
    }
  }

  void join() noexcept {
    for (Worker& worker : workers_) {
      if (!worker.thread.joinable()) continue;
      worker.thread.join();
    }
  }

  engine::ClientTerms terms_;
  engine::Together together_;
  LiveSum live_;
  std::vector<Worker> workers_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  int running_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
};

}  // namespace

bool has_parts(const TestSpec& spec) { return spec.threads > 1 || !spec.rails.empty(); }

std::vector<PartPlan> plan_parts(const TestSpec& spec, const std::vector<std::string>& rails, const std::vector<std::string>& peer_rails) {
  const int rail_count = std::max(static_cast<int>(rails.size()), 1);
  const int parts = rail_count * spec.threads;
  if (parts > Companions::kMost + 1) {
    throw usage_error(fmt::format("{} rails with {} threads each: a client has {} runs at the same time at most", rail_count, spec.threads, Companions::kMost + 1));
  }
  if (spec.stop.iterations) check_enough(stop_flag<&StopRule::iterations>(), *spec.stop.iterations, parts);
  std::vector<PartPlan> plans;
  for (int part = 0; part < parts; ++part) {
    const int rail = part / spec.threads;
    const int thread = part % spec.threads;
    PartPlan plan{spec, ""};
    deal(plan.spec, parts, part);
    plan.spec.qps = dealt(std::max(spec.qps, spec.threads), spec.threads, thread);
    plan.spec.threads = 1;
    plan.spec.rails.clear();
    plan.spec.peer_rails.clear();
    plan.spec.parts = parts;
    plan.spec.part = part;
    if (!rails.empty()) {
      plan.spec.client.device = rails[static_cast<std::size_t>(rail)];
      plan.spec.server.device = peer_rails[static_cast<std::size_t>(rail)];
      plan.name = "rail " + plan.spec.client.device;
    }
    if (spec.threads > 1) plan.name += fmt::format("{}thread {}", plan.name.empty() ? "" : " ", thread);
    plans.push_back(std::move(plan));
  }
  return plans;
}

report::RunRecord run_parts(Client& client, const TestSpec& spec) {
  const std::vector<std::string> rails = rails_of(spec);
  // NICs of one rail have one name at both ends, as a rule.
  const std::vector<std::string> peer_rails = spec.peer_rails.empty() ? rails : split_list(spec.peer_rails, flag<&TestSpec::peer_rails>().c_str());
  if (peer_rails.size() != rails.size()) {
    throw usage_error(fmt::format("{} {}: {} devices, and this end has {} ({})", flag<&TestSpec::peer_rails>(), spec.peer_rails, peer_rails.size(),
                                  rails.size(), fmt::join(rails, ", ")));
  }
  Team team(client, plan_parts(spec, rails, peer_rails));
  team.run();
  std::vector<PartRun> runs;
  for (const Worker& worker : team.workers()) runs.push_back({worker.plan.name, worker.record});
  return record_of_parts(spec, runs, team.together());
}

}  // namespace gdrperf::app
