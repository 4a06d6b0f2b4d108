#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// What other tools read, made from the same records as the document.
enum class Format {
  kGoogleBenchmark,        ///< Google Benchmark's JSON
  kCsv,                    ///< csv_header() and a csv_line() per run
  kPrometheus,             ///< text exposition format 0.0.4
  kBmf,                    ///< Bencher Metric Format
  kCustomBiggerIsBetter,   ///< github-action-benchmark: bandwidth runs
  kCustomSmallerIsBetter,  ///< the same tool: latency runs
  kJsonl,                  ///< one run per line, as in the document, with its relation
};

/// "google-benchmark", "csv", "prometheus", "bmf", "custom-bigger-is-better",
/// "custom-smaller-is-better", "jsonl".
std::string_view to_string(Format format);
std::optional<Format> parse_format(std::string_view name);
const std::vector<Format>& all_formats();

/// What a format says beside the runs.
struct FormatContext {
  std::string started;  ///< RFC 3339
  std::string hostname;
  std::string executable = "gdrperf";
  std::string version;
  int cpus = 0;
};

/// `runs` in `format`, with a newline at the end. Runs without a figure (NaN) are
/// left out where a format cannot say so.
std::string render(Format format, std::span<const RunRecord> runs, const FormatContext& context);

}  // namespace gdrperf::report
