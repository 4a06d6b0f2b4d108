// The CPUs that serve a NIC's interrupts.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

// Below that a NIC has hardly been used, and where its interrupts went says nothing.
constexpr std::uint64_t kEnoughInterrupts = 10'000;

struct Served {
  std::uint64_t near = 0;
  std::uint64_t far = 0;
};

/// Interrupts of the vectors that name `address` ("mlx5_comp3@pci:0000:3b:00.0") or an interface of it, by CPU.
Served served_for(std::string_view interrupts, const std::vector<std::string>& names, const std::set<int>& near) {
  Served served;
  std::vector<int> columns;
  for (const std::string_view line : lines_of(interrupts)) {
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (columns.empty()) {  // "CPU0 CPU1 ..."
      for (const std::string_view word : words)
        columns.push_back(leading_int(word.substr(std::min<std::size_t>(3, word.size()))));
      continue;
    }
    const bool ours = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return words.back().find(name) != std::string_view::npos;
    });
    if (!ours) continue;
    for (std::size_t i = 0; i < columns.size() && i + 1 < words.size(); ++i) {
      const auto count = number_of(words[i + 1]);
      if (!count || *count < 0) break;
      (near.contains(columns[i]) ? served.near : served.far) += static_cast<std::uint64_t>(*count);
    }
  }
  return served;
}

bool irqbalance_runs(const Machine& machine) {
  const auto run = machine.list("/run");
  return std::any_of(run.begin(), run.end(), [](const auto& name) { return name.starts_with("irqbalance"); });
}

}  // namespace

void check_irqbalance(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "irqbalance",
      "interrupts that CPUs of another node serve, or that move between CPUs, cost latency with --events and in TCP");
  const bool runs = irqbalance_runs(survey.machine);
  const std::string interrupts = survey.machine.read("/proc/interrupts").text;
  for (const PciFunction* nic : survey.nics()) {
    const std::string folder = "/sys/bus/pci/devices/" + nic->address;
    const auto node = number_of(line_of(survey.machine, folder + "/numa_node"));
    if (!node || *node < 0) continue;
    const auto cpus =
        parse_cpu_list(line_of(survey.machine, fmt::format("/sys/devices/system/node/node{}/cpulist", *node)));
    std::vector<std::string> names = survey.machine.list(folder + "/net");
    names.push_back(nic->address);
    const Served served = served_for(interrupts, names, cpus);
    const std::uint64_t all = served.near + served.far;
    if (all < kEnoughInterrupts || cpus.empty()) continue;
    const auto percent = 100 * served.far / all;
    if (percent > 50) {
      const std::string netdev = names.size() > 1 ? names.front() : "NETDEV";
      check
          .warn(nic->address,
                fmt::format("{} % of its interrupts were served by CPUs of another node than {}{}", percent, *node,
                            runs ? "; irqbalance runs and moves them" : ""),
                fmt::format("{}sudo set_irq_affinity_bynode.sh {} {}  # of mlnx-tools",
                            runs ? "sudo systemctl stop irqbalance; " : "", *node, netdev))
          .for_good(runs ? "sudo systemctl disable --now irqbalance, and the same script from a unit at boot"
                         : "the same script from a unit at boot")
          .undo("sudo systemctl start irqbalance")
          .saw("/proc/interrupts", fmt::format("{} near, {} far", served.near, served.far));
    } else {
      check.ok(nic->address, fmt::format("{} % of its interrupts were served by CPUs of its own node{}", 100 - percent,
                                         runs ? "; irqbalance runs" : ""));
    }
  }
  if (of_this_check(findings, "irqbalance") > 0) return;
  if (!survey.any_hardware()) {
    check.skip("", "no NIC");
  } else {
    check.ok("", runs ? "irqbalance runs; too few interrupts to see where they go" : "irqbalance does not run");
  }
}

}  // namespace gdrperf::doctor
