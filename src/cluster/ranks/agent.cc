#include "cluster/ranks/agent.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/ranks/gpus.h"
#include "cluster/ranks/nccl.h"
#include "cluster/ranks/servers.h"
#include "app/client/run_test.h"
#include "app/client/client.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/version.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/inventory.h"
#include "gdrperf/verbs/port_counters.h"
#include "app/topo/expected.h"
#include "app/output/terminal.h"
#include "app/topo/placement.h"
#include "gdrperf/proto/admission.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kHelloPatience = 3500ms;
// Rank 0 may be that much later than a rank that only says why it cannot measure.
constexpr auto kTroublePatience = 10s;
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

// Facts of an open device alone.
void describe(const verbs::DeviceInfo& info, CardDevice& card) {
  const auto active = std::find_if(info.ports.begin(), info.ports.end(),
                                   [](const verbs::PortDetails& each) { return each.port.active(); });
  if (active == info.ports.end()) return;
  const verbs::PortDetails& details = *active;
  card.port = details.port.number;
  card.kind = verbs::to_string(info.kind);
  card.driver = info.driver;
  card.firmware = info.firmware;
  card.mtu_bytes = details.port.active_mtu_bytes;
  card.rate_gbps = details.port.rate_gbps;
  card.pcie = pcie_link(info.pci_address);
  card.numa_node = info.numa_node;
  card.netdev = details.port.netdev;
  // Buffers of a run, where both ends have them.
  if (const auto families = verbs::families(details.gids); !families.empty()) card.gid_type = families.front();
}

// Of a host's many ranks each opens only what it serves.
std::vector<CardDevice> described(const Card& card, const std::vector<std::string>& names) {
  const std::vector<verbs::DeviceInfo> open = verbs::list_devices(names);
  std::vector<CardDevice> devices;
  for (CardDevice device : card.devices) {
    const auto found =
        std::find_if(open.begin(), open.end(), [&](const verbs::DeviceInfo& info) { return info.name == device.name; });
    if (found == open.end()) continue;
    describe(*found, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

// Of this machine, software devices at the places that they are given.
std::map<std::string, NearestGpu> own_gpus(const std::vector<verbs::DeviceInfo>& devices) {
  // Asking nvidia-smi takes long, the longer the more ranks of a host do.
  const bool any_on_bus = std::any_of(devices.begin(), devices.end(),
                                      [](const verbs::DeviceInfo& info) { return !info.pci_address.empty(); });
  if (!any_on_bus) return {};
  topo::Topology topology = topo::topology_for_runs();
  declare_nics(topology, devices);
  return nearest_gpus(topology);
}

TestSpec spec_of(std::uint64_t size_bytes, bool latency) {
  TestSpec spec;
  spec.test = {Operation::kWrite, latency ? Metric::kLatency : Metric::kBandwidth};
  spec.size_bytes = size_bytes;
  if (!latency && size_bytes <= kLargeBytes) spec.tx_depth = kTxDepth;
  return spec;
}

/// Each is a thread and some descriptors of this process.
void check_count(std::size_t count, const char* what) {
  constexpr std::size_t kMostAtOnce = 1024;
  if (count > kMostAtOnce)
    throw peer_error(
        fmt::format("rank 0 wants {} {} at the same time; a rank has {} at most", count, what, kMostAtOnce));
}

ClusterRate run_link(const ClusterRun& run, const Measure& measure, const AgentSettings& settings) {
  try {
    TestSpec spec = spec_of(measure.size_bytes, measure.latency);
    // A write that arrives raises no event.
    if (measure.latency && measure.event) spec.test.operation = Operation::kSend;
    spec.client.device = run.device;
    spec.server.device = run.peer_device;
    spec.client.buffer = run.buffer;
    spec.server.buffer = run.peer_buffer;
    spec.client.buffer_given = spec.server.buffer_given = true;
    spec.wait = measure.event ? Wait::kEvent : Wait::kPoll;
    spec.stop.duration = std::chrono::nanoseconds(measure.duration_ns);
    validate(spec);
    const auto client =
        make_remote_client({.host = run.host, .port = run.port, .token = settings.token, .allow = settings.allow},
                           [](const std::string&) {});
    client->open();
    const report::RunRecord record = run_test(*client, spec);
    const auto& latency = record.measured.latency;
    if (measure.latency && latency && latency->p50_ns > 0)
      return {0, latency->p50_ns / 1000 / (latency->halved ? 1 : 2), ""};
    const auto& bandwidth = record.measured.bandwidth;
    if (measure.latency || !bandwidth || !(bandwidth->median_gbytes > 0)) return {0, 0, "nothing was measured"};
    return {bandwidth->median_gbytes, 0, ""};
  } catch (const std::exception& error) {
    return {0, 0, error.what()};
  }
}

Rates run_all(const Measure& measure, const AgentSettings& settings) {
  check_count(measure.runs.size(), "runs");
  Rates rates{measure.id, std::vector<ClusterRate>(measure.runs.size())};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < measure.runs.size(); ++i) {
      const auto run = [&, i] { rates.rates[i] = run_link(measure.runs[i], measure, settings); };
      const auto failed = [&, i](const std::exception_ptr&) { rates.rates[i] = {0, 0, "out of memory"}; };
      try {
        threads.push_back(start_thread("a run of the cluster test", run, failed));
      } catch (const Error& error) {  // the others go on, and rank 0 tells of this one
        rates.rates[i] = {0, 0, error.what()};
      }
    }
  }
  return rates;
}

}  // namespace

