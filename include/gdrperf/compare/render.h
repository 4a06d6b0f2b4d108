#pragma once

#include <string>
#include <vector>

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// "98.31 Gb/s", "2.10 us"; "-" for NaN.
std::string format_value(double value, Better better);
/// "-5.0 %", "+3.1 %"; "-" for NaN.
std::string format_change(double share);

/// One line: "138 cells: 136 ok, 1 regression, 1 inconclusive".
std::string summary_line(const Comparison& comparison);
/// Cells in the order in which they are read: regressions first, then by verdict; the largest change first.
std::vector<const CellResult*> in_reading_order(const Comparison& comparison);
/// Remarks beside the table, one sentence each: changed conditions with how
/// many cells they concern, sessions needed, limits widened by noise, warnings.
std::vector<std::string> remarks(const Comparison& comparison);

/// Everything, under the schema "gdrperf-compare/1" (docs/how-to/compare.md).
std::string to_json(const Comparison& comparison);

/// For a CI's summary page: the outcome, what is not ok as a table, remarks, and
/// all cells folded away (up to a few hundred; pages have limits).
std::string to_markdown(const Comparison& comparison);

}  // namespace gdrperf::compare
