#include "gdrperf/base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"

namespace gdrperf {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void pin_this_thread(int cpu) {
  const std::vector<int> allowed = allowed_cpus();
  if (std::find(allowed.begin(), allowed.end(), cpu) == allowed.end()) {
    throw usage_error(fmt::format("CPU {} is not among those this process may use ({})", cpu,
                                  fmt::join(allowed, ",")));
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) throw call_error("sched_setaffinity", errno);
}

int current_cpu() { return ::sched_getcpu(); }

int numa_node_of_cpu(int cpu) {
  std::error_code error;
  const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("node", 0) == 0 && name.size() > 4) return std::stoi(name.substr(4));
  }
  return -1;
}

}  // namespace gdrperf
