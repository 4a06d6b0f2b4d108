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

namespace {

/// "cuda:0000:3b:00.0" of the pair GPU1/mlx5_0 is GPU1; "simulated:GPU1" says so itself.
std::string memory_name(const NameParts& parts, const std::string& buffer) {
  constexpr std::string_view kGpu = "cuda:";
  constexpr std::string_view kSimulated = "simulated:";
  if (buffer.starts_with(kSimulated)) return buffer.substr(kSimulated.size());
  if (!buffer.starts_with(kGpu)) return buffer;
  const bool known = !parts.pair.empty() && buffer == parts.client.buffer;
  return known ? parts.pair.substr(0, parts.pair.find('/')) : "GPU" + buffer.substr(kGpu.size());
}

std::string name_of_end(const NameParts& parts, const NameParts::End& end) {
  std::string name = memory_name(parts, end.buffer) + ":" + end.device;
  if (!end.port.empty() && end.port != "1") name += "." + end.port;
  return name;
}

NameParts parts_of(const RunRecord& record) {
  const TestSpec& spec = record.spec;
  const auto end = [](const EndRecord& each) {
    return NameParts::End{each.buffer, each.device, std::to_string(each.port)};
  };
  NameParts parts;
  parts.test = to_string(spec.test);
  parts.relation = record.relation;
  parts.pair = record.path.pair;
  parts.client = end(record.client);
  parts.server = end(record.server);
  parts.size_bytes = std::to_string(spec.size_bytes);
  parts.qps = std::to_string(spec.qps);
  if (spec.rate_per_s != 0) parts.rate_per_s = fmt::format("{:g}", spec.rate_per_s);
  parts.bidirectional = spec.direction == Direction::kBidirectional;
  parts.event = spec.wait == Wait::kEvent;
  parts.staged = spec.path == Path::kStaged;
  parts.consume = spec.consume;
  parts.remote_node = record.path.host_node == "remote";
  parts.simulated = record.device_kind == "simulated";
  return parts;
}

}  // namespace

std::string run_name(const NameParts& parts) {
  const std::string client = name_of_end(parts, parts.client);
  const std::string server = name_of_end(parts, parts.server);
  std::string name = fmt::format("{}/{}/{}/{}", parts.test, parts.relation,
                                 client == server ? client : client + ">" + server, parts.size_bytes);
  if (parts.bidirectional) name += "/bidirectional";
  if (parts.qps != "1") name += "/qps:" + parts.qps;
  if (parts.event) name += "/event";
  if (!parts.rate_per_s.empty()) name += "/rate:" + parts.rate_per_s;
  if (parts.staged) name += "/staged";
  if (parts.consume) name += "/consume";
  if (parts.remote_node) name += "/remote";
  // The one thing that every format keeps.
  if (parts.simulated) name += "/simulated";
  return name;
}

std::string run_name(const RunRecord& record) { return run_name(parts_of(record)); }

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
