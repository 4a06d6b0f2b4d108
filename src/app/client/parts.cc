#include "app/client/parts.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/engine/together.h"
#include "gdrperf/proto/rate.h"
#include "gdrperf/proto/settings.h"
#include "app/client/part_record.h"
#include "app/client/part_watch.h"
#include "app/client/under_load.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

/// A run on a thread of its own.
struct Worker {
  PartPlan plan;
  Client* client = nullptr;
  std::unique_ptr<Client> own = nullptr;  ///< a guest
  std::jthread thread = {};
  report::RunRecord record = {};
};

std::vector<std::string> names_of_parts(const std::vector<PartPlan>& plans) {
  std::vector<std::string> names;
  for (const PartPlan& plan : plans) names.push_back(plan.name);
  return names;
}

class Team {
 public:
  Team(Client& client, std::vector<PartPlan> plans)
      : terms_(client.terms()),
        together_(static_cast<int>(plans.size()), client.hosts().empty() ? engine::Together::Servers::kOne
                                                                         : engine::Together::Servers::kEach),
        live_(terms_.observer, names_of_parts(plans)) {
    for (PartPlan& plan : plans) {
      Worker& worker = workers_.emplace_back();
      worker.plan = std::move(plan);
      worker.client = &client;
      if (workers_.size() == 1) continue;
      worker.own = client.guest();
      worker.own->set_stop(&stop_);
      worker.client = worker.own.get();
    }
  }
  ~Team() { join(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// All parts, until each has ended by its own rule.
  void run() {
    begin();
    wait();
    finish();
  }

  /// The same, while `beside` runs; its end is theirs.
  void run(const std::function<void(engine::RunObserver&)>& beside) {
    terms_.stop_is_the_end = true;
    begin();
    try {
      Attention attention(*this);
      if (await_flow()) beside(attention);
    } catch (...) {
      fail(std::current_exception());
    }
    stop_ = true;
    wait();
    finish();
  }

  const engine::Together& together() const { return together_; }
  const std::vector<Worker>& workers() const { return workers_; }

 private:
  /// Ends the run beside the parts where one of them has failed.
  class Attention : public engine::RunObserver {
   public:
    explicit Attention(Team& team) : team_(team) {}
    void setting_up(const std::string&) override {}
    void measuring(const engine::RunState&) override { team_.check(); }

   private:
    Team& team_;
  };

  void begin() {
    for (std::size_t part = 0; part < workers_.size(); ++part) {
      {
        const MutexLock lock(mutex_);
        ++running_;
      }
      try {
        workers_[part].thread = start_thread(
            "a run among others", [this, part] { work(part); }, [](const std::exception_ptr&) {});
      } catch (...) {  // those that run already wait for this one
        ended(std::current_exception());
        return;
      }
    }
  }

  void finish() {
    join();
    check();
    live_.finish();
  }

  void check() {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  /// What follows a failure is others' giving up.
  void fail(std::exception_ptr failure) {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    stop_ = true;
    together_.give_up();
  }

  /// False where a part ended before.
  bool await_flow() {
    MutexLock lock(mutex_);
    while (!live_.flowing()) {
      if (running_ < static_cast<int>(workers_.size()) || (terms_.stop != nullptr && terms_.stop->load())) return false;
      lock.wait_until(changed_, std::chrono::steady_clock::now() + 50ms);
    }
    return true;
  }

  void work(std::size_t part) {
    Worker& worker = workers_[part];
    std::exception_ptr failure;
    try {
      worker.client->open();
      engine::ClientTerms terms = terms_;
      terms.observer = &live_.of(part);
      terms.stop = &stop_;
      terms.together = &together_;
      worker.record = worker.client->run_alone(worker.plan.spec, terms);
    } catch (const Error& error) {
      failure = std::make_exception_ptr(error.in(worker.plan.name));
    } catch (...) {
      failure = std::current_exception();
    }
    ended(std::move(failure));
  }

  /// `failure`: null where a part has ended well.
  void ended(std::exception_ptr failure) {
    if (failure) fail(std::move(failure));
    const MutexLock lock(mutex_);
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
    for (Worker& worker : workers_) worker.thread = {};
  }

  engine::ClientTerms terms_;
  engine::Together together_;
  PartWatch live_;
  std::vector<Worker> workers_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  int running_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
};

report::RunRecord record_of(const TestSpec& spec, const Team& team) {
  std::vector<PartRun> runs;
  for (const Worker& worker : team.workers()) runs.push_back({worker.plan.name, worker.record});
  return record_of_parts(spec, runs, team.together());
}

/// The test of `victim` alone, and beside the parts of `plans`, which it ends.
report::RunRecord run_with_victim(Client& client, const TestSpec& spec, std::vector<PartPlan> plans,
                                  const TestSpec& victim) {
  const auto named = [&](const Error& error) {
    return error.in(fmt::format("{} {}", flag<&TestSpec::victim>(), spec.victim));
  };
  const std::unique_ptr<Client> guest = client.guest();
  report::RunRecord idle;
  try {
    guest->open();
    idle = idle_run(*guest, victim);
  } catch (const Error& error) {
    throw named(error);
  }
  for (PartPlan& plan : plans) plan.spec.stop = longer_than(spec.stop);
  Team team(client, std::move(plans));
  std::optional<report::RunRecord> loaded;
  team.run([&](engine::RunObserver& observer) {
    engine::ClientTerms terms = client.terms();
    terms.observer = &observer;
    try {
      loaded = guest->run_alone(victim, terms);
    } catch (const Error& error) {
      throw named(error);
    }
  });
  report::RunRecord record = record_of(spec, team);
  if (!loaded) return record;  // stopped before
  record.measured.stop = loaded->measured.stop;
  record.measured.victim = {victim.test, loaded->client.device, idle.measured.latency.value(),
                            loaded->measured.latency.value()};
  for (const std::string& warning : loaded->measured.warnings) record.measured.warnings.push_back("victim: " + warning);
  return record;
}

}  // namespace

report::RunRecord run_parts(Client& client, const TestSpec& spec) {
  const Rails rails = rails_of(spec);
  std::vector<PartPlan> plans = plan_parts(spec, rails);
  // Each of its own server.
  const std::vector<std::string> hosts = client.hosts();
  for (std::size_t part = 0; part < std::min(hosts.size(), plans.size()); ++part)
    plans[part].name = "host " + hosts[part];
  if (!spec.victim.empty()) return run_with_victim(client, spec, std::move(plans), victim_spec(spec, rails));
  Team team(client, std::move(plans));
  team.run();
  return record_of(spec, team);
}

}  // namespace gdrperf::app
