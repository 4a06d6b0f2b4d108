#pragma once

#include <chrono>
#include <string>

#include "gdrperf/stats/histogram.h"

namespace gdrperf::report {

/// HdrHistogram's log, version 1.3 (hdrhistogram.github.io): comments, column names, and a line for each stretch of
/// time with a histogram in the compressed encoding V2. Values are nanoseconds, to 3 digits.

/// First lines, of a log that begins at `start`, from which the lines' times count.
std::string hdr_log_header(std::chrono::system_clock::time_point start, const std::string& tool);

/// A stretch of time and its histogram.
struct HdrStretch {
  std::string tag;     ///< no comma, no blank
  double start_s = 0;  ///< since the log's start
  double seconds = 0;
  const stats::Histogram& histogram;
  double scale = 1;  ///< nanoseconds of one of its units
};
/// With the line's end. Values are the middles of the histogram's buckets, the least and the largest exact.
std::string hdr_log_line(const HdrStretch& stretch);

}  // namespace gdrperf::report
