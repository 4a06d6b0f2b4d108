#include "engine/setup/cpu_choice.h"

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

int cpu_of_part(const std::vector<int>& cpus, int part, const OneCore& one_core) {
  std::vector<int> order;
  std::vector<int> rest = cpus;
  // No more of them than are asked for: each look costs a file.
  const auto wanted = static_cast<std::size_t>(part) % cpus.size() + 1;
  while (!rest.empty() && order.size() < wanted) {
    std::vector<int> others;
    const std::size_t before = order.size();
    for (const int cpu : rest) {
      const bool alone = std::none_of(order.begin() + static_cast<std::ptrdiff_t>(before), order.end(),
                                      [&](int taken) { return one_core(taken, cpu); });
      (alone ? order : others).push_back(cpu);
      if (order.size() == wanted) break;
    }
    rest = others;
  }
  return order.back();
}

bool same_host(const proto::Endpoint& one, const proto::Endpoint& other) {
  return !one.host_id.empty() && one.host_id == other.host_id;
}

}  // namespace gdrperf::engine
