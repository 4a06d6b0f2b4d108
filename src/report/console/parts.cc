#include "report/console/parts.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "report/console/under_load.h"
#include "report/console/console_rows.h"

namespace gdrperf::report {
namespace {

bool slower(const Part& one, const Part& other) { return one.gbytes < other.gbytes; }

double mean_of(const std::vector<Part>& parts) {
  double sum = 0;
  for (const Part& part : parts) sum += part.gbytes;
  return sum / static_cast<double>(parts.size());
}

/// `whole`: what a hundred per cent are.
std::string line_of(const Part& part, const TestSpec& spec, RateUnit unit, double whole) {
  const std::string cpus = part.cpu < 0 ? std::string("-") : fmt::format("{}/{}", part.cpu, part.peer_cpu);
  return fmt::format("  {:<26}{:>9}{:>6}{:>12}{:>12}{:>10.1f} %\n", printable(part.name), cpus, part.qps,
                     four_digits(part.gbytes * scale_of(unit)),
                     four_digits(part.gbytes * 1e3 / static_cast<double>(spec.size_bytes)), 100 * part.gbytes / whole);
}

}  // namespace

Part slowest_of(const Measurement& measured) {
  const std::vector<Part> rails = rails_of(measured);
  const std::vector<Part>& parts = rails.empty() ? measured.parts : rails;
  return *std::min_element(parts.begin(), parts.end(), slower);
}

double jain_index(const std::vector<Part>& parts) {
  double sum = 0;
  double squares = 0;
  for (const Part& part : parts) {
    sum += part.gbytes;
    squares += part.gbytes * part.gbytes;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(parts.size()) * squares)
                     : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Part> rails_of(const Measurement& measured) {
  std::vector<Part> rails;
  if (measured.incast) return rails;
  for (const Part& part : measured.parts) {
    const auto same = [&](const Part& rail) {
      return rail.device == part.device && rail.peer_device == part.peer_device;
    };
    const auto found = std::find_if(rails.begin(), rails.end(), same);
    if (found != rails.end()) {
      found->gbytes += part.gbytes;
      found->qps += part.qps;
      continue;
    }
    rails.push_back(part);
    rails.back().name = "rail " + part.device.raw();
    rails.back().cpu = rails.back().peer_cpu = -1;
  }
  // One rail is the sum; rails of one thread stand there already.
  if (rails.size() < 2 || rails.size() == measured.parts.size()) rails.clear();
  return rails;
}

std::string parts_text(const RunRecord& record, RateUnit unit) {
  const Measurement& measured = record.measured;
  if (measured.parts.empty()) return {};
  std::string text = fmt::format("  {:<26}{:>9}{:>6}{:>12}{:>12}{:>12}\n", "at the same time", "CPUs", "QPs",
                                 rate_unit_name(unit), "Mpps", measured.incast ? "share" : "of mean");
  const double mean = mean_of(measured.parts);
  const double whole = measured.incast ? mean * static_cast<double>(measured.parts.size()) : mean;
  for (const Part& part : measured.parts) text += line_of(part, record.spec, unit, whole);
  const std::vector<Part> rails = rails_of(measured);
  for (const Part& rail : rails) text += line_of(rail, record.spec, unit, mean_of(rails));
  const Part slowest = slowest_of(measured);
  const double of_mean = slowest.gbytes / (rails.empty() ? mean : mean_of(rails));
  text += fmt::format("  slowest: {}, {:.1f} % of the mean; all began within {} us\n", printable(slowest.name),
                      100 * of_mean, plain_digits(measured.start_spread_s * 1e6, 3));
  if (measured.incast) text += fmt::format("  fairness (Jain's index): {:.4f}\n", jain_index(measured.parts));
  if (!measured.victim) return text;
  const Victim& victim = *measured.victim;
  return text + fmt::format("  victim: {} from {}\n{}", to_string(victim.test), printable(victim.device),
                            idle_and_loaded_text(victim.idle, victim.loaded));
}

}  // namespace gdrperf::report
