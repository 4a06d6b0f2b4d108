#include "cluster_agent.h"

#include <algorithm>
#include <exception>
#include <list>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/app/client.h"
#include "gdrperf/app/server.h"
#include "gdrperf/app/stop_signal.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/version.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kHelloPatience = 3500ms;
// A deep queue of middling messages takes a slow link long to drain; of large ones the engine's own choice is few.
constexpr int kTxDepth = 32;
constexpr std::uint64_t kLargeBytes = 128u << 10;

// "16.0 GT/s PCIe x16", as the link was trained.
std::string pcie_link(const std::string& pci_address) {
  if (pci_address.empty()) return {};
  const std::string folder = "/sys/bus/pci/devices/" + pci_address;
  const std::string speed = read_line_or_empty(folder + "/current_link_speed");
  return speed.empty() ? std::string() : speed + " x" + read_line_or_empty(folder + "/current_link_width");
}

CardDevice card_of(const verbs::DeviceInfo& info, const verbs::PortDetails& details) {
  CardDevice card;
  card.name = info.name;
  card.kind = verbs::to_string(info.kind);
  card.driver = info.driver;
  card.firmware = info.firmware;
  card.mtu_bytes = details.port.active_mtu_bytes;
  card.rate_gbps = details.port.rate_gbps;
  card.pcie = pcie_link(info.pci_address);
  card.numa_node = info.numa_node;
  // What a run takes where both ends have it.
  if (const auto families = verbs::families(details.gids); !families.empty()) card.gid_type = families.front();
  return card;
}

// A server per device: the rails of a node are measured at once.
class DeviceServers {
 public:
  DeviceServers(std::size_t count, const proto::Token& token) {
    for (std::size_t i = 0; i < count; ++i) {
      ServerSettings settings;
      settings.token = token;
      servers_.emplace_back(proto::Listener("", 0), settings);
    }
  }
  Ports ports() const {
    Ports ports;
    for (const One& one : servers_) ports.ports.push_back(one.server.port());
    return ports;
  }

 private:
  struct One {
    One(proto::Listener listener, const ServerSettings& settings)
        // What fails here is told to the client, which is another rank.
        : server(std::move(listener), settings, [](const std::string&) {}),
          thread([this] { server.run(stop); }) {}
    ~One() {
      stop.trigger();
      thread.join();
    }
    StopSignal stop;
    Server server;
    std::thread thread;
  };
  std::list<One> servers_;
};

ClusterRate run_link(const ClusterRun& run, const Measure& measure, const proto::Token& token) {
  try {
    TestSpec spec;
    spec.test = {Operation::kWrite, Metric::kBandwidth};
    spec.size_bytes = measure.size_bytes;
    spec.tx_depth = measure.size_bytes > kLargeBytes ? 0 : kTxDepth;
    spec.client.device = run.device;
    spec.server.device = run.peer_device;
    spec.wait = measure.event ? Wait::kEvent : Wait::kPoll;
    spec.stop.duration = std::chrono::nanoseconds(measure.duration_ns);
    validate(spec);
    const auto client = make_remote_client({run.host, run.port, token}, [](const std::string&) {});
    client->open();
    const report::RunRecord record = client->run(spec);
    const auto& bandwidth = record.measured.bandwidth;
    if (!bandwidth || !(bandwidth->median_gbytes > 0)) return {0, "no bandwidth was measured"};
    return {bandwidth->median_gbytes, ""};
  } catch (const std::exception& error) {
    return {0, error.what()};
  }
}

Rates run_all(const Measure& measure, const proto::Token& token) {
  Rates rates{measure.id, std::vector<ClusterRate>(measure.runs.size())};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < measure.runs.size(); ++i) {
    threads.emplace_back([&, i] { rates.rates[i] = run_link(measure.runs[i], measure, token); });
  }
  for (std::thread& thread : threads) thread.join();
  return rates;
}

}  // namespace

Card own_card(const cluster::Launch& launch, const std::vector<std::string>& wanted,
              const std::string& leaf) {
  const report::Environment environment = report::collect_environment();
  Card card;
  card.rank = launch.rank;
  card.ranks = launch.ranks;
  card.host = environment.hostname;
  card.host_id = host_identity();
  card.leaf = leaf;
  card.kernel = environment.kernel;
  card.gpu_driver = environment.gpu_driver;
  card.version = tool_version();
  std::vector<std::string> there;
  for (const verbs::DeviceInfo& info : verbs::list_devices()) {
    there.push_back(info.name);
    const auto active = std::find_if(info.ports.begin(), info.ports.end(),
                                     [](const verbs::PortDetails& each) { return each.port.active(); });
    const bool asked =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), info.name) != wanted.end();
    if (asked && active != info.ports.end()) card.devices.push_back(card_of(info, *active));
  }
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) == there.end()) {
      throw usage_error(fmt::format("--devices: rank {} on {} has no device '{}'", launch.rank,
                                    card.host, name),
                        fmt::format("there are: {}", fmt::join(there, ", ")));
    }
  }
  if (there.empty()) throw verbs::no_device_error();
  if (card.devices.empty()) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("rank {} on {}: no device has an active port", launch.rank, card.host),
                "'gdrperf doctor' says why");
  }
  return card;
}

proto::Channel connect_root(const RootAddress& root, const proto::Token& token, std::chrono::nanoseconds patience) {
  const auto give_up = steady_clock::now() + patience;
  for (std::size_t turn = 0;; ++turn) {
    const std::string& host = root.hosts[turn % root.hosts.size()];
    try {
      // A host of several addresses: the next one is tried rather than this one waited for.
      proto::Channel channel = proto::connect_tcp(host, root.port, root.hosts.size() > 1 ? 0s : 3s);
      proto::Hello own = proto::own_hello();
      own.token = static_cast<bool>(token);
      const proto::Hello hello = proto::exchange_hello(channel, kHelloPatience, own);
      prove_as_client(channel, token, own, hello);
      return channel;
    } catch (const Error& error) {
      if (steady_clock::now() < give_up) {
        // A name that does not resolve yet fails at once.
        std::this_thread::sleep_for(100ms);
        continue;
      }
      throw Error(ExitCode::kPeer, fmt::format("rank 0 at {}:{}: {}", host, root.port, error.what()),
                  "start rank 0 on that host, or name its host with --root");
    }
  }
}

void run_agent(proto::Channel& root, const Card& card, const proto::Token& token) {
  root.send(encode_cluster(card));
  std::unique_ptr<DeviceServers> servers;
  while (true) {
    const auto message =
        decode_cluster(proto::expect<proto::Cluster>(root, proto::Channel::kForever), root.peer());
    if (const auto* open = std::get_if<OpenDevices>(&message)) {
      servers = std::make_unique<DeviceServers>(open->devices.size(), token);
      root.send(encode_cluster(servers->ports()));
    } else if (const auto* measure = std::get_if<Measure>(&message)) {
      root.send(encode_cluster(run_all(*measure, token)));
    } else if (std::holds_alternative<End>(message)) {
      return;
    } else {
      throw peer_error(root.peer() + ": sent a message that is for rank 0 alone");
    }
  }
}

}  // namespace gdrperf::app
