// Limits that the cgroup and cpuset of this process set: a container's, a job's, a unit's.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "gdrperf/base/units.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr std::uint64_t kLittleMemory = std::uint64_t{2} << 30;
constexpr int kFewHandles = 8;
constexpr int kFewObjects = 10'000;

Check cgroup_check(Findings& findings) {
  return {
      findings, "cgroup",
      "a container's or job's limits stop a run in the middle (CPU time) or its registrations (memory, RDMA objects)"};
}

/// Folders of this process's cgroup, from its own up to the root, of each hierarchy.
std::vector<std::string> cgroup_folders(const Machine& machine) {
  std::vector<std::string> folders;
  const std::string text = machine.read("/proc/self/cgroup").text;
  for (const std::string_view line : lines_of(text)) {
    // "0::/user.slice/x" (version 2), "4:cpu,cpuacct:/docker/x" (version 1)
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const std::string root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
    std::string path(line.substr(second + 1));
    if (path.find("..") != std::string::npos) path = "/";  // above what this namespace shows
    for (int depth = 0; depth < 32; ++depth) {
      while (path.ends_with('/')) path.pop_back();
      folders.push_back(root + path);
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return folders;
}

struct Limit {
  std::string file;
  std::string value;
};

/// The first file of that name which sets a limit, nearest first.
Limit limit_of(const Machine& machine, const std::vector<std::string>& folders,
               std::initializer_list<const char*> names) {
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      const std::string path = fmt::format("{}/{}", folder, name);
      const std::string text = std::string(trimmed(machine.read(path).text));
      if (!text.empty() && !text.starts_with("max") && text != "-1") return {path, text};
    }
  }
  return {};
}

/// CPUs that the quota allows; 0: no quota.
double cpu_quota(const Machine& machine, const std::vector<std::string>& folders, Limit& seen) {
  seen = limit_of(machine, folders, {"cpu.max", "cpu.cfs_quota_us"});
  const auto words = words_of(seen.value);
  if (words.empty()) return 0;
  double period = words.size() > 1 ? leading_number(words[1]) : 0;
  if (period == 0) {
    const std::string folder = seen.file.substr(0, seen.file.rfind('/'));
    period = leading_number(line_of(machine, folder + "/cpu.cfs_period_us"));
  }
  return period > 0 ? leading_number(words[0]) / period : 0;
}

std::string raise_cpu(const Platform& platform) {
  switch (platform.runtime) {
    case Runtime::kKubernetes:
      return "no cpu limit in the pod's resources, or requests equal to limits in whole CPUs (Guaranteed, "
             "cpuManagerPolicy static)";
    case Runtime::kNone: return "more CPUs for the job or unit (CPUQuota=, --cpus-per-task)";
    default: return "start the container without --cpus, or with more";
  }
}

void judge_cpu(const Survey& survey, const std::vector<std::string>& folders, const Check& check) {
  Limit seen;
  const double cpus = cpu_quota(survey.machine, folders, seen);
  if (cpus <= 0) return;
  std::string found = fmt::format(
      "CPU time is limited to {} CPUs: threads that poll use it up and are stopped for the rest of "
      "each 100 ms",
      plain_digits(cpus, 2));
  const std::string stat = survey.machine.read(seen.file.substr(0, seen.file.rfind('/')) + "/cpu.stat").text;
  for (const std::string_view line : lines_of(stat)) {
    const auto times = value_after(line, "nr_throttled ");
    if (times && *times != "0") found += fmt::format("; that happened {} times so far", *times);
  }
  check.warn("CPU time", found, raise_cpu(survey.platform)).saw(seen.file, seen.value);
}

void judge_memory(const Survey& survey, const std::vector<std::string>& folders, const Check& check) {
  const Limit seen = limit_of(survey.machine, folders, {"memory.max", "memory.limit_in_bytes"});
  const auto bytes = number_of(seen.value);
  if (!bytes || static_cast<std::uint64_t>(*bytes) >= kLittleMemory) return;
  check
      .warn("memory",
            fmt::format("limited to {}: registered buffers count against it, and what is above it is killed",
                        format_size(static_cast<std::uint64_t>(*bytes))),
            survey.platform.runtime == Runtime::kKubernetes
                ? "a larger limits.memory in the pod"
                : "a larger memory limit of the container or job (--memory, --mem)")
      .saw(seen.file, seen.value);
}

void judge_rdma(const Survey& survey, const std::vector<std::string>& folders, const Check& check) {
  const Limit seen = limit_of(survey.machine, folders, {"rdma.max"});
  for (const std::string_view line : lines_of(seen.value)) {
    // mlx5_0 hca_handle=2 hca_object=2000
    const auto words = words_of(line);
    std::string limits;
    for (const std::string_view word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos || word.ends_with("=max")) continue;
      const int value = leading_int(word.substr(equals + 1));
      const bool few = value < (word.starts_with("hca_handle") ? kFewHandles : kFewObjects);
      if (few) limits += (limits.empty() ? "" : " ") + std::string(word);
    }
    if (limits.empty()) continue;
    check
        .warn(std::string(words[0]),
              fmt::format(
                  "{}: with more open devices (handles) or PDs, MRs, CQs and QPs (objects) verbs end in 'Resource "
                  "temporarily unavailable'",
                  limits),
              fmt::format("echo {} hca_handle=max hca_object=max | sudo tee {}", shell_word(words[0]),
                          shell_word(seen.file)))
        .saw(seen.file, std::string(line));
  }
}

/// Memory nodes that the cpuset keeps from this process, though a NIC or GPU is there.
void judge_memory_nodes(const Survey& survey, const Check& check) {
  const std::string status = survey.machine.read("/proc/self/status").text;
  std::string allowed;
  for (const std::string_view line : lines_of(status)) {
    if (const auto list = value_after(line, "Mems_allowed_list:")) allowed = *list;
  }
  if (allowed.empty()) return;
  const std::set<int> nodes = parse_cpu_list(allowed);
  for (const PciFunction* nic : survey.nics()) {
    const auto node = number_of(line_of(survey.machine, "/sys/bus/pci/devices/" + nic->address + "/numa_node"));
    if (!node || *node < 0 || nodes.contains(static_cast<int>(*node))) continue;
    check
        .warn(nic->address,
              fmt::format("on node {}, and the cpuset allows memory of node {} only: buffers are never near this NIC",
                          *node, allowed),
              "a cpuset with that node's memory (cpuset.mems, --cpuset-mems, --mem-bind, topologyManagerPolicy in the "
              "kubelet)")
        .saw("/proc/self/status", "Mems_allowed_list: " + allowed);
  }
}

}  // namespace

void check_cgroup(const Survey& survey, Findings& findings) {
  const Check check = cgroup_check(findings);
  const auto folders = cgroup_folders(survey.machine);
  if (folders.empty()) {
    check.skip("", "/proc/self/cgroup cannot be read");
    return;
  }
  judge_cpu(survey, folders, check);
  judge_memory(survey, folders, check);
  judge_rdma(survey, folders, check);
  judge_memory_nodes(survey, check);
  if (of_this_check(findings, "cgroup") == 0) check.ok("", "no limit on CPU time, memory or RDMA objects that matters");
}

}  // namespace gdrperf::doctor
