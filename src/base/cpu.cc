#include "gdrperf/base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
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

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr int kMostCpus = 65536;
  std::vector<int> cpus;
  while (!text.empty()) {
    int first = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc() || first < 0) break;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), last);
      if (wrong != std::errc()) break;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    for (int cpu = first; cpu <= last && cpu < kMostCpus; ++cpu) cpus.push_back(cpu);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return cpus;
}

std::vector<int> cpus_of_numa_node(int node) {
  if (node < 0) return {};
  return parse_cpu_list(
      read_line_or_empty(fmt::format("/sys/devices/system/node/node{}/cpulist", node)));
}

void bind_this_thread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  if (::sched_setaffinity(0, sizeof set, &set) != 0) throw call_error("sched_setaffinity", errno);
}

bool on_one_core(int cpu, int other) {
  if (cpu == other) return true;
  const std::vector<int> threads = parse_cpu_list(
      read_line_or_empty(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)));
  return std::find(threads.begin(), threads.end(), other) != threads.end();
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
