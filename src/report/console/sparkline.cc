#include "report/console/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 8> kSigns = {"_", ".", ":", "-", "=", "+", "*", "#"};
constexpr std::size_t kFewest = 4;

}  // namespace

std::string sparkline(const std::map<std::uint64_t, double>& points, Metric metric, const ConsoleOptions& options) {
  if (points.size() < kFewest) return {};
  const auto by_value = [](const auto& one, const auto& other) { return one.second < other.second; };
  const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_value);
  if (!(least->second >= 0) || !(most->second > 0) || !std::isfinite(most->second)) return {};
  const auto& heights = options.charset == Charset::kUtf8 ? kBlocks : kSigns;
  std::string line;
  for (const auto& [size, value] : points) {
    const double share = value / most->second * static_cast<double>(heights.size());
    line += heights.at(std::min(static_cast<std::size_t>(share), heights.size() - 1));
  }
  const bool latency = metric == Metric::kLatency;
  const bool bits = options.rate_unit == RateUnit::kGigabits;
  const auto& best = latency ? *least : *most;
  const double scale = latency ? 1e-3 : bits ? gigabits_from_gigabytes(1) : 1;
  return fmt::format("{} over size, {} to {}: {}, {} {} {} at {}", latency ? "p50" : "rate",
                     format_size(points.begin()->first), format_size(points.rbegin()->first), line,
                     latency ? "least" : "at most", plain_digits(best.second * scale),
                     latency ? "us"
                     : bits  ? "Gb/s"
                             : "GB/s",
                     format_size(best.first));
}

}  // namespace gdrperf::report
