#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gdrperf/report/console.h"

namespace gdrperf::report {

/// A figure over message size as one line: "rate over size, 2 B to 8 MiB: ▁▁▂▅▇█, at most 52.6 GB/s at 4 MiB"; the
/// heights are linear and begin at 0. "" for fewer than four sizes, or without a figure above 0. `points` are GB/s, or
/// nanoseconds of a latency test.
std::string sparkline(const std::map<std::uint64_t, double>& points, Metric metric, const ConsoleOptions& options);

}  // namespace gdrperf::report
