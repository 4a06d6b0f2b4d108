#pragma once

#include <span>
#include <string>

#include "gdrperf/export/formats.h"

/// perftest's words, in its columns and in its JSON.
namespace gdrperf::report {

/// The tables of perftest, with its headings, units and columns.
std::string perftest_columns(std::span<const RunRecord> runs, const FormatContext& context);
/// "RDMA_Write Bidirectional BW Test", as perftest heads its tables.
std::string perftest_title(const TestSpec& spec);
/// "IB", "Ethernet" or "Unknown".
const char* perftest_link(const EndRecord& end);
/// Its unit of a rate, MiB/s or Gb/s, for a GB/s.
double perftest_scale(RateUnit unit);

}  // namespace gdrperf::report
