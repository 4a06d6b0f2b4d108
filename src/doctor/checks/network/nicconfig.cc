// The NIC's stored configuration (mlxconfig), and the CPUs that need relaxed
// ordering from it.

#include <fmt/format.h>

#include <map>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

// 0 is automatic. AMD's guides for its GPUs name 44 and 128.
constexpr int kFewReads = 44;
constexpr int kEnoughReads = 128;

/// Intel Sapphire Rapids and Emerald Rapids (family 6, models 143 and 207).
bool orders_writes_strictly(const Platform& platform) {
  return platform.cpu_vendor == "GenuineIntel" && platform.cpu_family == 6 &&
         (platform.cpu_model == 143 || platform.cpu_model == 207);
}

/// The variable that keeps a library from asking for relaxed ordering; "" when none does.
std::string turned_off_by(const Platform& platform) {
  for (const char* name : {"UCX_IB_PCI_RELAXED_ORDERING", "NCCL_IB_PCI_RELAXED_ORDERING"}) {
    const auto it = platform.environment.find(name);
    if (it != platform.environment.end() && (it->second.starts_with('n') || it->second == "0")) {
      return it->first + "=" + it->second;
    }
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> parse_mlxconfig(std::string_view text) {
  std::map<std::string, std::string> settings;
  for (const std::string_view line : lines_of(text)) {
    // "        MAX_ACC_OUT_READ                            0", with -e three values,
    // of which the last is the next boot's
    const auto words = words_of(line);
    if (words.size() < 2 || words.size() > 5) continue;
    std::size_t first = words[0] == "*" ? 1 : 0;
    if (words.size() < first + 2) continue;
    const bool name =
        words[first].size() > 3 &&
        words[first].find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos &&
        words[first].find('_') != std::string_view::npos;
    if (name) settings[std::string(words[first])] = words.back();
  }
  return settings;
}

void judge_nic_config(const std::string& subject, const std::map<std::string, std::string>& settings, bool gpu,
                      Findings& findings) {
  const Check check(findings, "nic-config",
                    "firmware settings decide how many reads a NIC keeps under way, and how it orders writes");
  const auto value = [&](const char* name) -> std::optional<std::string> {
    const auto it = settings.find(name);
    if (it == settings.end()) return std::nullopt;
    return it->second;
  };
  const std::size_t before = findings.size();
  const auto reads = value("MAX_ACC_OUT_READ");
  if (reads && gpu && leading_int(*reads) > 0 && leading_int(*reads) < kFewReads) {
    check
        .warn(subject,
              fmt::format("MAX_ACC_OUT_READ={}: too few outstanding reads, the NIC reads slowly from GPUs", *reads),
              fmt::format("sudo mlxconfig -d {} set ADVANCED_PCI_SETTINGS=1 MAX_ACC_OUT_READ={}  # on the host; then "
                          "mlxfwreset or "
                          "power cycle; it stays after a reboot",
                          subject.empty() ? "DEVICE" : subject, kEnoughReads))
        .undo(fmt::format("sudo mlxconfig -d {} set MAX_ACC_OUT_READ={}", subject, shell_word(*reads)))
        .saw("mlxconfig query", "MAX_ACC_OUT_READ " + *reads);
  }
  if (const auto ats = value("ATS_ENABLED"); ats && ats->starts_with("True")) {
    check.ok(subject, "ATS_ENABLED: for virtual machines");
  }
  const auto cpu = value("INTERNAL_CPU_MODEL");
  const auto engine = value("INTERNAL_CPU_OFFLOAD_ENGINE");
  if (cpu && cpu->starts_with("EMBEDDED_CPU") && !(engine && engine->starts_with("DISABLED"))) {
    check.ok(subject,
             "a BlueField in DPU mode: its Arm cores own the port, and traffic of the host goes through their switch "
             "rules (OVS); "
             "port, GID and MTU are set there. NIC mode: INTERNAL_CPU_OFFLOAD_ENGINE=1, then a power cycle");
  }
  if (findings.size() == before) check.ok(subject, "nothing against it");
}

void check_nic_config(const Survey& survey, Findings& findings) {
  const Check check(findings, "nic-config",
                    "firmware settings decide how many reads a NIC keeps under way, and how it orders writes");
  const bool gpu = !survey.gpus().empty() || !survey.amd_gpus().empty();
  for (const PciFunction* nic : survey.nics()) {
    const ProgramResult query = survey.machine.run({"mlxconfig", "-d", nic->address, "query"});
    if (!query.ok()) continue;
    judge_nic_config(nic->address, parse_mlxconfig(query.output), gpu, findings);
  }
  if (of_this_check(findings, "nic-config") == 0) {
    check.skip("", "mlxconfig is not there, or needs root", "sudo gdrperf doctor  # with mstflint or MFT installed");
  }
}

void check_write_ordering(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "relaxed-ordering",
      "without relaxed ordering, writes to memory wait for each other: on many servers half of the rate or less");
  if (!survey.any_hardware() || !orders_writes_strictly(survey.platform)) return;
  std::string stored;
  for (const PciFunction* nic : survey.nics()) {
    const ProgramResult query = survey.machine.run({"mlxconfig", "-d", nic->address, "query"});
    const auto settings = parse_mlxconfig(query.ok() ? query.output : "");
    const auto it = settings.find("PCI_WR_ORDERING");
    if (it != settings.end()) stored = it->second;
  }
  if (stored.find("force_relax") != std::string::npos) {
    check.ok("", "forced by the NIC (PCI_WR_ORDERING force_relax)");
  } else if (const std::string off = turned_off_by(survey.platform); !off.empty()) {
    check
        .warn("",
              fmt::format(
                  "{} keeps it off, and this CPU (Sapphire or Emerald Rapids) then takes about 16 instead of more than "
                  "40 GB/s",
                  off),
              fmt::format("unset {}  # where the job is started, for every job", off.substr(0, off.find('='))))
        .saw("environment", off);
  } else {
    check.ok("",
             "asked for by each program with IBV_ACCESS_RELAXED_ORDERING: NCCL, perftest and gdrperf do; UCX where it "
             "is slow: "
             "UCX_IB_PCI_RELAXED_ORDERING=y (this CPU, Sapphire or Emerald Rapids, is slow without)");
  }
}

void check_port_type(const Survey& survey, Findings& findings) {
  const Check check(findings, "port-type",
                    "a port set to InfiniBand finds no link on an Ethernet switch, and the other way round");
  std::map<std::string, std::string> of_model;
  for (const RdmaDevice& device : survey.rdma) {
    const PciFunction* nic = survey.function(device.pci_address);
    if (nic == nullptr || nic->vendor != "0x15b3") continue;
    const ProgramResult query = survey.machine.run({"mlxconfig", "-d", nic->address, "query"});
    const auto settings = parse_mlxconfig(query.ok() ? query.output : "");
    for (const Port& port : device.ports) {
      if (port.link_layer.empty()) continue;
      const std::string other = port.link_layer == "Ethernet" ? "InfiniBand" : "Ethernet";
      const char* wanted = port.link_layer == "Ethernet" ? "1" : "2";
      const std::string key = fmt::format("LINK_TYPE_P{}", nic->address.ends_with(".1") ? 2 : 1);
      const bool both = settings.contains(key);
      const auto [it, first] = of_model.try_emplace(nic->device, port.link_layer);
      const bool no_link = !port.active() && (port.phys_state == "Polling" || port.phys_state == "Disabled");
      if (no_link && (both || it->second != port.link_layer)) {
        check
            .warn(port.subject(),
                  fmt::format("set to {}, and without a link: is the switch {}?", port.link_layer, other),
                  fmt::format("sudo mlxconfig -d {} set {}={}  # {}; then sudo mlxfwreset -d {} reset, or reboot",
                              nic->address, key, wanted, other, nic->address))
            .undo(fmt::format("sudo mlxconfig -d {} set {}={}", nic->address, key,
                              port.link_layer == "Ethernet" ? "2" : "1"))
            .saw("link_layer, phys_state", port.link_layer + ", " + port.phys_state);
      } else {
        check.ok(port.subject(),
                 first || it->second == port.link_layer
                     ? port.link_layer
                     : fmt::format("{}, where another adapter of the model is set to {}", port.link_layer, it->second));
      }
    }
  }
  if (of_this_check(findings, "port-type") == 0) check.skip("", "no ConnectX port");
}

}  // namespace gdrperf::doctor
