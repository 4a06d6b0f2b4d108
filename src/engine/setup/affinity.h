#pragma once

#include <sched.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/setup/cpu_choice.h"
#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// While it lives, the calling thread and those that it starts may use other CPUs.
class OtherCpus {
 public:
  explicit OtherCpus(const cpu_set_t& cpus) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof cpus, &cpus);
  }
  ~OtherCpus() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OtherCpus(const OtherCpus&) = delete;
  OtherCpus& operator=(const OtherCpus&) = delete;

 private:
  cpu_set_t before_{};
};

/// Binds the calling thread for its own lifetime: to the CPU the end
/// asks for, else on the CPUs of the NUMA node it asks for, else on those of the
/// NIC's node; always within what taskset or a cgroup allows, and where that
/// leaves none of the NIC's node, as before. With the other end on this host
/// (`others_cpus`), on one CPU of those, not of the other's core where that can
/// be. One of several runs at the same time has one CPU of its own among them, and the server's ends on this host
/// the next ones. Memory it touches first lies there.
class AffinityScope {
 public:
  AffinityScope(const TestSpec& spec, int nic_node, conn::Side side, const std::vector<int>& others_cpus = {}) {
    const EndSpec& end = side == conn::Side::kClient ? spec.client : spec.server;
    ::sched_getaffinity(0, sizeof before_, &before_);
    if (end.cpu >= 0) {
      try {
        pin_this_thread(end.cpu);
      } catch (const Error& error) {
        throw error.in(fmt::format("{} {}", end_flag<&EndSpec::cpu>(side), end.cpu));
      }
      return;
    }
    const std::vector<int> cpus = cpus_beside(others_cpus, cpu_range(end, nic_node), on_one_core);
    if (cpus.empty() && end.numa >= 0) {
      throw usage_error(fmt::format("{} {}: no CPU of that NUMA node is among those this process may use",
                                    end_flag<&EndSpec::numa>(side), end.numa));
    }
    if (cpus.empty()) return;
    if (spec.parts > 1) {
      const bool beside_client = side == conn::Side::kServer && !others_cpus.empty();
      pin_this_thread(
          cpu_of_part(cpu_range(end, nic_node).preferred, spec.part + (beside_client ? spec.parts : 0), on_one_core));
      return;
    }
    bind_this_thread(cpus);
    // Of several the one that the kernel chose: runs side by side get different ones.
    if (!others_cpus.empty() && current_cpu() >= 0) pin_this_thread(current_cpu());
  }
  /// CPUs that the thread might use before: those of the process.
  int process_cpus() const { return CPU_COUNT(&before_); }
  /// For threads that work beside this one.
  OtherCpus unbound() const { return OtherCpus(before_); }
  ~AffinityScope() { ::sched_setaffinity(0, sizeof before_, &before_); }
  AffinityScope(const AffinityScope&) = delete;
  AffinityScope& operator=(const AffinityScope&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace gdrperf::engine
