#include "cluster/wire/wire.h"

#include <type_traits>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/wire/round_wire.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {

// Not in the nameless namespace: the library finds them by their types' namespace.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CardDevice, name, kind, driver, firmware, mtu_bytes, rate_gbps, gid_type, pcie,
                                   numa_node, port, netdev, gpu, gpu_relation)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Card, rank, ranks, host, host_id, node, leaf, pod, devices_given, kernel, gpu_driver,
                                   version, gpu_nodes, trouble, relay_port, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RelayChild, rank, below)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BecomeRelay, children)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Attach, host, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Joined, rank, missing)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Lost, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpenDevices, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ports, ports, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Invite, rank, ranks, deadline_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReadCounters, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Counters, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AskCollective, maker, new_id)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveReady, gpus, version, unique_id, why_not)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveEnd, rank, gpu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Collective, id, unique_id, ranks, size_bytes, timed, limit_ns, ends)
void to_json(nlohmann::json& out, const End&) { out = nlohmann::json::object(); }
void from_json(const nlohmann::json&, End&) {}

namespace {

// Those are bytes (round_wire.h).
template <typename T>
constexpr bool kIsOfRound = std::is_same_v<T, Measure> || std::is_same_v<T, Rates>;

constexpr const char* kNames[] = {"card",   "open", "ports",         "measure",  "rates",  "end",
                                  "relay",  "attach", "joined",      "lost",     "read_counters", "counters",
                                  "invite", "ask_collective", "collective_ready", "collective"};
static_assert(std::size(kNames) == std::variant_size_v<ClusterMessage>);

template <std::size_t I = 0>
ClusterMessage decode_named(const std::string& name, const nlohmann::json& value) {
  if constexpr (I == std::variant_size_v<ClusterMessage>) {
    throw peer_error(fmt::format("cluster message '{}' is unknown", name.substr(0, 40)));
  } else {
    using Named = std::variant_alternative_t<I, ClusterMessage>;
    if constexpr (!kIsOfRound<Named>) {
      if (name == kNames[I]) return value.get<Named>();
    }
    return decode_named<I + 1>(name, value);
  }
}

}  // namespace

std::string encode_cluster_text(const ClusterMessage& message) {
  if (const auto* order = std::get_if<Measure>(&message)) return pack_measure(*order);
  if (const auto* rates = std::get_if<Rates>(&message)) return pack_rates(*rates);
  nlohmann::json out;
  const auto write = [&](const auto& m) {
    if constexpr (!kIsOfRound<std::decay_t<decltype(m)>>) out = m;
  };
  std::visit(write, message);
  out["cluster"] = kNames[message.index()];
  // Host names and reasons may hold bytes that are no UTF-8.
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

proto::Cluster encode_cluster(const ClusterMessage& message) { return {encode_cluster_text(message)}; }

ClusterMessage decode_cluster_text(std::string_view text, const std::string& peer) {
  try {
    if (auto of_round = unpack_round(text)) return *std::move(of_round);
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
