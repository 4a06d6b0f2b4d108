#pragma once

#include <string>
#include <vector>

#include "gdrperf/engine/together.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// One run of several at the same time, as it says of itself.
struct PartRun {
  std::string name;
  const report::RunRecord& record;
};

/// The record of all: ends and settings of the first, figures of the sum. `asked` as it was before it was dealt.
report::RunRecord record_of_parts(const TestSpec& asked, const std::vector<PartRun>& parts,
                                  const engine::Together& together);

}  // namespace gdrperf::app
