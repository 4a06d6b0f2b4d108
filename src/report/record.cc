#include "gdrperf/report/record.h"

#include <algorithm>
#include <cmath>

#include "gdrperf/base/units.h"

namespace gdrperf::report {

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kPrecision: return "precision";
    case StopReason::kIterations: return "iterations";
    case StopReason::kDuration: return "duration";
    case StopReason::kCap: return "cap";
    case StopReason::kSignal: return "signal";
  }
  return "cap";
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
