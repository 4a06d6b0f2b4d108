#include "cpu_choice.h"

#include <algorithm>
#include <iterator>

#include "gdrperf/base/cpu.h"

namespace gdrperf::engine {
namespace {

template <class Keep>
std::vector<int> those(const std::vector<int>& cpus, Keep keep) {
  std::vector<int> kept;
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(kept), keep);
  return kept;
}

}  // namespace

CpuRange cpu_range(const EndSpec& end, int nic_node) {
  if (end.cpu >= 0) return {{end.cpu}, {end.cpu}};
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> of_node = cpus_of_numa_node(end.numa >= 0 ? end.numa : nic_node);
  std::vector<int> both;
  std::set_intersection(allowed.begin(), allowed.end(), of_node.begin(), of_node.end(), std::back_inserter(both));
  if (end.numa >= 0) return {both, both};
  return {both.empty() ? allowed : both, allowed};
}

std::vector<int> cpus_beside(const std::vector<int>& others_cpus, const CpuRange& range, const OneCore& one_core) {
  if (others_cpus.empty()) return range.preferred;
  const int other = others_cpus.front();
  const auto of_its_core = [&](int cpu) { return one_core(other, cpu); };
  if (!std::all_of(others_cpus.begin(), others_cpus.end(), of_its_core)) return range.preferred;
  const auto elsewhere = [&](int cpu) { return !of_its_core(cpu); };
  // A second thread of the core is still better than the CPU that the other end has.
  const auto another = [&](int cpu) { return cpu != other; };
  for (std::vector<int> cpus : {those(range.preferred, elsewhere), those(range.possible, elsewhere),
                                those(range.preferred, another), those(range.possible, another)}) {
    if (!cpus.empty()) return cpus;
  }
  return range.preferred;
}

bool same_host(const proto::Endpoint& one, const proto::Endpoint& other) {
  return !one.host_id.empty() && one.host_id == other.host_id;
}

}  // namespace gdrperf::engine