namespace {

// A rank on this host, whatever it measures with.
Card bare_card(const cluster::Launch& launch, const report::Environment& environment) {
  Card card;
  card.rank = launch.rank;
  card.ranks = launch.ranks;
  card.host = environment.hostname;
  card.host_id = host_identity();
  // Hosts and nodes have names of their own where somebody chose so.
  for (const char* variable : {"SLURMD_NODENAME", "NODE_NAME"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && card.node.empty()) card.node = value;
  }
  return card;
}

}  // namespace

Card own_card(const cluster::Launch& launch, const std::vector<std::string>& wanted,
              const std::string& leaf) {
  const report::Environment environment = report::collect_environment();
  Card card = bare_card(launch, environment);
  card.leaf = leaf;
  card.devices_given = !wanted.empty();
  card.gpu_nodes = gpu_nodes();
  card.kernel = environment.kernel;
  card.gpu_driver = environment.gpu_driver;
  card.version = tool_version();
  std::vector<std::string> there;
  const std::vector<verbs::DeviceInfo> devices = verbs::list_unopened();
  const auto gpus = card.gpu_driver.empty() ? std::map<std::string, NearestGpu>() : own_gpus(devices);
  for (const verbs::DeviceInfo& info : devices) {
    there.push_back(info.name);
    const bool asked =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), info.name) != wanted.end();
    if (!asked || !verbs::has_active_port(info.name)) continue;
    card.devices.emplace_back().name = info.name;
    if (const auto gpu = gpus.find(info.name); gpu != gpus.end()) {
      card.devices.back().gpu = gpu->second.gpu;
      card.devices.back().gpu_relation = gpu->second.relation;
    }
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
                "'gdrperf doctor' finds the reason");
  }
  return card;
}

void report_trouble(const cluster::Launch& launch, const RootAddress& root, const proto::Token& token,
                    const std::string& trouble) {
  try {
    Card card = bare_card(launch, report::collect_environment());
    card.trouble = trouble;
    proto::Channel channel = connect_root(root, token, kTroublePatience);
    channel.send(encode_cluster(card));
  } catch (const Error&) {
    // The trouble itself is what counts.
  }
}

proto::Channel connect_root(const RootAddress& root, const proto::Token& token, std::chrono::nanoseconds patience) {
  const auto give_up = steady_clock::now() + patience;
  // Within 5 s of the start: an attempt takes up to 3 s.
  auto say_at = steady_clock::now() + 2s;
  for (std::size_t turn = 0;; ++turn) {
    const std::string& host = root.hosts[turn % root.hosts.size()];
    try {
      // A host of several addresses: the next one is tried rather than this one waited for.
      proto::Channel channel = proto::connect_tcp(host, root.port, root.hosts.size() > 1 ? 0s : 3s);
      proto::Hello own = proto::own_hello();
      own.token = static_cast<bool>(token);
      const proto::Hello hello = proto::exchange_hello(channel, kHelloPatience, own);
      [[maybe_unused]] const proto::Admission admission = prove_as_client(channel, token, own, hello);
      return channel;
    } catch (const Error& error) {
      if (steady_clock::now() < give_up) {
        if (steady_clock::now() > say_at) {
          say(fmt::format("still no rank 0 at {}:{}: {}", host, root.port, error.what()));
          say_at = give_up;
        }
        // A name that does not resolve yet fails at once.
        std::this_thread::sleep_for(100ms);
        continue;
      }
      throw Error(ExitCode::kPeer, fmt::format("rank 0 at {}:{}: {}", host, root.port, error.what()),
                  "start rank 0 on that host, or name its host with --root");
    }
  }
}

std::uint64_t bytes_in_flight(std::uint64_t size_bytes) {
  const engine::ResolvedSpec spec = engine::resolve(spec_of(size_bytes, false));
  return static_cast<std::uint64_t>(spec.tx_depth) * size_bytes;
}

Agent::Agent(Card card, AgentSettings settings) : card_(std::move(card)), settings_(std::move(settings)) {
  if (!settings_.tree) return;
  listener_.emplace("", 0);
  card_.relay_port = listener_->port();
}

Agent::~Agent() = default;

