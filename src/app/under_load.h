#pragma once

#include "gdrperf/app/client.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// Latency test with `spec.load`: alone first, then beside the stream, which a companion of `client` runs. The record is of the
/// second. Throws Error when either fails.
report::RunRecord run_under_load(Client& client, const TestSpec& spec);

}  // namespace gdrperf::app
