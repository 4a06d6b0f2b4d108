#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Content of a format beside the runs.
struct FormatContext {
  std::string started;  ///< RFC 3339
  std::string hostname;
  std::string executable = "gdrperf";
  std::string version;
  int cpus = 0;
  RateUnit rate_unit = RateUnit::kGigabytes;  ///< of tables that people or their scripts read
};

/// A form that other tools read, made from the same records as the document. All that the program knows of it
/// is its row in the table (formats.cc).
struct Format {
  std::string_view name;  ///< of --format
  /// `runs` with a newline at the end. Runs without a figure (NaN) are left out where a format cannot say so.
  std::string (*render)(std::span<const RunRecord> runs, const FormatContext& context);
};

/// In the order of the help.
std::span<const Format> all_formats();
std::optional<Format> parse_format(std::string_view name);

/// perftest's --output=bandwidth, message_rate and latency: the one figure of each run, its average, on a line of its
/// own, in the units of its columns. nullopt: another word.
std::optional<Format> perftest_figure(std::string_view word);

}  // namespace gdrperf::report
