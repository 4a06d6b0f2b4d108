#pragma once

#include "gdrperf/report/record.h"
#include "report/record/json_text.h"

namespace gdrperf::report {

/// One run with the keys of results/schema.json; GB/s become Gb/s here.
Json record_json(const RunRecord& record);

}  // namespace gdrperf::report
