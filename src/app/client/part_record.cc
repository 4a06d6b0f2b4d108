#include "app/client/part_record.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::app {
namespace {

using report::Measurement;
using report::RunRecord;

/// The settings of the whole: those of the first part are resolved, but its share was dealt.
TestSpec settings_of_all(const TestSpec& asked, const RunRecord& first) {
  TestSpec spec = first.spec;
  spec.threads = asked.threads;
  spec.rails = asked.rails;
  spec.peer_rails = asked.peer_rails;
  spec.incast = asked.incast;
  spec.victim = asked.victim;
  spec.qps = std::max(asked.qps, asked.threads);
  spec.parts = asked.parts;
  spec.part = asked.part;
  spec.stop = asked.stop;
  spec.rate_per_s = asked.rate_per_s;
  spec.rate_bytes_per_s = asked.rate_bytes_per_s;
  return spec;
}

/// CPU time of all over the messages of all.
std::optional<double> cpu_of_all(const std::vector<PartRun>& parts, std::optional<double> Measurement::*per_message) {
  double spent = 0;
  double messages = 0;
  for (const PartRun& part : parts) {
    const Measurement& measured = part.record.measured;
    if (!(measured.*per_message)) return std::nullopt;
    spent += *(measured.*per_message) * static_cast<double>(measured.iterations);
    messages += static_cast<double>(measured.iterations);
  }
  if (messages == 0) return std::nullopt;
  return spent / messages;
}

/// Ports of all: each is counted by the first part that uses it.
void add_counters(Measurement& sum, const std::vector<PartRun>& parts) {
  std::set<std::string> seen;
  const auto add = [&](gdrperf::Counters& to, const std::string& side, const report::EndRecord& end,
                       const gdrperf::Counters& from) {
    if (!seen.insert(fmt::format("{}{}:{}", side, end.device.raw(), end.port)).second) return;
    for (const auto& [name, count] : from) to[name] += count;
  };
  for (const PartRun& part : parts) {
    add(sum.client_counters, "client ", part.record.client, part.record.measured.client_counters);
    add(sum.server_counters, "server ", part.record.server, part.record.measured.server_counters);
    sum.counted_bytes += part.record.measured.counted_bytes;
    sum.counted_s = std::max(sum.counted_s, part.record.measured.counted_s);
  }
  sum.one_port = parts.front().record.measured.one_port;
}

void add_delivery(Measurement& sum, const std::vector<PartRun>& parts) {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  for (const PartRun& part : parts) {
    if (!part.record.measured.delivery) return;
    sent += part.record.measured.delivery->sent;
    lost += part.record.measured.delivery->lost;
  }
  report::note_delivery(sum, sent, sent - lost);
}

/// Of a part that stood still, so did the sum.
void add_standstill(Measurement& sum, const PartRun& part) {
  const Measurement& measured = part.record.measured;
  if (measured.unstable_reason != "suspended") return;
  sum.unstable = true;
  sum.unstable_reason = measured.unstable_reason;
  sum.warnings.push_back(part.name + ": " + measured.warnings.back());
}

/// Of QPs that are dealt.
void add_limit(std::optional<double>& all, const std::optional<double>& part) {
  if (all && part) *all += *part;
}

/// What all say is said once.
void add_warnings(RunRecord& all, const std::vector<PartRun>& parts) {
  for (const PartRun& part : parts) {
    for (const std::string& warning : part.record.warnings) {
      if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
        all.warnings.push_back(warning);
    }
  }
}

}  // namespace

RunRecord record_of_parts(const TestSpec& asked, const std::vector<PartRun>& parts, const engine::Together& together) {
  RunRecord all = parts.front().record;
  all.spec = settings_of_all(asked, parts.front().record);
  all.warnings.clear();
  engine::Together::Sum sum = together.sum(all.spec);
  all.measured = std::move(sum.measured);
  all.measured.start_spread_s = sum.start_spread_s;
  all.measured.incast = asked.incast > 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RunRecord& record = parts[i].record;
    all.measured.parts.push_back({parts[i].name, record.client.device, record.server.device, record.client.cpu,
                                  record.server.cpu, record.spec.qps, record.client.buffer, record.server.buffer,
                                  sum.gbytes[i]});
    add_standstill(all.measured, parts[i]);
    if (i == 0) continue;
    add_limit(all.client.rate_limit_gbps, record.client.rate_limit_gbps);
    add_limit(all.server.rate_limit_gbps, record.server.rate_limit_gbps);
  }
  all.measured.client_cpu_per_message_ns = cpu_of_all(parts, &Measurement::client_cpu_per_message_ns);
  all.measured.server_cpu_per_message_ns = cpu_of_all(parts, &Measurement::server_cpu_per_message_ns);
  add_counters(all.measured, parts);
  add_delivery(all.measured, parts);
  add_warnings(all, parts);
  return all;
}

}  // namespace gdrperf::app
