#include "engine/session/client_record.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/cpu.h"
#include "gdrperf/base/units.h"
#include "engine/setup/cpu_choice.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

/// The kind that a figure has to be labelled with: of both ends the one that is
/// farther from a NIC.
std::string less_real(const std::string& one, const std::string& other) {
  for (const char* kind : {"simulated", "software", "siw", "rxe"}) {
    if (one == kind || other == kind) return kind;
  }
  return one;
}

void note_shared_cpu(report::RunRecord& record) {
  const int cpu = record.client.cpu;
  const int other = record.server.cpu;
  if (cpu == other) {
    record.warnings.push_back(fmt::format(
        "client and server ran on CPU {}, each only while the other waited: the results show the scheduler; give them "
        "CPUs of their own ({} and {}, or a taskset or container with two)",
        cpu, own_flag<&EndSpec::cpu>(), peer_flag<&EndSpec::cpu>()));
  } else if (on_one_core(cpu, other)) {
    record.warnings.push_back(
        fmt::format("client and server ran on one core, of which CPUs {} and {} are threads: each slowed the other "
                    "down; give them cores of their own ({} and {})",
                    cpu, other, own_flag<&EndSpec::cpu>(), peer_flag<&EndSpec::cpu>()));
  }
}

}  // namespace

report::RunRecord record_of(const ResolvedSpec& spec, const proto::Endpoint& client, const proto::Endpoint& server,
                            int inline_bytes) {
  report::RunRecord record;
  record.spec = spec;
  record.spec.client.device = client.device;
  record.spec.server.device = server.device;
  record.spec.mtu_bytes = server.mtu_bytes;
  record.spec.inline_bytes = spec.reverse ? std::max(spec.inline_bytes, 0) : inline_bytes;
  record.client = end_record(client);
  record.server = end_record(server);
  const auto limit_of = [&](const proto::Endpoint& end) {
    return end.rate_limit_kbps > 0 ? std::optional<double>(end.rate_limit_kbps * 1e-6 * spec.qps) : std::nullopt;
  };
  record.client.rate_limit_gbps = limit_of(client);
  record.server.rate_limit_gbps = limit_of(server);
  record.device_kind = less_real(client.kind, server.kind);
  // Where runs at the same time take all CPUs, ends that rest share them.
  if (same_host(client, server) && !(spec.parts > 1 && server_rests(spec))) note_shared_cpu(record);
  for (const auto& [side, end] : {std::pair("client", &client), std::pair("server", &server)}) {
    if (end->relaxed_ordering != "disabled") continue;
    record.warnings.push_back(
        fmt::format("memory is registered for relaxed ordering, which PCIe Device Control of the {}'s {} has disabled: "
                    "its writes to "
                    "memory keep strict order ('gdrperf doctor' there; of a virtual function the physical one counts)",
                    side, end->device));
  }
  if (spec.ends_by_immediate()) {
    record.warnings.push_back("a round of write_lat ends by write with immediate: no CPU can poll GPU memory");
  }
  return record;
}

void note_clock(report::Measurement& measured, Transfer& transfer) {
  const std::optional<mem::RingClock> clock = transfer.poster_clock();
  if (!clock || clock->seconds <= 0) return;
  measured.poster_clock_ppm = clock->apart_ns * 1e-3 / clock->seconds;
  measured.poster_clock_doubt_ppm = clock->uncertain_ns * 1e-3 / clock->seconds;
}

std::string typed_there(const EndSpec& asked, const EndSpec& taken) {
  std::string text;
  const auto note = [&](const char* what, const auto& before, const auto& now) {
    if (before != now) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, now);
  };
  note("device", asked.device, taken.device);
  note("port", asked.port, taken.port);
  note("GID index", asked.gid_index, taken.gid_index);
  note("buffer", asked.buffer, taken.buffer);
  note("CPU", asked.cpu, taken.cpu);
  note("NUMA node", asked.numa, taken.numa);
  return fmt::format("the server uses {}, as given on its command line; {} and similar options choose it from here",
                     text, peer_flag<&EndSpec::device>());
}

void note_rate(report::Measurement& measured, const ResolvedSpec& spec) {
  constexpr double kReached = 0.995;
  const double asked = rate_of(spec) * (spec.bidirectional() ? 2 : 1);
  const double reached = measured.bandwidth->mean_gbytes * 1e9 / static_cast<double>(spec.size_bytes);
  if (asked <= 0 || !(reached < kReached * asked)) return;
  measured.warnings.push_back(fmt::format(
      "{}: {} messages per second were due, {} left ({} %): the path, or the CPU that posts, carries no more",
      flag<&TestSpec::rate_per_s>(), plain_digits(asked, 6), plain_digits(reached, 6),
      plain_digits(reached / asked * 100, 3)));
}

}  // namespace gdrperf::engine
