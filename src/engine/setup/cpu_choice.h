#pragma once

#include <functional>
#include <vector>

#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// CPUs that one end may run on, ascending. Empty: nothing is known.
struct CpuRange {
  std::vector<int> preferred;  ///< the one asked for, or those of the node
  std::vector<int> possible;   ///< where those are the other end's: all that are allowed and were not ruled out
};

/// CPUs that `end` asks for and, where it asks for none, those of the NIC's node,
/// within what taskset or a cgroup allows the calling thread.
CpuRange cpu_range(const EndSpec& end, int nic_node);

/// Whether two CPUs are of one physical core.
using OneCore = std::function<bool(int, int)>;

/// Those of `range` to run on when the other end, on this host, has `others_cpus`:
/// none of its core where it has but one; else a core of its own away from the
/// node, else another CPU of the core, else that CPU itself. With several cores
/// it is the other end that gives way.
std::vector<int> cpus_beside(const std::vector<int>& others_cpus, const CpuRange& range, const OneCore& one_core);

/// CPU of run `part` of several at the same time, taken in turn: one of each core first, then the cores' other threads.
/// `cpus` is not empty.
int cpu_of_part(const std::vector<int>& cpus, int part, const OneCore& one_core);

/// Both ends run under one kernel.
bool same_host(const proto::Endpoint& one, const proto::Endpoint& other);

}  // namespace gdrperf::engine
