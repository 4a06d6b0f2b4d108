#pragma once

#include <string_view>
#include <vector>

namespace gdrperf {

/// CPUs this thread may run on (taskset, cgroup), ascending.
std::vector<int> allowed_cpus();

/// Pins the calling thread to one CPU; throws usage_error when it is not
/// among allowed_cpus().
void pin_this_thread(int cpu);

/// CPUs of a NUMA node, ascending; empty when there is no such node.
std::vector<int> cpus_of_numa_node(int node);

/// "0-3,8" as the kernel writes lists of CPUs; what is no such list ends it.
std::vector<int> parse_cpu_list(std::string_view text);

/// Lets the calling thread run on these CPUs alone, which must be among
/// allowed_cpus(). Throws Error(kEnvironment).
void bind_this_thread(const std::vector<int>& cpus);

/// The CPU the calling thread runs on now, and that CPU's NUMA node (-1 when
/// the kernel does not say).
int current_cpu();
int numa_node_of_cpu(int cpu);

/// Whether both are one CPU, or two threads of one physical core.
bool on_one_core(int cpu, int other);

}  // namespace gdrperf
