// Places of NIC, GPU and this shell, and what else of the host a run meets.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "gdrperf/base/units.h"
#include "doctor/text.h"
#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

std::set<int> allowed_cpus(const Machine& machine) {
  const std::string status = machine.read("/proc/self/status").text;
  for (const std::string_view line : lines_of(status)) {
    if (const auto list = value_after(line, "Cpus_allowed_list:")) return parse_cpu_list(*list);
  }
  return {};
}

int node_of(const Machine& machine, const std::string& address) {
  const auto node = number_of(line_of(machine, "/sys/bus/pci/devices/" + address + "/numa_node"));
  return node ? static_cast<int>(*node) : -1;
}

void judge_shell(const Survey& survey, const PciFunction& nic, const std::set<int>& allowed, const Check& check) {
  const int node = node_of(survey.machine, nic.address);
  if (node < 0) {
    check.skip(nic.address, "the firmware does not report its NUMA node");
    return;
  }
  const auto cpus =
      parse_cpu_list(line_of(survey.machine, fmt::format("/sys/devices/system/node/node{}/cpulist", node)));
  const bool near = std::any_of(cpus.begin(), cpus.end(), [&](int cpu) { return allowed.contains(cpu); });
  if (!near && !cpus.empty() && !allowed.empty()) {
    check
        .warn(
            nic.address, fmt::format("on node {}, whose CPUs this process may not use", node),
            fmt::format("numactl --cpunodebind={0} --membind={0} ...  # or a wider cpuset (taskset, slurm, pod)", node))
        .saw("/proc/self/status", "Cpus_allowed_list without those of the node");
  } else {
    check.ok(nic.address, fmt::format("node {}", node));
  }
}

struct MaxLatency {
  std::string name;
  int microseconds = 0;
};

/// The deepest idle state that is not turned off.
MaxLatency deepest_idle(const Machine& machine) {
  MaxLatency deepest;
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpuidle/";
  for (const std::string& state : machine.list(folder)) {
    if (leading_int(line_of(machine, folder + state + "/disable")) != 0) continue;
    const int latency = leading_int(line_of(machine, folder + state + "/latency"));
    if (latency > deepest.microseconds) deepest = {line_of(machine, folder + state + "/name"), latency};
  }
  return deepest;
}

}  // namespace

void check_numa(const Survey& survey, Findings& findings) {
  const Check check(findings, "numa", "threads and memory best lie on the node of GPU and NIC");
  const auto allowed = allowed_cpus(survey.machine);
  const auto nics = survey.nics();
  if (nics.empty()) check.skip("", "no RDMA device on the PCI bus");
  for (const PciFunction* nic : nics) judge_shell(survey, *nic, allowed, check);
  if (allowed.size() == 1) {
    check.warn("", "this process may use one CPU only",
               "a wider cpuset: taskset -c 0-7, or more CPUs for the job or pod");
  }
}

void check_idle_states(const Survey& survey, Findings& findings) {
  const Check check(findings, "idle-states",
                    "a CPU that sleeps deeply takes that long to wake up: latency with events, and its scatter");
  const MaxLatency deepest = deepest_idle(survey.machine);
  if (deepest.name.empty()) {
    check.skip("", "the kernel does not control them here");
  } else if (deepest.microseconds > 50) {
    check
        .warn("", fmt::format("{} takes {} us to leave", deepest.name, deepest.microseconds),
              "sudo cpupower idle-set -D 10")
        .for_good("sudo tuned-adm profile latency-performance")
        .undo("sudo cpupower idle-set -E")
        .saw("/sys/devices/system/cpu/cpu0/cpuidle", deepest.name);
  } else {
    check.ok("", fmt::format("{} at most, {} us", deepest.name, deepest.microseconds));
  }
}

void check_open_files(const Survey& survey, Findings& findings) {
  const Check check(findings, "open-files", "each connection takes descriptors: hundreds of ranks need thousands");
  const std::string limits = survey.machine.read("/proc/self/limits").text;
  for (const std::string_view line : lines_of(limits)) {
    const auto value = value_after(line, "Max open files");
    if (!value) continue;
    const auto words = words_of(*value);
    if (words.empty()) continue;
    if (leading_int(words[0]) < 1024 && words[0] != "unlimited") {
      check.warn("", fmt::format("{} (ulimit -n)", words[0]), "ulimit -n 65536")
          .for_good("printf '* - nofile 65536\\n' | sudo tee /etc/security/limits.d/99-nofile.conf");
    } else {
      check.ok("", fmt::format("{} (ulimit -n)", words[0]));
    }
    return;
  }
  check.skip("", "the limit cannot be read");
}

void check_kernel_log(const Survey& survey, const Settings& settings, Findings& findings) {
  const Check check(findings, "kernel-log", "the kernel names faults of devices and modules that nothing else shows");
  const ProgramResult log = survey.machine.run({"dmesg"});
  if (!log.ok()) {
    check.skip("", log.end == ProgramResult::End::kNotInstalled ? "no dmesg to read" : "this user may not read it",
               "sudo dmesg | gdrperf doctor --read -");
    return;
  }
  const std::size_t before = findings.size();
  read_words(log.output, settings.words == nullptr ? known_words() : *settings.words, WordScope::kKernelLog, "dmesg",
             findings);
  const bool own = std::any_of(findings.begin() + static_cast<std::ptrdiff_t>(before), findings.end(),
                               [](const Finding& finding) { return finding.check == "kernel-log"; });
  if (!own) check.ok("", "nothing about these devices that is known to matter");
}

}  // namespace gdrperf::doctor
