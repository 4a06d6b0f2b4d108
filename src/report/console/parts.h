#pragma once

#include <string>
#include <vector>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// The slowest of several runs at the same time: the rail where there are several, else the thread. There is one at
/// least.
Part slowest_of(const Measurement& measured);

/// Rails of a run with several threads each: their threads together, in the order of the first.
std::vector<Part> rails_of(const Measurement& measured);

/// Jain's index of their rates: 1 where all have the same, 1/n where one has all.
double jain_index(const std::vector<Part>& parts);

/// A line for each thread and rail, and one that names the slowest; "" for a run of one.
std::string parts_text(const RunRecord& record, RateUnit unit);

}  // namespace gdrperf::report
