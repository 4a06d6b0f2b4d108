#pragma once

#include "app/client/client.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// One run of `client`, after open(), with all that runs beside it: parts at the same time, or a load. Throws Error
/// when it failed; the session is given up then.
report::RunRecord run_test(Client& client, const TestSpec& spec);

}  // namespace gdrperf::app
