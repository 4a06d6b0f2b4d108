// The host: limits, IOMMU, clock speed, page migration.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "checks.h"
#include "gdrperf/base/units.h"
#include "text.h"

namespace gdrperf::doctor {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
// A sweep up to 8 MiB registers two buffers of twice that, and queues.
constexpr std::uint64_t kEnoughForSweep = 64 * kMiB;

constexpr const char* kMemlock = "memlock";
constexpr const char* kMemlockWhy =
    "memory registered with a NIC is locked and counts against this limit; past it ibv_reg_mr and "
    "ibv_create_cq fail";
constexpr const char* kRaiseLimit =
    "printf '* - memlock unlimited\\n' | sudo tee /etc/security/limits.d/99-rdma.conf  # then log "
    "in "
    "again";
constexpr const char* kRaiseInContainer =
    "docker run --ulimit memlock=-1 ...  # or as your container runtime has it";

/// CAP_IPC_LOCK in the first user namespace: the RDMA core then asks for no limit.
bool may_lock_all(const Machine& machine) {
  constexpr int kCapIpcLock = 14;
  if (one_line(machine.read("/proc/self/uid_map").text) != "0 0 4294967295") return false;
  const std::string status = machine.read("/proc/self/status").text;
  for (const std::string_view line : lines_of(status)) {
    const auto bits = value_after(line, "CapEff:");
    if (bits) return (std::strtoull(std::string(*bits).c_str(), nullptr, 16) >> kCapIpcLock) & 1;
  }
  return false;
}

std::string show(std::optional<std::uint64_t> bytes) {
  return bytes ? format_size(*bytes) : "unlimited";
}

/// Words of the kernel's command line that concern the IOMMU.
std::string iommu_words(const Machine& machine) {
  std::vector<std::string> kept;
  const std::string line = line_of(machine, "/proc/cmdline");
  for (const std::string_view word : words_of(line)) {
    if (word.find("iommu") != std::string_view::npos) kept.emplace_back(word);
  }
  return fmt::format("{}", fmt::join(kept, " "));
}

bool is_cpu(std::string_view name) {
  return name.starts_with("cpu") && number_of(name.substr(3)).has_value();
}

}  // namespace

void check_memlock(const Survey& survey, Findings& findings) {
  const Check check(findings, kMemlock, kMemlockWhy);
  const MemlockLimit limit = survey.machine.memlock();
  const std::string found =
      fmt::format("{} (hard limit {})", show(limit.soft_bytes), show(limit.hard_bytes));
  if (!limit.soft_bytes) {
    check.ok("", "unlimited");
  } else if (may_lock_all(survey.machine)) {
    check.ok("", found + "; this user has CAP_IPC_LOCK and is not bound by it");
  } else if (!survey.any_kernel_device()) {
    check.skip("", found + "; no RDMA device of the kernel's locks memory here");
  } else {
    const std::string cure = !limit.hard_bytes  ? "ulimit -l unlimited"
                             : survey.container ? kRaiseInContainer
                                                : kRaiseLimit;
    check.add(*limit.soft_bytes < kEnoughForSweep ? Verdict::kFail : Verdict::kWarn, "", found,
              cure);
  }
}

void judge_memlock_message(std::optional<std::uint64_t> limit_bytes, Findings& findings) {
  const Check check(findings, kMemlock, kMemlockWhy);
  if (!limit_bytes) {
    check.fail("",
               "memory could not be registered: a low memlock limit says so in these words, and "
               "with GPU memory a missing nvidia_peermem or dma-buf",
               kRaiseLimit);
  } else {
    check.fail("",
               fmt::format("memory could not be registered under a limit of {}",
                           format_size(*limit_bytes)),
               fmt::format("{}; in a container: {}", kRaiseLimit, kRaiseInContainer));
  }
}

void check_iommu(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "iommu",
      "with address translation on, GPUDirect RDMA is slow or fails, and host transfers "
      "lose some");
  std::vector<const PciFunction*> functions = survey.nics();
  for (const PciFunction* gpu : survey.gpus()) functions.push_back(gpu);
  if (functions.empty()) {
    check.skip("", "no NIC or GPU on the PCI bus");
    return;
  }
  std::map<std::string, std::vector<std::string>> by_mode;
  for (const PciFunction* function : functions) {
    const std::string group =
        survey.machine.resolve("/sys/bus/pci/devices/" + function->address + "/iommu_group");
    const std::string mode = group.empty() ? "off" : line_of(survey.machine, group + "/type");
    by_mode[mode].push_back(function->address);
  }
  const std::string words = iommu_words(survey.machine);
  for (const auto& [mode, addresses] : by_mode) {
    const std::string subject =
        fmt::format("{}{}", addresses.front(),
                    addresses.size() > 1 ? fmt::format(" and {} more", addresses.size() - 1) : "");
    const std::string found = words.empty() ? "" : " (" + words + ")";
    if (mode == "off") {
      check.ok(subject, "no IOMMU in front" + found);
    } else if (mode == "identity") {
      check.ok(subject, "passthrough" + found);
    } else if (mode.empty()) {
      check.skip(subject, "there is an IOMMU; its mode cannot be read" + found);
    } else {
      check.warn(
          subject, fmt::format("translates addresses (mode {}){}", mode, found),
          R"(sudo sed -i 's/^GRUB_CMDLINE_LINUX="/&iommu=pt /' /etc/default/grub && sudo update-grub)"
          "  # then reboot");
    }
  }
}

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
               "sudo cpupower frequency-set -g performance");
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
  } else if (count < 2) {
    check.ok("", "on, with one NUMA node: nothing to move");
  } else {
    check.warn("", fmt::format("on, {} NUMA nodes", count),
               "sudo sysctl -w kernel.numa_balancing=0");
  }
}

}  // namespace gdrperf::doctor
