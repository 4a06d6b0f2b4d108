#pragma once

#include "app/client/client.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// Rule of a stream that a test with rule `test` ends: later than that.
StopRule longer_than(const StopRule& test);

/// The test with nothing beside it; of one without end, as long as any other. Throws peer_error where the user stopped
/// it.
report::RunRecord idle_run(Client& client, TestSpec spec);

/// Latency test with `spec.load`: alone first, then beside the stream, which a guest of `client` runs. The record is of
/// the second. Throws Error when either fails.
report::RunRecord run_under_load(Client& client, const TestSpec& spec);

}  // namespace gdrperf::app
