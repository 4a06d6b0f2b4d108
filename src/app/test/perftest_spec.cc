// What perftest makes of a test's settings: its memory, the most of a datagram, both ports of a device, its rates, its
// file.
#include <algorithm>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "app/output/terminal.h"
#include "app/test/perftest.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::app {
namespace {

constexpr std::chrono::seconds kIntervalAsPerftest{5};
constexpr double kMebibyte = 1 << 20;

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

/// "run.gdrperf.json" of "run.json".
std::string document_beside(const std::string& file) {
  constexpr std::string_view kSuffix = ".json";
  const bool suffixed = file.ends_with(kSuffix);
  return file.substr(0, file.size() - (suffixed ? kSuffix.size() : 0)) + ".gdrperf.json";
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

void require_typed(PerftestTyped& typed, Test test, std::span<const std::uint64_t> sizes, OutputOptions& output) {
  if (test.metric == Metric::kLatency) {
    if (typed.least_rate || typed.least_mpps)
      typed.notes.push_back(
          fmt::format("{} changes nothing: {} measures no rate", typed.least_rate ? "-w" : "-y", to_string(test)));
    return;
  }
  const auto require = [&](double gbps) {
    output.required.min_gbps = std::max(gbps, output.required.min_gbps.value_or(0));
  };
  if (typed.least_rate) {
    const bool gigabits = output.rate_unit == report::RateUnit::kGigabits;
    require(gigabits ? *typed.least_rate : gigabits_from_gigabytes(*typed.least_rate * kMebibyte / 1e9));
  }
  if (!typed.least_mpps) return;
  if (sizes.size() != 1) {
    throw usage_error("-y: a message rate is asked of one size",
                      fmt::format("give one -s, or {} for all sizes", flags::kMinGbps));
  }
  require(gigabits_from_gigabytes(*typed.least_mpps * static_cast<double>(sizes.front()) / 1e3));
}

std::optional<double> settle_endless(const PerftestTyped& typed, StopRule& stop) {
  if (!typed.by_name || !stop.forever) return std::nullopt;
  const std::chrono::nanoseconds every = stop.duration.value_or(kIntervalAsPerftest);
  stop.duration.reset();
  // perftest runs on as well, whatever -n is.
  stop.iterations.reset();
  return std::chrono::duration<double>(every).count();
}

void settle_out_json(PerftestTyped& typed, OutputOptions& output) {
  if (typed.json_file.empty()) return;
  if (typed.by_name) {
    output.perftest_json = typed.json_file;
    if (output.json.empty()) output.json = document_beside(typed.json_file);
    return;
  }
  output.json = typed.json_file;
  typed.notes.push_back(
      fmt::format("--out_json: {} is gdrperf's document (results/schema.json), not perftest's", output.json));
}

void settle_rate(PerftestTyped& typed, Test test, TestSpec& spec) {
  if (test.metric == Metric::kLatency) {
    if (typed.rate_limit || typed.burst > 0)
      typed.notes.push_back(
          "--rate_limit changes nothing: a latency test has one message in flight; --rate N has them due at times of "
          "their own");
    return;
  }
  if (!typed.rate_limit) {
    if (typed.burst > 1)
      throw usage_error("--burst_size: without a rate messages leave as they complete", "give --rate_limit as well");
    return;
  }
  constexpr int kUsualDepth = 128;
  const std::int64_t in_flight =
      std::int64_t{spec.tx_depth > 0 ? spec.tx_depth : kUsualDepth} * spec.qps / spec.post_list * spec.post_list;
  if (typed.burst > in_flight) {
    typed.notes.push_back(fmt::format("--burst_size {}: bursts of {}, as many messages as are in flight (-t, -q)",
                                      typed.burst, in_flight));
  }
  if (typed.burst > 0) spec.burst = static_cast<int>(std::clamp<std::int64_t>(in_flight, 1, typed.burst));
  if (spec.burst > 1 && spec.tx_depth == 0) spec.tx_depth = kUsualDepth;
  spec.rate_per_s = typed.rate_unit == 'p' ? *typed.rate_limit : 0;
  spec.rate_bytes_per_s =
      typed.rate_unit == 'p' ? 0 : *typed.rate_limit * (typed.rate_unit == 'M' ? kMebibyte : 1e9 / 8);
}

}  // namespace gdrperf::app
