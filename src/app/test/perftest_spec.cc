// What perftest makes of a test's settings: its memory, the most of a datagram, both ports of a device.
#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "app/output/terminal.h"
#include "app/test/perftest.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::app {
namespace {

/// As perftest does: what is too large for a datagram becomes the MTU of the client's port.
void cut_to_datagram(TestSpec& spec) {
  constexpr std::uint64_t kLeastMtu = 256;
  if (spec.size_bytes <= kLeastMtu) return;
  auto most = static_cast<std::uint64_t>(spec.mtu_bytes);
  if (most == 0) {
    const verbs::Context device = verbs::Context::open(spec.client.device);
    most = static_cast<std::uint64_t>(verbs::choose_port(device, spec.client.port).active_mtu_bytes);
  }
  if (spec.size_bytes <= most) return;
  say(fmt::format("note: {} {}: a message over UD has an MTU at most: {} bytes", flag<&TestSpec::size_bytes>(),
                  spec.size_bytes, most));
  spec.size_bytes = most;
}

}  // namespace

TestSpec as_perftest(const PerftestTyped& typed, TestSpec spec) {
  constexpr std::uint64_t kPage = 4096;
  const bool own =
      !typed.by_name || spec.footprint_bytes != 0 || spec.verify_seed || spec.test.metric != Metric::kBandwidth;
  if (typed.by_name && spec.transport == Transport::kUd) cut_to_datagram(spec);
  if (!own) spec.footprint_bytes = std::max(kPage, spec.size_bytes);
  return spec;
}

void settle_hints(const PerftestTyped& typed, TestSpec& spec) {
  if (typed.hint.empty() && typed.hint_memory.empty() && typed.hint_cpu.empty()) return;
  if (typed.hint.empty() || typed.hint_memory.empty() != typed.hint_cpu.empty())
    throw usage_error("--ph: alone, or together with --tph_mem and --cpu_id", "give what is missing");
  const bool persistent = typed.hint_memory == "persistent" || typed.hint_memory == "pm";
  const bool known =
      persistent || typed.hint_memory.empty() || typed.hint_memory == "volatile" || typed.hint_memory == "vm";
  if (!known)
    throw usage_error(fmt::format("--tph_mem '{:.20}': no such memory", typed.hint_memory),
                      "give volatile or persistent");
  spec.tph = typed.hint;
  if (!typed.hint_cpu.empty())
    spec.tph += fmt::format(",{},{}", persistent ? "persistent" : "volatile", typed.hint_cpu);
}

void settle_dual_port(const PerftestTyped& typed, Test test, TestSpec& spec, const OutputOptions& output) {
  const bool each = output.each_port == report::PortColumns::kEach;
  if (each && (!typed.dual_port || !spec.stop.duration))
    throw usage_error("--report-per-port: reports the ports of -O in a run of -D",
                      "give -O and -D as well, or leave it out");
  if (!typed.dual_port) return;
  const auto refuse = [](bool asked, const std::string& what, const char* hint) {
    if (asked) throw usage_error(fmt::format("-O: {}", what), hint);
  };
  refuse(test.metric == Metric::kLatency, "a latency test has one port", "a run for each port, -i 1 and -i 2");
  refuse(!spec.multicast.empty(), "multicast has one port", "leave one of them out");
  refuse(!spec.rails.empty(), flag<&TestSpec::rails>() + " names what is used at the same time",
         "give both ports there: mlx5_0:1,mlx5_0:2");
  refuse(spec.client.port > 1 || spec.server.port > 1, "takes ports 1 and 2", "leave -i out");
  spec.client.port = spec.server.port = 0;
  spec.rails = fmt::format("{0}:1,{0}:2", spec.client.device);
  spec.peer_rails = fmt::format("{0}:1,{0}:2", spec.server.device);
  spec.client.device.clear();
  spec.server.device.clear();
}

}  // namespace gdrperf::app
