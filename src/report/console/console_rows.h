#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gdrperf/base/units.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

inline constexpr char kFewSamples = '~';
inline constexpr char kFewBatches = '?';
inline constexpr char kUnstable = '!';

/// Names of the columns of `record`'s test, and its row. Both take at most 80 columns where fewer than kAllColumns
/// are there; blanks stand between all columns, however large a figure is.
std::string column_names(const RunRecord& record, const ConsoleOptions& options);
std::string row_of(const RunRecord& record, const ConsoleOptions& options, Marks& marks);
/// Names the columns that a narrow terminal does not get; "" where it gets all.
std::string columns_left_out(Metric metric, const ConsoleOptions& options);
/// Lines below the row: how it was measured, more of its figures.
std::string details_of(const RunRecord& record, const ConsoleOptions& options);
/// From here on a terminal gets every column.
inline constexpr std::size_t kAllColumns = 100;

/// 90 % of the ceiling are good, less than 70 % bad; nothing without a ceiling.
std::optional<Style> style_of_share(std::optional<double> share);
/// Why the figures are not those of a NIC; "" for hardware.
std::string not_of_hardware(std::string_view kind);
const char* rate_unit_name(RateUnit unit);
/// From GB/s to `unit`.
double scale_of(RateUnit unit);

}  // namespace gdrperf::report
