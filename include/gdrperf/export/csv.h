#pragma once

#include <string>
#include <string_view>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// The names of fields() as columns, with a newline. Units stand in the names:
/// `_gbps` is Gb/s (1e9 bits per second), `_gigabytes_per_s` GB/s as in tables, `_ns`
/// nanoseconds, `_mpps` million messages per second.
std::string csv_header();

/// Text as one cell, quoted by RFC 4180. A spreadsheet takes what begins with = + - @, a tab or an end of line for a
/// formula: such text gets a ' in front (OWASP, CSV injection). Not for numbers.
std::string csv_cell(std::string_view text);

/// One run as one line (RFC 4180 quoting, but LF), with a newline; empty cells
/// for what it did not measure. The series of batches is left out.
std::string csv_line(const RunRecord& record);

}  // namespace gdrperf::report
