#pragma once

#include "gdrperf/report/environment.h"
#include "report/record/json_text.h"

namespace gdrperf::report {

/// One host with the keys of results/schema.json.
Json environment_json(const Environment& environment);

}  // namespace gdrperf::report
