#include "report/console/under_load.h"

#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "report/console/console_rows.h"

namespace gdrperf::report {
namespace {

std::string stream_text(const RunRecord& record, RateUnit unit) {
  const UnderLoad& under = *record.measured.under_load;
  const auto rate = [&](double gbytes) {
    return fmt::format("{} {}", four_digits(gbytes * scale_of(unit)), rate_unit_name(unit));
  };
  std::string text = fmt::format("with {} of {}: {} carried", to_string(under.stream),
                                 format_size(record.spec.load_size_bytes), rate(under.carried_gbytes));
  if (under.offered_gbytes > 0) text += fmt::format(" of {} offered", rate(under.offered_gbytes));
  if (under.alone_gbytes > 0) text += fmt::format(", {} alone", rate(under.alone_gbytes));
  return text;
}

}  // namespace

double loaded_ratio(const Latency& idle, const Latency& loaded, double Latency::*percentile) {
  return idle.*percentile > 0 ? loaded.*percentile / (idle.*percentile) : std::numeric_limits<double>::quiet_NaN();
}

std::string idle_and_loaded_text(const Latency& idle, const Latency& loaded) {
  struct Column {
    const char* name;
    double Latency::*percentile;
  };
  constexpr Column kColumns[] = {
      {"p50 us", &Latency::p50_ns}, {"p99 us", &Latency::p99_ns}, {"p99.9 us", &Latency::p999_ns}};
  std::string names = fmt::format("            {:<8}", "");
  std::string without = fmt::format("            {:<8}", "idle");
  std::string beside = fmt::format("            {:<8}", "loaded");
  std::string ratio = fmt::format("            {:<8}", "ratio");
  for (const Column& column : kColumns) {
    names += fmt::format(" {:>11}", column.name);
    without += fmt::format(" {:>11.3f}", idle.*column.percentile / 1e3);
    beside += fmt::format(" {:>11.3f}", loaded.*column.percentile / 1e3);
    ratio += fmt::format(" {:>11}", four_digits(loaded_ratio(idle, loaded, column.percentile)));
  }
  return fmt::format("{}\n{}\n{}\n{}\n", names, without, beside, ratio);
}

std::string under_load_text(const RunRecord& record, RateUnit unit) {
  const Measurement& measured = record.measured;
  if (!measured.under_load || !measured.latency) return {};
  return fmt::format("            {}\n{}", stream_text(record, unit),
                     idle_and_loaded_text(measured.under_load->idle, *measured.latency));
}

}  // namespace gdrperf::report
