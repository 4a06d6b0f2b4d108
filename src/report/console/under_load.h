#pragma once

#include <string>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Loaded over idle, of a percentile; NaN where idle is none.
double loaded_ratio(const Latency& idle, const Latency& loaded, double Latency::*percentile);

/// Percentiles idle and loaded, and their ratio: a table of four lines.
std::string idle_and_loaded_text(const Latency& idle, const Latency& loaded);

/// Table of percentiles idle and loaded; "" without a load.
std::string under_load_text(const RunRecord& record, RateUnit unit);

}  // namespace gdrperf::report
