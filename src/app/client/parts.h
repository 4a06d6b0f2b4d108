#pragma once

#include <string>
#include <vector>

#include "app/client/client.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// One of the runs that a run of several threads or rails consists of.
struct PartPlan {
  TestSpec spec;
  std::string name;  ///< "rail soft0", "thread 1", "rail soft0 thread 1"
};

/// Devices that are used at the same time; none where there is one at each end.
struct Rails {
  std::vector<std::string> own;
  std::vector<std::string> peer;  ///< as many
  std::vector<int> own_ports = {};  ///< of each; 0: the port that the end's settings name, or its first active one
  std::vector<int> peer_ports = {};
};

/// Those of `spec`, with "all" as the devices there are; "soft0:2" is port 2 of soft0, ":2" that of the device by
/// default. Throws usage_error where the ends have not as many.
Rails rails_of(const TestSpec& spec);

/// Whether `spec` asks for several runs at the same time.
bool has_parts(const TestSpec& spec);

/// QPs, a rate and a number of messages are dealt to the threads of each rail, or to the clients of an incast; memory
/// is of each rail where `spec` has a list. Throws usage_error where there is too little to deal.
std::vector<PartPlan> plan_parts(const TestSpec& spec, const Rails& rails);

/// The latency test beside an incast (--victim), as one more client.
TestSpec victim_spec(const TestSpec& spec, const Rails& rails);

/// All parts of `spec` at the same time, each on a thread and by a connection of its own; the record of their sum.
/// Throws the first failure, which names its part.
report::RunRecord run_parts(Client& client, const TestSpec& spec);

}  // namespace gdrperf::app
