#include "gdrperf/report/relations.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/report/fields.h"

namespace gdrperf::report {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Of a value above 0.
std::string shown(double value) {
  const int digits = 3 - static_cast<int>(std::floor(std::log10(value)));
  return fmt::format("{:.{}f}", value, std::clamp(digits, 0, 6));
}

bool is_latency(const std::string& test) { return test.find("_lat") != std::string::npos; }

}  // namespace

void RelationComparison::add(const RunRecord& record) {
  const Measurement& measured = record.measured;
  double value = 0;
  if (measured.bandwidth) value = measured.bandwidth->median_gbytes;
  if (measured.latency) value = measured.latency->p50_ns;
  if (!(value > 0) || !std::isfinite(value)) return;
  const std::string test = series_name(record);
  if (std::find(order_.begin(), order_.end(), test) == order_.end()) order_.push_back(test);
  auto& pairs = tests_[test][record.spec.size_bytes][record.relation];
  pairs.values.push_back(value);
  pairs.unstable = pairs.unstable || measured.unstable;
  any_pair_ = any_pair_ || !record.path.pair.empty();
  simulated_ = simulated_ || record.device_kind == "simulated";
}

void RelationComparison::print(std::ostream& out, const ConsoleOptions& options, Sizes sizes) const {
  if (!any_pair_) return;
  out << '\n'
      << wrapped("Relations compared: median over the pairs of each (lowest to highest pair), ratio to the best",
                 options.columns, 4)
      << '\n';
  if (simulated_) out << "  Results of simulated links, not of hardware.\n";
  for (const std::string& test : order_) {
    const bool latency = is_latency(test);
    const bool gigabits = options.rate_unit == RateUnit::kGigabits;
    const double scale = latency ? 1e-3 : gigabits ? gigabits_from_gigabytes(1) : 1;
    out << fmt::format("{}, {}\n", test, latency ? "us (p50)" : gigabits ? "Gb/s" : "GB/s");
    out << fmt::format("{:>10}  {:<8}{:>6}{:>11}{:>24}{:>9}\n", "size", "relation", "pairs",
                       "median", "spread", "ratio");
    const auto& by_size = tests_.at(test);
    const std::uint64_t telling = latency ? by_size.begin()->first : by_size.rbegin()->first;
    for (const auto& [size, relations] : by_size) {
      if (sizes == Sizes::kTelling && size != telling) continue;
      double best = 0;
      for (const auto& [relation, pairs] : relations) {
        const double median = median_of(pairs.values);
        if (best == 0 || (latency ? median < best : median > best)) best = median;
      }
      for (const char* relation : kRelationOrder) {
        const auto found = relations.find(relation);
        if (found == relations.end()) continue;
        const std::vector<double>& values = found->second.values;
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const double median = median_of(values);
        out << fmt::format("{:>10}  {:<8}{:>6}{:>11}{:>24}{:>9.3f}{}\n", format_size(size), relation, values.size(),
                           shown(median * scale), shown(*low * scale) + " to " + shown(*high * scale), median / best,
                           found->second.unstable ? " !" : "");
      }
    }
  }
  out.flush();
}

}  // namespace gdrperf::report
