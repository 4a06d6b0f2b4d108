#pragma once

#include <vector>

namespace gdrperf {

/// CPUs this thread may run on (taskset, cgroup), ascending.
std::vector<int> allowed_cpus();

/// Pins the calling thread to one CPU; throws usage_error when it is not
/// among allowed_cpus().
void pin_this_thread(int cpu);

/// The CPU the calling thread runs on now, and that CPU's NUMA node (-1 when
/// the kernel does not say).
int current_cpu();
int numa_node_of_cpu(int cpu);

}  // namespace gdrperf
