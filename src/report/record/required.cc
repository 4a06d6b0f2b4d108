#include "gdrperf/report/required.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {
namespace {

bool concerns(const RunRecord& record) {
  const Required& asked = record.required;
  return record.spec.test.metric == Metric::kLatency ? asked.max_p99_us.has_value()
                                                     : asked.min_gbps || asked.min_efficiency;
}

void add_bandwidth_misses(const RunRecord& record, std::vector<Miss>& list) {
  const Required& asked = record.required;
  const double gbytes = goodput_gbytes(record.measured);
  if (!std::isfinite(gbytes)) {
    list.push_back({false, "has no result"});
    return;
  }
  const double gbits = gigabits_from_gigabytes(gbytes);
  const std::string figure = fmt::format("{} Gb/s ({} GB/s)", plain_digits(gbits), plain_digits(gbytes));
  if (asked.min_gbps && gbits < *asked.min_gbps) {
    list.push_back({true, fmt::format("{} is below {} {:g}", figure, flags::kMinGbps, *asked.min_gbps)});
  }
  if (!asked.min_efficiency) return;
  const double percent = *asked.min_efficiency * 100;
  const std::optional<double> share = efficiency(record);
  if (!share) {
    list.push_back({false, fmt::format("has no known theoretical maximum, which {} {:g}% refers to",
                                       flags::kMinEfficiency, percent)});
  } else if (*share < *asked.min_efficiency) {
    list.push_back({true, fmt::format("{} is {:.1f} % of the maximum of {} Gb/s, below {} {:g}%", figure, *share * 100,
                                      plain_digits(record.path.ceiling_gbps), flags::kMinEfficiency, percent)});
  }
}

}  // namespace

std::vector<Miss> misses(const RunRecord& record) {
  std::vector<Miss> list;
  if (!concerns(record)) return list;
  if (record.spec.test.metric == Metric::kBandwidth) {
    add_bandwidth_misses(record, list);
    return list;
  }
  const double p99_us = record.measured.latency ? record.measured.latency->p99_ns / 1e3 : std::nan("");
  if (!std::isfinite(p99_us)) {
    list.push_back({false, "has no result"});
  } else if (p99_us > *record.required.max_p99_us) {
    list.push_back({true, fmt::format("a p99 of {} us is above {} {:g}", plain_digits(p99_us), flags::kMaxP99Us,
                                      *record.required.max_p99_us)});
  }
  return list;
}

std::string met(const RunRecord& record) {
  if (!concerns(record)) return {};
  const std::vector<Miss> list = misses(record);
  if (std::any_of(list.begin(), list.end(), [](const Miss& miss) { return miss.known; })) return "no";
  return list.empty() ? "yes" : "unknown";
}

}  // namespace gdrperf::report
