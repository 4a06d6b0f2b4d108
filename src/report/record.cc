#include "gdrperf/report/record.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/units.h"

namespace gdrperf::report {

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kPrecision: return "precision";
    case StopReason::kIterations: return "iterations";
    case StopReason::kDuration: return "duration";
    case StopReason::kCap: return "cap";
  }
  return "cap";
}

std::string run_name(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  const auto end = [](const EndRecord& each) {
    const bool gpu = each.buffer.starts_with("cuda:");
    std::string name = gpu ? "GPU" + each.buffer.substr(5) : each.buffer;
    name += ":" + each.device;
    return each.port == 1 ? name : fmt::format("{}.{}", name, each.port);
  };
  const std::string client = end(record.client);
  const std::string server = end(record.server);
  std::string name = fmt::format("{}/{}/{}/{}", to_string(spec.test), record.relation,
                                 client == server ? client : client + ">" + server, spec.size_bytes);
  if (spec.direction == Direction::kBidirectional) name += "/bidirectional";
  if (spec.qps != 1) name += fmt::format("/qps:{}", spec.qps);
  if (spec.wait == Wait::kEvent) name += "/event";
  if (spec.rate_per_s != 0) name += fmt::format("/rate:{:g}", spec.rate_per_s);
  if (record.path.host_node == "remote") name += "/remote";
  // The one thing that every format keeps.
  if (record.device_kind == "simulated") name += "/simulated";
  return name;
}

std::optional<double> efficiency(const RunRecord& record) {
  if (!record.measured.bandwidth || record.path.ceiling_gbps <= 0) return std::nullopt;
  return gigabits_from_gigabytes(record.measured.bandwidth->median_gbytes) /
         record.path.ceiling_gbps;
}

std::uint64_t samples_beyond(double percent, std::uint64_t samples) {
  // As for the percentile itself: rounding must not reach the next rank.
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(samples) * (1 - 1e-12));
  return samples - std::min(samples, static_cast<std::uint64_t>(std::max(rank, 0.0)));
}

}  // namespace gdrperf::report
