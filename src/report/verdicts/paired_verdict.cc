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
    return {measured.bandwidth->median_gbytes, measured.bandwidth->ci95_low_gbytes,
            measured.bandwidth->ci95_high_gbytes};
  }
  if (!measured.latency) return {};
  return {measured.latency->p50_ns / 1e3, measured.latency->ci95_p50_low_ns / 1e3,
          measured.latency->ci95_p50_high_ns / 1e3};
}

std::optional<bool> relaxed(const TestSpec& spec) {
  if (spec.ordering == Ordering::kAuto) return std::nullopt;
  return spec.ordering == Ordering::kRelaxed;
}

std::optional<bool> started_by_gpu(const TestSpec& spec) {
  if (spec.test != Test{Operation::kWrite, Metric::kLatency}) return std::nullopt;
  if (spec.initiator != Initiator::kGpuProxy && spec.initiator != Initiator::kCpu) return std::nullopt;
  return spec.initiator == Initiator::kGpuProxy;
}

std::optional<bool> posted_by_gpu(const TestSpec& spec) {
  if (spec.initiator != Initiator::kGpu && spec.initiator != Initiator::kCpu) return std::nullopt;
  return spec.initiator == Initiator::kGpu;
}

constexpr Pairing kPairings[] = {
    {"orderings", "relaxed or strict ordering", "relaxed ordering", "relaxed", "strict", "relaxed", "strict", relaxed},
    {"initiators", "a kernel on the GPU or the CPU waits and starts", "gpu-proxy", "gpu-proxy", "cpu", "gpu_proxy",
     "cpu", started_by_gpu},
    {"gpu_initiators", "a kernel on the GPU or the CPU posts", "gpu", "gpu", "cpu", "gpu", "cpu", posted_by_gpu}};

}  // namespace

std::span<const Pairing> pairings() { return kPairings; }

bool PairedPoint::differ() const {
  const bool known = first.low > 0 && second.low > 0;
  return both() && !unstable && known && (first.low > second.high || second.low > first.high);
}

double PairedVerdict::ratio(const PairedPoint& point) const {
  return test.metric == Metric::kLatency ? point.second.value / point.first.value
                                         : point.first.value / point.second.value;
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
    return fmt::format("{} makes no difference that shows: the intervals touch, or a run is unstable, at {} size{}",
                       pairing->subject, both, both == 1 ? "" : "s");
  }
  if (best == worst) return fmt::format("{} is worth {} of the {}", pairing->subject, percent(*best), what);
  return fmt::format("{} is worth {} to {} of the {}", pairing->subject, percent(*worst), percent(*best), what);
}

void PairedVerdicts::add(const RunRecord& record) {
  for (const Pairing& pairing : pairings()) {
    const std::optional<bool> first = pairing.is_first(record.spec);
    if (!first) continue;
    PairedVerdict fresh{&pairing, record.spec.test, name_of(record.client), name_of(record.server), record.relation,
                        {}};
    const auto same = [&](const PairedVerdict& one) {
      return one.pairing == fresh.pairing && one.test == fresh.test && one.client == fresh.client &&
             one.server == fresh.server;
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

namespace {

const PairedPoint* point_at(const PairedVerdict& verdict, std::uint64_t size) {
  const auto found = verdict.points.find(size);
  return found != verdict.points.end() && found->second.both() ? &found->second : nullptr;
}

const char* mark_of(const PairedPoint& point) { return point.unstable ? " !" : point.differ() ? "  " : " ="; }

/// The verdict on two other initiators of the same test between the same ends; null: there is none.
const PairedVerdict* beside(const std::vector<PairedVerdict>& verdicts, const PairedVerdict& one, const char* list) {
  const auto found = std::find_if(verdicts.begin(), verdicts.end(), [&](const PairedVerdict& other) {
    return std::string_view(other.pairing->list) == list && other.test == one.test && other.client == one.client &&
           other.server == one.server;
  });
  return found == verdicts.end() ? nullptr : &*found;
}

/// All initiators in one table, each compared with the CPU.
std::string three_to_text(const PairedVerdict& gpu, const PairedVerdict& proxy, const char* unit) {
  std::string text =
      fmt::format("\n{} {} to {}: who posts\n{:>10}{:>15}{:>15}{:>15}{:>13}{:>13}\n", to_string(gpu.test),
                  printable(gpu.client), printable(gpu.server), "size", fmt::format("cpu {}", unit),
                  fmt::format("gpu-proxy {}", unit), fmt::format("gpu {}", unit), "gpu-proxy x", "gpu x");
  for (const auto& [size, ours] : gpu.points) {
    const PairedPoint* const theirs = point_at(proxy, size);
    if (theirs == nullptr || !ours.both()) continue;
    text +=
        fmt::format("{:>10}{:>15}{:>15}{:>15}{:>11.2f}{}{:>11.2f}{}\n", format_size(size),
                    plain_digits(ours.second.value), plain_digits(theirs->first.value), plain_digits(ours.first.value),
                    proxy.ratio(*theirs), mark_of(*theirs), gpu.ratio(ours), mark_of(ours));
  }
  return text + fmt::format("  {}\n  {} ('=': the 95 % intervals touch; '!': unstable)\n", proxy.words(), gpu.words());
}

}  // namespace

std::string to_text(const std::vector<PairedVerdict>& verdicts) {
  std::string text;
  for (const PairedVerdict& verdict : verdicts) {
    const char* unit = verdict.test.metric == Metric::kLatency ? "us" : "GB/s";
    const bool gpu = verdict.pairing->is_first == posted_by_gpu;
    const bool proxy = verdict.pairing->is_first == started_by_gpu;
    if (proxy && beside(verdicts, verdict, "gpu_initiators") != nullptr) continue;
    if (const PairedVerdict* other = gpu ? beside(verdicts, verdict, "initiators") : nullptr) {
      text += three_to_text(verdict, *other, unit);
      continue;
    }
    text += fmt::format(
        "\n{} {} to {}: {}\n{:>10}{:>15}{:>15}{:>13}\n", to_string(verdict.test), printable(verdict.client),
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
