#pragma once

#include <span>
#include <string>

#include "gdrperf/export/formats.h"

/// Formats with a source file of their own; as Format::render.
namespace gdrperf::report {

/// Text exposition format 0.0.4, in base units (bytes, seconds). Of runs with the
/// same labels the last counts.
std::string prometheus(std::span<const RunRecord> runs, const FormatContext& context);

/// InfluxDB line protocol: what identifies a run in tags, the rest in fields.
std::string influx(std::span<const RunRecord> runs, const FormatContext& context);

/// The tables of perftest, with its headings, units and columns.
std::string perftest_columns(std::span<const RunRecord> runs, const FormatContext& context);
/// "RDMA_Write Bidirectional BW Test", as perftest heads its tables.
std::string perftest_title(const TestSpec& spec);
/// "IB", "Ethernet" or "Unknown".
const char* perftest_link(const EndRecord& end);
/// Its unit of a rate, MiB/s or Gb/s, for a GB/s.
double perftest_scale(RateUnit unit);

}  // namespace gdrperf::report
