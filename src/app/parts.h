#pragma once

#include <string>
#include <vector>

#include "gdrperf/app/client.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// One of the runs that a run of several threads or rails consists of.
struct PartPlan {
  TestSpec spec;
  std::string name;  ///< "rail soft0", "thread 1", "rail soft0 thread 1"
};

/// Whether `spec` asks for several runs at the same time.
bool has_parts(const TestSpec& spec);

/// `rails`: devices of this end, none for the one of `spec`; `peer_rails`: of the other, as many. QPs, a rate and a number of messages are
/// dealt to the threads of each rail. Throws usage_error where there is too little to deal.
std::vector<PartPlan> plan_parts(const TestSpec& spec, const std::vector<std::string>& rails, const std::vector<std::string>& peer_rails);

/// All parts of `spec` at the same time, each on a thread and by a connection of its own; the record of their sum. Throws the first
/// failure, which names its part.
report::RunRecord run_parts(Client& client, const TestSpec& spec);

}  // namespace gdrperf::app
