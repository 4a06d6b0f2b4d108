#include "compare/trust.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

namespace gdrperf::compare {
namespace {

/// Fewer have no interval.
constexpr double kFewestIterations = 6;
/// Figures of a document are rounded.
constexpr double kRounding = 1e-4;

constexpr std::string_view kTrustFields[] = {
    "unstable",        "unstable_reason",        "iterations",     "bw.max_gbps",           "bw.ci95_gbps.0",
    "bw.ci95_gbps.1",  "latency.min_ns",         "latency.max_ns", "latency.ci95_p50_ns.0", "latency.ci95_p50_ns.1",
};

std::optional<double> number_in(const Fields& run, std::string_view name) {
  const auto found = run.find(name);
  if (found == run.end() || found->second.kind != Scalar::Kind::kNumber) return std::nullopt;
  return found->second.number;
}

/// A figure and what it cannot be below or above.
struct Bounds {
  std::string_view figure;
  std::string_view low;
  std::string_view high;
  std::string_view words;
};
constexpr Bounds kBounds[] = {
    {"bw.median_gbps", "bw.ci95_gbps.0", "bw.ci95_gbps.1", "its median is outside its own interval"},
    {"bw.median_gbps", "", "bw.max_gbps", "its median is above its own maximum"},
    {"latency.p50_ns", "latency.ci95_p50_ns.0", "latency.ci95_p50_ns.1", "its median is outside its own interval"},
    {"latency.p50_ns", "latency.min_ns", "latency.max_ns", "its median is outside its own extremes"},
};

bool broken(const Fields& run, const Bounds& bounds) {
  const auto figure = number_in(run, bounds.figure);
  if (!figure) return false;
  const auto low = number_in(run, bounds.low);
  const auto high = number_in(run, bounds.high);
  return (low && *figure < *low * (1 - kRounding)) || (high && *figure > *high * (1 + kRounding));
}

}  // namespace

bool is_trust_field(std::string_view name) {
  return std::find(std::begin(kTrustFields), std::end(kTrustFields), name) != std::end(kTrustFields);
}

std::string doubt_of(const Fields& run) {
  for (const Bounds& each : kBounds) {
    if (broken(run, each)) return fmt::format("impossible ({})", each.words);
  }
  if (const auto unstable = run.find("unstable"); unstable != run.end() && unstable->second.text == "true") {
    const auto reason = run.find("unstable_reason");
    const bool told =
        reason != run.end() && reason->second.kind == Scalar::Kind::kString && !reason->second.text.empty();
    return told ? fmt::format("unstable ({:.40})", reason->second.text) : "unstable";
  }
  const auto iterations = number_in(run, "iterations");
  if (iterations && *iterations < kFewestIterations) return fmt::format("short ({} iterations)", *iterations);
  return {};
}

}  // namespace gdrperf::compare
