#include "gdrperf/report/ordering_verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"

namespace gdrperf::report {
namespace {

std::string name_of(const EndRecord& end) { return end.device + " " + end.buffer; }

OrderingFigure ordering_figure(const Measurement& measured) {
  if (measured.bandwidth) {
    return {measured.bandwidth->median_gbytes, measured.bandwidth->ci95_low_gbytes, measured.bandwidth->ci95_high_gbytes};
  }
  if (!measured.latency) return {};
  return {measured.latency->p50_ns / 1e3, measured.latency->ci95_p50_low_ns / 1e3, measured.latency->ci95_p50_high_ns / 1e3};
}

}  // namespace

bool OrderingPoint::differ() const {
  const bool known = relaxed.low > 0 && strict.low > 0;
  return both() && !unstable && known && (relaxed.low > strict.high || strict.low > relaxed.high);
}

double OrderingVerdict::ratio(const OrderingPoint& point) const {
  return test.metric == Metric::kLatency ? point.strict.value / point.relaxed.value : point.relaxed.value / point.strict.value;
}

std::string OrderingVerdict::words() const {
  std::size_t both = 0;
  const std::pair<const std::uint64_t, OrderingPoint>* best = nullptr;
  const std::pair<const std::uint64_t, OrderingPoint>* worst = nullptr;
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
    return fmt::format("relaxed ordering makes no difference that shows: the intervals touch, or a run is unstable, at {} size{}",
                       both, both == 1 ? "" : "s");
  }
  if (best == worst) return fmt::format("relaxed ordering is worth {} of the {}", percent(*best), what);
  return fmt::format("relaxed ordering is worth {} to {} of the {}", percent(*worst), percent(*best), what);
}

void OrderingVerdicts::add(const RunRecord& record) {
  if (record.spec.ordering == Ordering::kAuto) return;
  OrderingVerdict fresh{record.spec.test, name_of(record.client), name_of(record.server), record.relation, {}};
  const auto same = [&](const OrderingVerdict& one) {
    return one.test == fresh.test && one.client == fresh.client && one.server == fresh.server;
  };
  auto found = std::find_if(verdicts_.begin(), verdicts_.end(), same);
  if (found == verdicts_.end()) found = verdicts_.insert(verdicts_.end(), std::move(fresh));
  OrderingPoint& point = found->points[record.spec.size_bytes];
  point.unstable = point.unstable || record.measured.unstable;
  (record.spec.ordering == Ordering::kRelaxed ? point.relaxed : point.strict) = ordering_figure(record.measured);
}

std::vector<OrderingVerdict> OrderingVerdicts::all() const {
  std::vector<OrderingVerdict> result;
  std::copy_if(verdicts_.begin(), verdicts_.end(), std::back_inserter(result), [](const OrderingVerdict& one) {
    return std::any_of(one.points.begin(), one.points.end(), [](const auto& point) { return point.second.both(); });
  });
  return result;
}

std::string to_text(const std::vector<OrderingVerdict>& verdicts) {
  std::string text;
  for (const OrderingVerdict& verdict : verdicts) {
    const char* unit = verdict.test.metric == Metric::kLatency ? "us" : "GB/s";
    text += fmt::format("\n{} {} to {}: relaxed or strict ordering\n{:>10}{:>15}{:>15}{:>11}\n", to_string(verdict.test),
                        printable(verdict.client), printable(verdict.server), "size", fmt::format("relaxed {}", unit),
                        fmt::format("strict {}", unit), "relaxed x");
    for (const auto& [size, point] : verdict.points) {
      if (!point.both()) continue;
      const char* mark = point.unstable ? " !" : point.differ() ? "" : " =";
      text += fmt::format("{:>10}{:>15.4g}{:>15.4g}{:>11.2f}{}\n", format_size(size), point.relaxed.value, point.strict.value,
                          verdict.ratio(point), mark);
    }
    text += fmt::format("  {} ('=': the 95 % intervals touch; '!': unstable)\n", verdict.words());
  }
  return text;
}

}  // namespace gdrperf::report
