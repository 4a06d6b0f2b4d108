#pragma once

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// Where the calling thread runs for the lifetime of this: on the CPU the end
/// asks for, else on the CPUs of the NUMA node it asks for, else on those of the
/// NIC's node; always within what taskset or a cgroup allows, and where that
/// leaves none of the NIC's node, as before. Memory it touches first lies there.
class AffinityScope {
 public:
  AffinityScope(const EndSpec& end, int nic_node, conn::Side side) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    const bool client = side == conn::Side::kClient;
    if (end.cpu >= 0) {
      try {
        pin_this_thread(end.cpu);
      } catch (const Error& error) {
        throw error.in(fmt::format("{} {}", client ? "--cpu" : "--peer-cpu", end.cpu));
      }
      return;
    }
    const std::vector<int> usable = usable_cpus(end.numa >= 0 ? end.numa : nic_node);
    if (!usable.empty()) {
      bind_this_thread(usable);
    } else if (end.numa >= 0) {
      throw usage_error(fmt::format("{} {}: no CPU of that NUMA node is among those this process may use",
                                    client ? "--numa" : "--peer-numa", end.numa));
    }
  }
  /// CPUs that the thread might use before: those of the process.
  int process_cpus() const { return CPU_COUNT(&before_); }
  ~AffinityScope() { ::sched_setaffinity(0, sizeof before_, &before_); }
  AffinityScope(const AffinityScope&) = delete;
  AffinityScope& operator=(const AffinityScope&) = delete;

 private:
  static std::vector<int> usable_cpus(int node) {
    const std::vector<int> allowed = allowed_cpus();
    const std::vector<int> of_node = cpus_of_numa_node(node);
    std::vector<int> both;
    std::set_intersection(allowed.begin(), allowed.end(), of_node.begin(), of_node.end(),
                          std::back_inserter(both));
    return both;
  }

  cpu_set_t before_{};
};

}  // namespace gdrperf::engine
