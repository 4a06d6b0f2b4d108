#include "gdrperf/report/record.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"

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

std::string levels_text(const std::vector<RunLevel>& levels, bool latency) {
  if (levels.size() < 2) return {};
  constexpr std::size_t kMostNamed = 4;
  constexpr const char* kNumbers[] = {"two", "three", "four", "five", "six", "seven", "eight"};
  const std::string count = levels.size() < 2 + std::size(kNumbers) ? kNumbers[levels.size() - 2]
                                                                    : std::to_string(levels.size());
  const auto value_of = [&](const RunLevel& level) {
    return latency ? format_duration_ns(level.value) : format_rate(level.value * 1e9);
  };
  if (levels.size() > kMostNamed) {
    const auto lower = [](const RunLevel& a, const RunLevel& b) { return a.value < b.value; };
    const auto [low, high] = std::minmax_element(levels.begin(), levels.end(), lower);
    return fmt::format("{} levels between {} and {}", count, value_of(*low), value_of(*high));
  }
  std::string text = fmt::format("{} levels: ", count);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    text += fmt::format("{}{} for {}", i == 0 ? "" : ", then ", value_of(levels[i]),
                        format_duration_ns(levels[i].seconds * 1e9));
  }
  return text;
}

void note_delivery(Measurement& measured, std::uint64_t sent, std::uint64_t arrived) {
  measured.delivery = Delivery{sent, sent - std::min(sent, arrived)};
  if (measured.delivery->lost == 0) return;
  measured.warnings.push_back(
      fmt::format("{} of {} messages ({} %) were lost: {} GB/s arrived of {} GB/s sent; a lower {} or more "
                  "receives ({}) lose fewer",
                  measured.delivery->lost, sent, plain_digits(measured.delivery->lost_share() * 100, 3),
                  plain_digits(goodput_gbytes(measured)),
                  plain_digits(measured.bandwidth ? measured.bandwidth->median_gbytes : std::nan("")),
                  flag<&TestSpec::tx_depth>(), flag<&TestSpec::rx_depth>()));
}

double goodput_gbytes(const Measurement& measured) {
  if (!measured.bandwidth) return std::nan("");
  return measured.bandwidth->median_gbytes * (1 - (measured.delivery ? measured.delivery->lost_share() : 0));
}

std::optional<double> efficiency(const RunRecord& record) {
  if (!record.measured.bandwidth || record.path.ceiling_gbps <= 0) return std::nullopt;
  return gigabits_from_gigabytes(goodput_gbytes(record.measured)) / record.path.ceiling_gbps;
}

std::uint64_t samples_beyond(double percent, std::uint64_t samples) {
  // As for the percentile itself: rounding must not reach the next rank.
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(samples) * (1 - 1e-12));
  return samples - std::min(samples, static_cast<std::uint64_t>(rank));
}

}  // namespace gdrperf::report