void Agent::run(const std::function<proto::Channel()>& connect_to_root) {
  while (true) {
    parent_.emplace(connect_to_root());
    parent_is_root_ = true;
    parent_->send(encode_cluster(card_));
    // Before the tree stands rank 0 has no thread for each heartbeat.
    if (!settings_.tree || joined_) parent_->keep_alive(settings_.deadline);
    try {
      while (take(proto::expect<proto::Cluster>(*parent_, proto::Channel::kForever))) continue;
      return;
    } catch (const Error&) {
      // Rank 0 has another place for whoever hung on a rank that is lost.
      if (parent_is_root_) throw;
    }
  }
}

// False when it is over.
bool Agent::take(const proto::Cluster& message) {
  if (is_bundle(message.text)) return pass_on(message.text);
  const ClusterMessage order = decode_cluster(message, parent_->peer());
  if (std::holds_alternative<End>(order)) return false;
  const bool of_tree = std::holds_alternative<BecomeRelay>(order) || std::holds_alternative<Attach>(order);
  if (of_tree && settings_.invited) throw peer_error(parent_->peer() + ": this rank is of no tree");
  if (const auto* relay = std::get_if<BecomeRelay>(&order)) {
    relay_.emplace(*relay, settings_.token, settings_.deadline);
  } else if (const auto* attach = std::get_if<Attach>(&order)) {
    hang_on(*attach);
  } else {
    parent_->send(proto::Cluster{answer(order)});
  }
  return true;
}

void Agent::hang_on(const Attach& attach) {
  if (attach.port != 0) {
    proto::Channel channel = connect_root({{attach.host}, attach.port}, settings_.token, settings_.deadline);
    parent_.emplace(std::move(channel));
    parent_is_root_ = false;
    parent_->send(encode_cluster(Joined{card_.rank, {}}));
  }
  Joined joined{card_.rank, {}};
  if (relay_ && listener_) joined.missing = relay_->gather(*listener_);
  joined_ = true;
  parent_->keep_alive(settings_.deadline);
  parent_->send(encode_cluster(joined));
}

bool Agent::pass_on(const std::string& text) {
  const Bundle bundle = read_bundle(text);
  if (relay_) relay_->send(bundle, card_.rank);
  std::promise<std::string> promised;
  std::optional<std::future<std::string>> own;
  std::jthread answering;
  for (const auto& [rank, part] : bundle.texts) {
    if (rank != card_.rank) continue;
    ClusterMessage order = decode_cluster_text(part, parent_->peer());
    if (std::holds_alternative<End>(order)) return false;
    own = promised.get_future();
    answering = start_thread(
        "this rank's part of an order",
        [&promised, this, order = std::move(order)] { promised.set_value(answer(order)); },
        [&promised](const std::exception_ptr& failure) { promised.set_exception(failure); });
  }
  std::string answers = begin_bundle({});
  if (relay_) relay_->collect(bundle.patience, answers);
  if (own) add_to_bundle(card_.rank, own->get(), answers);
  parent_->send(proto::Cluster{std::move(answers)});
  return true;
}

std::string Agent::answer(const ClusterMessage& order) {
  if (const auto* open = std::get_if<OpenDevices>(&order)) {
    check_count(open->devices.size(), "servers");
    ServerSettings served;
    served.token = settings_.token;
    served.session.run.max_time = settings_.max_time;
    served.session.run.account = settings_.account;
    servers_.reset();
    servers_ = std::make_unique<DeviceServers>(open->devices.size(), std::move(served));
    described_ = described(card_, open->devices);
    return encode_cluster_text(Ports{servers_->ports(), described_});
  }
  if (const auto* counters = std::get_if<ReadCounters>(&order)) {
    Counters answer;
    for (const std::string& device : counters->devices) {
      const auto known =
          std::find_if(described_.begin(), described_.end(), [&](const CardDevice& one) { return one.name == device; });
      gdrperf::Counters values = verbs::read_port_counters(device, known == described_.end() ? 1 : known->port);
      std::erase_if(values, [](const auto& each) { return !verbs::counts_trouble(each.first); });
      answer.devices.push_back(std::move(values));
    }
    return encode_cluster_text(answer);
  }
  if (const auto* ask = std::get_if<AskCollective>(&order)) {
    // Each holds a thread and a socket here until its ranks have come.
    if (ask->new_id) check_count(++communicators_, "communicators");
    return encode_cluster_text(find_nccl(ask->maker, ask->new_id));
  }
  if (const auto* collective = std::get_if<Collective>(&order)) {
    return encode_cluster_text(Rates{collective->id, run_all_reduce(*collective, settings_.account)});
  }
  if (const auto* measure = std::get_if<Measure>(&order)) return encode_cluster_text(run_all(*measure, settings_));
  throw peer_error(parent_->peer() + ": sent a message that is for rank 0 alone");
}

}  // namespace gdrperf::app
