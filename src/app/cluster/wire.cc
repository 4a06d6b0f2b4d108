#include "cluster/wire.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

// Not in the nameless namespace: the library finds them by their types' namespace.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CardDevice, name, kind, driver, firmware, mtu_bytes, rate_gbps, gid_type, pcie, numa_node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Card, rank, ranks, host, host_id, leaf, kernel, gpu_driver, version, relay_port, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RelayChild, rank, below)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BecomeRelay, children)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Attach, host, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Joined, rank, missing)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Lost, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpenDevices, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ports, ports)
// As lists: rank 0 of 10,000 writes and reads 80,000 of them for each run.
void to_json(nlohmann::json& out, const ClusterRun& run) {
  out = nlohmann::json::array({run.host, run.port, run.device, run.peer_device});
}
void from_json(const nlohmann::json& in, ClusterRun& run) {
  run = {in.at(0).get<std::string>(), in.at(1).get<int>(), in.at(2).get<std::string>(), in.at(3).get<std::string>()};
}
void to_json(nlohmann::json& out, const ClusterRate& rate) { out = nlohmann::json::array({rate.gbytes, rate.latency_us, rate.error}); }
void from_json(const nlohmann::json& in, ClusterRate& rate) {
  rate = {in.at(0).get<double>(), in.at(1).get<double>(), in.at(2).get<std::string>()};
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measure, id, size_bytes, duration_ns, event, latency, runs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Rates, id, rates)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Invite, rank, ranks, deadline_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReadCounters, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Counters, devices)
void to_json(nlohmann::json& out, const End&) { out = nlohmann::json::object(); }
void from_json(const nlohmann::json&, End&) {}

namespace {

constexpr const char* kNames[] = {"card", "open", "ports", "measure", "rates", "end", "relay", "attach", "joined", "lost", "read_counters", "counters", "invite"};
static_assert(std::size(kNames) == std::variant_size_v<ClusterMessage>);

template <std::size_t I = 0>
ClusterMessage decode_named(const std::string& name, const nlohmann::json& value) {
  if constexpr (I == std::variant_size_v<ClusterMessage>) {
    throw peer_error(fmt::format("cluster message '{}' is unknown", name.substr(0, 40)));
  } else {
    if (name != kNames[I]) return decode_named<I + 1>(name, value);
    return value.get<std::variant_alternative_t<I, ClusterMessage>>();
  }
}

}  // namespace

std::string encode_cluster_text(const ClusterMessage& message) {
  nlohmann::json out;
  std::visit([&](const auto& m) { out = m; }, message);
  out["cluster"] = kNames[message.index()];
  // In ASCII alone: the channel replaces control characters of any other, which would change lengths in a bundle.
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

proto::Cluster encode_cluster(const ClusterMessage& message) { return {encode_cluster_text(message)}; }

ClusterMessage decode_cluster_text(std::string_view text, const std::string& peer) {
  try {
    const auto value = nlohmann::json::parse(text);
    return decode_named(value.at("cluster").get<std::string>(), value);
  } catch (const nlohmann::json::exception& error) {
    throw peer_error(fmt::format("{}: cluster message not understood: {}", peer, error.what()));
  } catch (const Error& error) {
    throw error.in(peer);
  }
}

ClusterMessage decode_cluster(const proto::Cluster& message, const std::string& peer) {
  return decode_cluster_text(message.text, peer);
}

}  // namespace gdrperf::app
