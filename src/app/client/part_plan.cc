// Runs at the same time: how what was asked for is dealt to them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/client/parts.h"
#include "gdrperf/proto/rate.h"
#include "app/options/lists.h"
#include "app/server/session_guests.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {
namespace {

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
    const bool active =
        std::any_of(device.ports.begin(), device.ports.end(), [](const auto& port) { return port.port.active(); });
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
  throw usage_error(fmt::format("{} {}: {} for {} rails", option, buffer, each.size(), rails),
                    "give one for each, or one for all");
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
    throw usage_error(
        fmt::format("{} runs at the same time: a client has {} at most", company, SessionGuests::kMost + 1));
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
    plans.push_back(spec.incast > 1 ? client_plan(std::move(plan), rails, part)
                                    : rail_plan(std::move(plan), spec, rails, part));
  }
  return plans;
}

TestSpec victim_spec(const TestSpec& spec, const Rails& rails) {
  TestSpec test = latency_beside(spec);
  test.parts = spec.incast + 1;
  test.part = spec.incast;
  if (spec.victim != "any") {
    test.client.device = spec.victim;
  } else if (!rails.own.empty()) {
    place(test.client, rails.own.front(), port_at(rails.own_ports, 0));
  }
  test.client.buffer =
      buffer_of(spec.client.buffer, 0, std::max(rails.own.size(), std::size_t{1}), own_flag<&EndSpec::buffer>());
  return test;
}

}  // namespace gdrperf::app
