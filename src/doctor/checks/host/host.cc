// The host: clock speed, page migration, places, limits.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

bool is_cpu(std::string_view name) {
  return name.starts_with("cpu") && number_of(name.substr(3)).has_value();
}

}  // namespace

void check_governor(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "governor",
      "a CPU that clocks down between messages adds microseconds and scatter to latency");
  const std::string folder = "/sys/devices/system/cpu/";
  std::set<std::string> governors;
  for (const std::string& name : survey.machine.list(folder)) {
    if (!is_cpu(name)) continue;
    const std::string governor =
        line_of(survey.machine, folder + name + "/cpufreq/scaling_governor");
    if (!governor.empty()) governors.insert(governor);
  }
  if (governors.empty()) {
    check.skip("", "the kernel does not control the clock here (virtual machine, or firmware)");
  } else if (governors == std::set<std::string>{"performance"}) {
    check.ok("", "performance");
  } else {
    check.warn("", fmt::format("{}", fmt::join(governors, ", ")),
               "sudo cpupower frequency-set -g performance")
        .for_good(
            "sudo tuned-adm profile latency-performance  # or GOVERNOR=performance in "
            "/etc/default/cpufrequtils")
        .undo(fmt::format("sudo cpupower frequency-set -g {}", shell_word(*governors.rbegin())));
  }
}

void check_numa_balancing(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "numa-balancing",
      "the kernel unmaps and migrates pages in the middle of a run: spikes of latency");
  const auto mode = number_of(line_of(survey.machine, "/proc/sys/kernel/numa_balancing"));
  const auto nodes = survey.machine.list("/sys/devices/system/node");
  const auto count = std::count_if(nodes.begin(), nodes.end(), [](const std::string& name) {
    return name.starts_with("node") && number_of(name.substr(4));
  });
  if (!mode) {
    check.skip("", "the kernel has none");
  } else if (*mode == 0) {
    check.ok("", "off");
  } else if (count < 2 && !(survey.platform.virtual_machine && !survey.amd_gpus().empty())) {
    check.ok("", "on, with one NUMA node: nothing to move");
  } else {
    const Cure cure = set_sysctl("kernel.numa_balancing", "0", "1");
    const bool rccl = survey.platform.hypervisor.find("Microsoft") != std::string::npos &&
                      !survey.amd_gpus().empty();
    check.warn("", fmt::format("on, {} NUMA nodes{}", count,
                               rccl ? "; on Hyper-V RCCL turns GPUDirect RDMA off for it without a message"
                                    : ""),
               cure.now)
        .for_good(cure.for_good)
        .undo(cure.undo)
        .saw("/proc/sys/kernel/numa_balancing", "1");
  }
}

void check_huge_pages(const Survey& survey, Findings& findings) {
  const Check check(findings, "hugepages",
                    "large registrations in pages of 2 MiB cost the NIC fewer translations (--buffer hugepage)");
  const std::string memory = survey.machine.read("/proc/meminfo").text;
  std::optional<int> all;
  int free = 0;
  for (const std::string_view line : lines_of(memory)) {
    if (const auto value = value_after(line, "HugePages_Total:")) all = leading_int(*value);
    if (const auto value = value_after(line, "HugePages_Free:")) free = leading_int(*value);
  }
  const std::string transparent = line_of(survey.machine, "/sys/kernel/mm/transparent_hugepage/enabled");
  const Cure reserve =
      set_sysctl("vm.nr_hugepages", std::to_string(all.value_or(0) + 512), std::to_string(all.value_or(0)));
  if (!all) {
    check.skip("", "the kernel has none");
  } else if (*all > 0 && free == 0) {
    check.warn("", fmt::format("all {} that are reserved are in use: --buffer hugepage finds none", *all), reserve.now)
        .for_good(reserve.for_good)
        .undo(reserve.undo)
        .saw("/proc/meminfo", fmt::format("HugePages_Total {}, HugePages_Free 0", *all));
  } else if (*all == 0 && transparent.find("[never]") != std::string::npos) {
    check.warn("", "none reserved, and transparent ones are off: all registrations are of pages of 4 KiB",
               "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
        .for_good("transparent_hugepage=madvise on the kernel's command line")
        .undo("echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
        .saw("/sys/kernel/mm/transparent_hugepage/enabled", transparent);
  } else {
    check.ok("", *all > 0 ? fmt::format("{} of {} free", free, *all)
                          : "none reserved, which --buffer hugepage alone needs: sudo sysctl -w vm.nr_hugepages=512");
  }
}

}  // namespace gdrperf::doctor
