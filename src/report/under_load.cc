#include "gdrperf/report/under_load.h"

#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "console_rows.h"

namespace gdrperf::report {
namespace {

std::string stream_text(const RunRecord& record, RateUnit unit) {
  const UnderLoad& under = *record.measured.under_load;
  const auto rate = [&](double gbytes) { return fmt::format("{} {}", four_digits(gbytes * scale_of(unit)), rate_unit_name(unit)); };
  std::string text = fmt::format("beside {} of {}: {} carried", to_string(under.stream), format_size(record.spec.load_size_bytes),
                                 rate(under.carried_gbytes));
  if (under.offered_gbytes > 0) text += fmt::format(" of {} offered", rate(under.offered_gbytes));
  if (under.alone_gbytes > 0) text += fmt::format(", {} alone", rate(under.alone_gbytes));
  return text;
}

}  // namespace

double loaded_ratio(const Measurement& measured, double Latency::*percentile) {
  if (!measured.under_load || !measured.latency || !(measured.under_load->idle.*percentile > 0)) return std::numeric_limits<double>::quiet_NaN();
  return *measured.latency.*percentile / (measured.under_load->idle.*percentile);
}

std::string under_load_text(const RunRecord& record, RateUnit unit) {
  const Measurement& measured = record.measured;
  if (!measured.under_load || !measured.latency) return {};
  struct Column {
    const char* name;
    double Latency::*percentile;
  };
  constexpr Column kColumns[] = {{"p50 us", &Latency::p50_ns}, {"p99 us", &Latency::p99_ns}, {"p99.9 us", &Latency::p999_ns}};
  std::string names = fmt::format("            {:<8}", "");
  std::string idle = fmt::format("            {:<8}", "idle");
  std::string loaded = fmt::format("            {:<8}", "loaded");
  std::string ratio = fmt::format("            {:<8}", "ratio");
  for (const Column& column : kColumns) {
    names += fmt::format(" {:>11}", column.name);
    idle += fmt::format(" {:>11.3f}", measured.under_load->idle.*column.percentile / 1e3);
    loaded += fmt::format(" {:>11.3f}", *measured.latency.*column.percentile / 1e3);
    ratio += fmt::format(" {:>11}", four_digits(loaded_ratio(measured, column.percentile)));
  }
  return fmt::format("            {}\n{}\n{}\n{}\n{}\n", stream_text(record, unit), names, idle, loaded, ratio);
}

}  // namespace gdrperf::report
