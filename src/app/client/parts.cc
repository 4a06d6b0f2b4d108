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
#include <fmt/ranges.h>

#include "app/server/session_guests.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/engine/together.h"
#include "gdrperf/proto/rate.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/inventory.h"
#include "app/options/lists.h"
#include "app/client/part_record.h"
#include "app/client/part_watch.h"
#include "app/client/under_load.h"

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
  throw usage_error(fmt::format("{} {}: fewer than the {} simultaneous runs that share them", what, total, parts));
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

int clients_of(const TestSpec& spec, const Rails& rails) {
  return spec.incast > 1 ? spec.incast : std::max(static_cast<int>(rails.own.size()), 1) * spec.threads;
}

/// The ports of "soft0:1", which become "soft0".
std::vector<int> take_ports(std::vector<std::string>& devices, const std::string& option) {
  constexpr int kMostPort = 255;
  std::vector<int> ports;
  for (std::string& device : devices) {
    const std::size_t colon = device.rfind(':');
    const bool named = colon != std::string::npos;
    ports.push_back(named ? static_cast<int>(parse_integer(device.substr(colon + 1), option, 1, kMostPort)) : 0);
    if (named) device.resize(colon);
  }
  return ports;
}

int port_at(const std::vector<int>& ports, std::size_t rail) { return rail < ports.size() ? ports[rail] : 0; }

void place(EndSpec& end, const std::string& device, int port) {
  end.device = device;
  if (port > 0) end.port = port;
}

/// "soft0", "soft0:2", "port 2".
std::string name_of(const std::string& device, int port) {
  if (port == 0) return device;
  return device.empty() ? fmt::format("port {}", port) : fmt::format("{}:{}", device, port);
}

/// Of "cuda:0,cuda:1" that of one rail; one kind of memory is that of all.
std::string buffer_of(const std::string& buffer, std::size_t rail, std::size_t rails, const std::string& option) {
  if (buffer.find(',') == std::string::npos) return buffer;
  const std::vector<std::string> each = split_list(buffer, option.c_str());
  if (each.size() == rails) return each[rail];
  throw usage_error(fmt::format("{} {}: {} for {} rails", option, buffer, each.size(), rails), "give one for each, or one for all");
}

PartPlan client_plan(PartPlan plan, const Rails& rails, int part) {
  plan.name = fmt::format("client {}", part);
  if (rails.own.empty()) return plan;
  const std::size_t rail = static_cast<std::size_t>(part) % rails.own.size();
  place(plan.spec.client, rails.own[rail], port_at(rails.own_ports, rail));
  plan.spec.client.buffer = buffer_of(plan.spec.client.buffer, rail, rails.own.size(), own_flag<&EndSpec::buffer>());
  plan.name += " " + name_of(rails.own[rail], port_at(rails.own_ports, rail));
  return plan;
}

PartPlan rail_plan(PartPlan plan, const TestSpec& spec, const Rails& rails, int part) {
  const auto rail = static_cast<std::size_t>(part / spec.threads);
  const int thread = part % spec.threads;
  plan.spec.qps = dealt(std::max(spec.qps, spec.threads), spec.threads, thread);
  if (!rails.own.empty()) {
    place(plan.spec.client, rails.own[rail], port_at(rails.own_ports, rail));
    place(plan.spec.server, rails.peer[rail], port_at(rails.peer_ports, rail));
    plan.spec.client.buffer = buffer_of(spec.client.buffer, rail, rails.own.size(), own_flag<&EndSpec::buffer>());
    plan.spec.server.buffer = buffer_of(spec.server.buffer, rail, rails.own.size(), peer_flag<&EndSpec::buffer>());
    plan.name = "rail " + name_of(rails.own[rail], port_at(rails.own_ports, rail));
  }
  if (spec.threads > 1) plan.name += fmt::format("{}thread {}", plan.name.empty() ? "" : " ", thread);
  return plan;
}

