#include "gdrperf/report/paired_verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

Outside name_of(const EndRecord& end) { return end.device.raw() + " " + end.buffer; }

PairedFigure paired_figure(const Measurement& measured) {
  if (measured.bandwidth) {
    return {measured.bandwidth->median_gbytes, measured.bandwidth->ci95_low_gbytes, measured.bandwidth->ci95_high_gbytes};
  }
  if (!measured.latency) return {};
  return {measured.latency->p50_ns / 1e3, measured.latency->ci95_p50_low_ns / 1e3, measured.latency->ci95_p50_high_ns / 1e3};
}

std::optional<bool> relaxed(const TestSpec& spec) {
  if (spec.ordering == Ordering::kAuto) return std::nullopt;
  return spec.ordering == Ordering::kRelaxed;
}

std::optional<bool> started_by_gpu(const TestSpec& spec) {
  if (spec.test != Test{Operation::kWrite, Metric::kLatency}) return std::nullopt;
  return spec.initiator == Initiator::kGpuProxy;
}

constexpr Pairing kPairings[] = {
    {"orderings", "relaxed or strict ordering", "relaxed ordering", "relaxed", "strict", "relaxed", "strict", relaxed},
    {"initiators", "a kernel on the GPU or the CPU waits and starts", "gpu-proxy", "gpu-proxy", "cpu", "gpu_proxy", "cpu",
     started_by_gpu}};

}  // namespace

std::span<const Pairing> pairings() { return kPairings; }

bool PairedPoint::differ() const {
  const bool known = first.low > 0 && second.low > 0;
  return both() && !unstable && known && (first.low > second.high || second.low > first.high);
}

double PairedVerdict::ratio(const PairedPoint& point) const {
  return test.metric == Metric::kLatency ? point.second.value / point.first.value : point.first.value / point.second.value;
}

std::string PairedVerdict::words() const {
  std::size_t both = 0;
  const std::pair<const std::uint64_t, PairedPoint>* best = nullptr;
  const std::pair<const std::uint64_t, PairedPoint>* worst = nullptr;
  for (const auto& each : points) {
    both += each.second.both() ? 1 : 0;
    if (!each.second.differ()) continue;
    if (best == nullptr || ratio(each.second) > ratio(best->second)) best = &each;
    if (worst == nullptr || ratio(each.second) < ratio(worst->second)) worst = &each;
  }
  const auto percent = [&](const auto& each) {
    return fmt::format("{:+.0f} % at {}", 100 * (ratio(each.second) - 1), format_size(each.first));
  };
  const char* what = test.metric == Metric::kLatency ? "inverse latency" : "rate";
  if (best == nullptr) {
    return fmt::format("{} makes no difference that shows: the intervals touch, or a run is unstable, at {} size{}", pairing->subject,
                       both, both == 1 ? "" : "s");
  }
  if (best == worst) return fmt::format("{} is worth {} of the {}", pairing->subject, percent(*best), what);
  return fmt::format("{} is worth {} to {} of the {}", pairing->subject, percent(*worst), percent(*best), what);
}

void PairedVerdicts::add(const RunRecord& record) {
  for (const Pairing& pairing : pairings()) {
    const std::optional<bool> first = pairing.is_first(record.spec);
    if (!first) continue;
    PairedVerdict fresh{&pairing, record.spec.test, name_of(record.client), name_of(record.server), record.relation, {}};
    const auto same = [&](const PairedVerdict& one) {
      return one.pairing == fresh.pairing && one.test == fresh.test && one.client == fresh.client && one.server == fresh.server;
    };
    auto found = std::find_if(verdicts_.begin(), verdicts_.end(), same);
    if (found == verdicts_.end()) found = verdicts_.insert(verdicts_.end(), std::move(fresh));
    PairedPoint& point = found->points[record.spec.size_bytes];
    point.unstable = point.unstable || record.measured.unstable;
    (*first ? point.first : point.second) = paired_figure(record.measured);
  }
}

std::vector<PairedVerdict> PairedVerdicts::all() const {
  std::vector<PairedVerdict> result;
  std::copy_if(verdicts_.begin(), verdicts_.end(), std::back_inserter(result), [](const PairedVerdict& one) {
    return std::any_of(one.points.begin(), one.points.end(), [](const auto& point) { return point.second.both(); });
  });
  return result;
}

std::string to_text(const std::vector<PairedVerdict>& verdicts) {
  std::string text;
  for (const PairedVerdict& verdict : verdicts) {
    const char* unit = verdict.test.metric == Metric::kLatency ? "us" : "GB/s";
    text += fmt::format("\n{} {} to {}: {}\n{:>10}{:>15}{:>15}{:>13}\n", to_string(verdict.test), printable(verdict.client),
                        printable(verdict.server), verdict.pairing->title, "size", fmt::format("{} {}", verdict.pairing->first, unit),
                        fmt::format("{} {}", verdict.pairing->second, unit), fmt::format("{} x", verdict.pairing->first));
    for (const auto& [size, point] : verdict.points) {
      if (!point.both()) continue;
      const char* mark = point.unstable ? " !" : point.differ() ? "" : " =";
      text += fmt::format("{:>10}{:>15}{:>15}{:>13.2f}{}\n", format_size(size), plain_digits(point.first.value),
                          plain_digits(point.second.value), verdict.ratio(point), mark);
    }
    text += fmt::format("  {} ('=': the 95 % intervals touch; '!': unstable)\n", verdict.words());
  }
  return text;
}

}  // namespace gdrperf::report
