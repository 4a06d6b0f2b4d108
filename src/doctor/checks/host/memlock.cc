// The limit on locked memory, and where it comes from.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "gdrperf/base/units.h"
#include "doctor/text.h"

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
    "printf '* - memlock unlimited\\n' | sudo tee /etc/security/limits.d/99-rdma.conf  # then log in "
    "again";

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

/// Source of a process's limit: who started it, and what the files say.
struct Origin {
  std::string starter;     ///< "slurmd", "sshd", ...; "" when none of those is above
  Outside unit;            ///< "slurmd.service"; "" for a login session
  std::string unit_limit;  ///< LimitMEMLOCK of that unit, "" when not set
  std::string limits_line; ///< "/etc/security/limits.d/x.conf: * - memlock unlimited"
};

std::string parent_of(const Machine& machine, const std::string& pid) {
  const std::string status = machine.read("/proc/" + pid + "/status").text;
  for (const std::string_view line : lines_of(status)) {
    if (const auto parent = value_after(line, "PPid:")) return std::string(*parent);
  }
  return {};
}

/// The nearest of those above this process that hand limits down.
std::string starter_of(const Machine& machine) {
  std::string pid = parent_of(machine, "self");
  for (int depth = 0; depth < 32 && !pid.empty() && pid != "0"; ++depth) {
    const std::string name = line_of(machine, "/proc/" + pid + "/comm");
    for (const char* known : {"slurmstepd", "slurmd", "sshd", "orted", "prted", "hydra_pmi_proxy",
                              "pbs_mom", "cron", "systemd", "kubelet", "jupyter", "ray"}) {
      if (name.starts_with(known)) return known;
    }
    pid = parent_of(machine, pid);
  }
  return {};
}

/// "slurmd.service" of "0::/system.slice/slurmd.service/..."
std::string unit_of(const Machine& machine) {
  const std::string cgroup = machine.read("/proc/self/cgroup").text;
  const std::size_t end = cgroup.find(".service");
  if (end == std::string::npos) return {};
  const std::size_t begin = cgroup.rfind('/', end) + 1;
  const std::string unit = cgroup.substr(begin, end + 8 - begin);
  return unit.starts_with("user@") ? "" : unit;
}

std::string unit_limit(const Machine& machine, const std::string& unit) {
  if (unit.empty()) return {};
  std::string limit;
  const auto take = [&](const std::string& path) {
    const std::string text = machine.read(path).text;
    for (const std::string_view line : lines_of(text)) {
      if (const auto value = value_after(line, "LimitMEMLOCK=")) limit = *value;
    }
  };
  for (const char* folder : {"/usr/lib/systemd/system/", "/lib/systemd/system/", "/etc/systemd/system/"}) {
    take(folder + unit);
  }
  const std::string extra = "/etc/systemd/system/" + unit + ".d";
  for (const std::string& name : machine.list(extra)) take(extra + "/" + name);
  return limit;
}

std::string limits_line(const Machine& machine) {
  std::vector<std::string> files = {"/etc/security/limits.conf"};
  for (const std::string& name : machine.list("/etc/security/limits.d")) {
    files.push_back("/etc/security/limits.d/" + name);
  }
  std::string found;
  for (const std::string& path : files) {
    int number = 0;
    const std::string text = machine.read(path).text;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      const auto words = words_of(line);
      if (words.size() >= 4 && !words[0].starts_with('#') && words[2] == "memlock") {
        found = fmt::format("{}:{}: {}", path, number, one_line(line));
      }
    }
  }
  return found;
}

Origin origin_of(const Machine& machine) {
  Origin origin{starter_of(machine), unit_of(machine), {}, limits_line(machine)};
  origin.unit_limit = unit_limit(machine, origin.unit.raw());
  return origin;
}

bool raised(const std::string& limits) {
  return limits.find("unlimited") != std::string::npos || limits.find("infinity") != std::string::npos;
}

std::string raise_for_unit(const Outside& unit) {
  return fmt::format(
      "printf '[Service]\\nLimitMEMLOCK=infinity\\n' | sudo SYSTEMD_EDITOR='tee' systemctl "
      "edit {0} && sudo systemctl restart {0}",
      shell_word(unit));
}

/// The cure that reaches where the limit comes from.
std::string cure_for(const Origin& origin, const Survey& survey) {
  if (survey.container) return container_memlock(survey.platform);
  if (origin.starter.starts_with("slurm")) {
    return raise_for_unit("slurmd.service") +
           "  # and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf";
  }
  if (!origin.unit.empty() && origin.unit != "ssh.service" && origin.unit != "sshd.service") {
    return raise_for_unit(origin.unit);
  }
  if (raised(origin.limits_line)) {
    return "log in again: the file has unlimited, but what runs was started before it, or not "
           "through PAM ('UsePAM yes' in sshd_config, then sudo systemctl restart ssh; daemons that "
           "start ranks: restart them, or reboot)";
  }
  return kRaiseLimit;
}

std::string describe(const Origin& origin) {
  std::string text;
  if (!origin.unit.empty()) {
    text += fmt::format("; of {}{}", printable(origin.unit),
                        origin.unit_limit.empty() ? " (no LimitMEMLOCK)"
                                                  : " (LimitMEMLOCK=" + origin.unit_limit + ")");
  } else if (!origin.starter.empty()) {
    text += fmt::format("; handed down by {}", origin.starter);
  }
  if (raised(origin.limits_line)) {
    text += fmt::format("; {} is not in force for this process", origin.limits_line);
  }
  return text;
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
    const Origin origin = origin_of(survey.machine);
    check
        .add(*limit.soft_bytes < kEnoughForSweep ? Verdict::kFail : Verdict::kWarn, "",
             found + describe(origin),
             limit.hard_bytes ? cure_for(origin, survey) : "ulimit -l unlimited")
        .for_good(limit.hard_bytes ? "" : kRaiseLimit)
        .saw("/proc/self/limits", found)
        .saw("limits", origin.limits_line);
  }
}

void judge_memlock_message(std::optional<std::uint64_t> limit_bytes, Findings& findings) {
  const Check check(findings, kMemlock, kMemlockWhy);
  Platform docker;
  docker.runtime = Runtime::kDocker;
  if (!limit_bytes) {
    check.fail("",
               "memory could not be registered: a low memlock limit gives this message, and "
               "with GPU memory a missing nvidia_peermem or dma-buf",
               fmt::format("ulimit -l  # not 'unlimited'? {}; in a container: {}", kRaiseLimit,
                           container_memlock(docker)));
  } else {
    check.fail("",
               fmt::format("memory could not be registered under a limit of {}",
                           format_size(*limit_bytes)),
               fmt::format("{}; in a container: {}", kRaiseLimit, container_memlock(docker)));
  }
}

MemlockLimit memlock_of(std::string_view limits) {
  MemlockLimit limit;
  for (const std::string_view line : lines_of(limits)) {
    const auto value = value_after(line, "Max locked memory");
    if (!value) continue;
    const auto words = words_of(*value);
    const auto bytes = [](std::string_view word) -> std::optional<std::uint64_t> {
      const auto number = number_of(word);
      if (!number) return std::nullopt;
      return static_cast<std::uint64_t>(*number);
    };
    if (words.size() >= 2) limit = {bytes(words[0]), bytes(words[1])};
  }
  return limit;
}

}  // namespace gdrperf::doctor