/// The latency test beside an incast, as one more client.
TestSpec victim_spec(const TestSpec& spec, const Rails& rails) {
  TestSpec test = latency_beside(spec);
  test.parts = spec.incast + 1;
  test.part = spec.incast;
  if (spec.victim != "any") {
    test.client.device = spec.victim;
  } else if (!rails.own.empty()) {
    place(test.client, rails.own.front(), port_at(rails.own_ports, 0));
  }
  test.client.buffer = buffer_of(spec.client.buffer, 0, std::max(rails.own.size(), std::size_t{1}), own_flag<&EndSpec::buffer>());
  return test;
}

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
  Team(Client& client, std::vector<PartPlan> plans) : terms_(client.terms()), together_(static_cast<int>(plans.size())), live_(terms_.observer, names_of_parts(plans)) {
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
report::RunRecord run_with_victim(Client& client, const TestSpec& spec, std::vector<PartPlan> plans, const TestSpec& victim) {
  const auto named = [&](const Error& error) { return error.in(fmt::format("{} {}", flag<&TestSpec::victim>(), spec.victim)); };
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
  record.measured.victim = {victim.test, loaded->client.device, idle.measured.latency.value(), loaded->measured.latency.value()};
  for (const std::string& warning : loaded->measured.warnings) record.measured.warnings.push_back("victim: " + warning);
  return record;
}

}  // namespace

Rails rails_of(const TestSpec& spec) {
  if (spec.rails.empty()) return {};
  Rails rails;
  rails.own = spec.rails == "all" ? active_devices() : split_list(spec.rails, flag<&TestSpec::rails>().c_str());
  // NICs of one rail have one name at both ends, as a rule.
  rails.peer = spec.peer_rails.empty() ? rails.own : split_list(spec.peer_rails, flag<&TestSpec::peer_rails>().c_str());
  if (rails.peer.size() == rails.own.size()) {
    rails.own_ports = take_ports(rails.own, flag<&TestSpec::rails>());
    rails.peer_ports = take_ports(rails.peer, flag<&TestSpec::peer_rails>());
    return rails;
  }
  throw usage_error(fmt::format("{} {}: {} devices, but the client has {} ({})", flag<&TestSpec::peer_rails>(),
                                spec.peer_rails, rails.peer.size(), rails.own.size(), fmt::join(rails.own, ", ")));
}

bool has_parts(const TestSpec& spec) { return spec.threads > 1 || !spec.rails.empty() || spec.incast > 1; }

std::vector<PartPlan> plan_parts(const TestSpec& spec, const Rails& rails) {
  const int parts = clients_of(spec, rails);
  const int company = parts + (spec.victim.empty() ? 0 : 1);
  if (company > SessionGuests::kMost + 1) {
    throw usage_error(fmt::format("{} runs at the same time: a client has {} at most", company, SessionGuests::kMost + 1));
  }
  if (spec.stop.iterations) check_enough(stop_flag<&StopRule::iterations>(), *spec.stop.iterations, parts);
  std::vector<PartPlan> plans;
  for (int part = 0; part < parts; ++part) {
    PartPlan plan{spec, ""};
    deal(plan.spec, parts, part);
    plan.spec.threads = plan.spec.incast = 1;
    plan.spec.rails.clear();
    plan.spec.peer_rails.clear();
    plan.spec.victim.clear();
    plan.spec.parts = company;
    plan.spec.part = part;
    plans.push_back(spec.incast > 1 ? client_plan(std::move(plan), rails, part) : rail_plan(std::move(plan), spec, rails, part));
  }
  return plans;
}

report::RunRecord run_parts(Client& client, const TestSpec& spec) {
  const Rails rails = rails_of(spec);
  std::vector<PartPlan> plans = plan_parts(spec, rails);
  // Each of its own server.
  const std::vector<std::string> hosts = client.hosts();
  for (std::size_t part = 0; part < std::min(hosts.size(), plans.size()); ++part) plans[part].name = "host " + hosts[part];
  if (!spec.victim.empty()) return run_with_victim(client, spec, std::move(plans), victim_spec(spec, rails));
  Team team(client, std::move(plans));
  team.run();
  return record_of(spec, team);
}

}  // namespace gdrperf::app
