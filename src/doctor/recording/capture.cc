// Text that people paste: each reader looks for its own format in the whole
// text and says what it means.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "doctor/recording/capture_parse.h"
#include "doctor/checks/checks.h"
#include "doctor/holds.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"
#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

bool any_of_words(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view each) { return text.find(each) != std::string_view::npos; });
}

void read_lspci(std::string_view text, Findings& findings) {
  const auto functions = parse_lspci(text);
  bool any_acs = false;
  bool any_denied = false;
  for (const LspciFunction& function : functions) {
    any_acs = any_acs || function.acs;
    any_denied = any_denied || function.denied;
    if (function.is_nvswitch()) {
      Check(findings, "nvswitch", "NVSwitches carry NVLink, not the network")
          .ok(function.address, "an NVSwitch: no port of it is missing");
    }
    if (!function.link.known()) continue;
    const LinkFacts facts{function.address, function.link, function.link_max, {}, 0};
    if (function.is_nvidia_gpu()) judge_gpu_link(facts, findings);
    if (function.is_network()) judge_nic_link(facts, findings);
  }
  judge_pcie_settings(functions, findings);
  if (any_acs || any_denied) judge_pasted_acs(functions, text, findings);
}

void read_modules(std::string_view text, Findings& findings) {
  const auto modules = parse_modules(text);
  // Only a list that shows the GPU's driver can show that peermem is missing.
  if (!peer_memory(modules).module.empty() || find_module(modules, "nvidia") != nullptr) {
    judge_peer_memory(peer_memory(modules), findings);
  }
}

/// Output of a driver container, whose modules are built anew with its pod.
bool of_driver_container(std::string_view text) {
  return any_of_words(
      text, {"driver-daemonset", "peermem-ctr", "DRIVER_ARCH", "userspace-only install", "nvidia-driver-ctr"});
}

void read_log(std::string_view text, Findings& findings) {
  const PeerMemoryTrouble trouble = peer_memory_trouble(text);
  // On GB10 no module helps; that is another finding.
  if (trouble == PeerMemoryTrouble::kNone || any_of_words(text, {"NVIDIA GB10"})) return;
  judge_peer_memory_trouble(trouble, of_driver_container(text) ? ModulePlace::kDriverContainer : ModulePlace::kHost,
                            findings);
}

void read_memlock(std::string_view text, Findings& findings) {
  // Terminals and logs wrap these messages.
  const std::string line = one_line(text);
  const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
  if (has("max locked memory")) {
    std::optional<std::uint64_t> limit;
    constexpr std::string_view kCurrent = "(current: ";
    const std::size_t at = line.find(kCurrent);
    if (at != std::string::npos) {
      const double kbytes = leading_number(std::string_view(line).substr(at + kCurrent.size()));
      if (kbytes > 0) limit = static_cast<std::uint64_t>(kbytes) * 1024;
    }
    judge_memlock_message(limit, findings);
  } else if ((has("Couldn't allocate MR") || has("failed to create mr")) && !has("error=") &&
             !has("Bad address") && !has("cuMemAlloc")) {
    judge_memlock_message(std::nullopt, findings);
  }
}

void read_ports(std::string_view text, Findings& findings) {
  const Platform unknown;
  if (const auto ports = parse_ibv_devinfo(text); !ports.empty()) {
    check_port_states(ports, unknown, findings);
    check_mtu(ports, unknown, findings);
  }
  for (const auto& ports : {parse_ibdev2netdev(text), parse_ibstat(text), parse_rdma_link(text)}) {
    if (!ports.empty()) check_port_states(ports, unknown, findings);
  }
  if (const auto ports = parse_show_gids(text); !ports.empty()) check_gids(ports, unknown, findings);
}

/// ibv_devices with a heading and nothing below it.
void read_device_list(std::string_view text, Findings& findings) {
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const bool heading =
        lines[i].find("node GUID") != std::string_view::npos && trimmed(lines[i + 1]).starts_with("------");
    if (!heading) continue;
    const auto next = i + 2 < lines.size() ? words_of(lines[i + 2]) : std::vector<std::string_view>();
    if (next.size() == 2 && next[1].size() == 16) return;
    Check(findings, "rdma-device", "without an RDMA device nothing can be measured")
        .fail("",
              "ibv_devices lists none: the adapter's module is not loaded, its provider is not installed, or the "
              "container was not "
              "given it",
              "gdrperf doctor on that machine; lspci | grep -i -e mellanox -e infiniband; sudo modprobe mlx5_ib; "
              "ibverbs-providers (rdma-core)");
    return;
  }
}

void read_ethtool(std::string_view text, Findings& findings) {
  const auto driver = parse_ethtool_driver(text);
  if (!driver) return;
  Check(findings, "driver",
        "the PCI address ties the interface to the PCI tree; both hosts should run the same firmware")
      .ok(driver->bus_info,
          fmt::format("{} {}, firmware {}", driver->driver, driver->version, driver->firmware));
}

void read_settings(std::string_view text, Findings& findings) {
  if (text.find("Pause parameters for") != std::string_view::npos ||
      text.find("Priority trust state:") != std::string_view::npos ||
      text.find("prio-pfc 0:") != std::string_view::npos) {
    FlowControl flow = parse_pause(text);
    parse_qos(text, flow);
    judge_flow("", "NETDEV", flow, false, findings);
  }
  judge_pasted_filter(text, findings);
  const auto settings = parse_mlxconfig(text);
  if (settings.contains("MAX_ACC_OUT_READ") || settings.contains("ATS_ENABLED") ||
      settings.contains("INTERNAL_CPU_MODEL")) {
    judge_nic_config("", settings, true, findings);
  }
  if (const MemlockLimit limit = memlock_of(text); limit.soft_bytes) {
    judge_memlock_message(limit.soft_bytes, findings);
  }
  for (const std::string_view line : lines_of(text)) {
    // ulimit -a: "max locked memory       (kbytes, -l) 64"
    const auto words = words_of(line);
    if (words.size() < 4 || line.find("bytes, -l)") == std::string_view::npos ||
        line.find("locked memory") == std::string_view::npos) {
      continue;
    }
    if (const auto kbytes = number_of(words.back())) {
      judge_memlock_message(static_cast<std::uint64_t>(*kbytes) * 1024, findings);
    } else {
      Check(findings, "memlock", "memory that NICs use is locked").ok("", "unlimited");
    }
  }
}

/// "Driver Version: 470.42.01" of nvidia-smi.
void read_nvidia_smi(std::string_view text, Findings& findings) {
  constexpr std::string_view kVersion = "Driver Version";
  const std::size_t at = text.find(kVersion);
  if (at == std::string_view::npos) return;
  const std::string_view rest = text.substr(at + kVersion.size(), 40);
  const std::size_t digit = rest.find_first_of("0123456789");
  if (digit == std::string_view::npos) return;
  const std::string version(rest.substr(digit, rest.find_first_not_of("0123456789.", digit) - digit));
  const std::size_t before = findings.size();
  judge_driver_version(version, findings);
  if (findings.size() == before) {
    Check(findings, "nvidia-driver", "GPU memory is allocated and exported by this driver").ok("", version);
  }
}

/// Names of GPUs in a text: a vGPU that could not be registered is the cause itself.
void read_gpu_names(std::string_view text, Findings& findings) {
  constexpr std::string_view kName = "device name = [";
  const std::size_t at = text.find(kName);
  const bool refused =
      text.find("allocate MR") != std::string_view::npos || text.find("Bad address") != std::string_view::npos;
  if (at == std::string_view::npos || !refused) return;
  const std::string_view rest = text.substr(at + kName.size());
  const std::string name(rest.substr(0, std::min(rest.find(']'), std::size_t{80})));
  if (is_vgpu(name)) {
    Check(findings, "vgpu", "a vGPU is a share of a GPU: only some types give NICs access to their memory")
        .fail(name,
              "a vGPU whose memory was not registered: GPUDirect RDMA is supported on a subset of vGPU types only",
              "the list 'GPUDirect RDMA' in the documentation of this vGPU release; else a whole GPU passed through; "
              "until then stage "
              "through host memory");
  } else if (is_geforce(name)) {
    Check(findings, "gpu-registration", "registration of its memory ends in 'Bad address'")
        .fail(name, "a GeForce: it does no GPUDirect RDMA, whatever is loaded",
              "a data-centre or professional GPU; else stage through host memory");
  }
}

/// A table that begins with empty entries, as in pods: programs that take index 0 to 3 fail.
void read_gid_holes(std::string_view text, Findings& findings) {
  for (const Port& port : parse_show_gids(text)) {
    if (!port.gids || port.gids->empty() || port.gids->front().index <= 3) continue;
    const auto good = std::find_if(port.gids->begin(), port.gids->end(), [](const verbs::Gid& gid) {
      return gid.type == verbs::GidType::kRoceV2 && !gid.link_local;
    });
    if (good == port.gids->end()) continue;
    Check(findings, "gid-index", "programs use index 0 or 3 by default, and each pod has indexes of its own")
        .warn(port.subject(),
              fmt::format("the table begins with empty entries, the first in use is {}", port.gids->front().index),
              fmt::format("NCCL_IB_GID_INDEX={0} UCX_IB_GID_INDEX={0}; perftest: -x {0}  # in this pod; NCCL 2.26 and "
                          "later finds it itself",
                          good->index));
  }
}

/// The GID index that a program was told, against the table in the same text.
void read_gid_index(std::string_view text, Findings& findings) {
  for (const std::string_view name : {std::string_view("NCCL_IB_GID_INDEX="), std::string_view("UCX_IB_GID_INDEX="),
                                      std::string_view("NCCL_IB_GID_INDEX set by environment to ")}) {
    const std::size_t at = text.find(name);
    if (at == std::string_view::npos) continue;
    const auto digits = text.substr(at + name.size(), 4);
    if (digits.empty() || digits[0] < '0' || digits[0] > '9') continue;
    const int index = leading_int(digits);
    for (const Port& port : parse_show_gids(text)) {
      const Check check(findings, "gid-index", "programs use the GID index they are given, whatever it refers to");
      for (const verbs::Gid& gid : port.gids.value_or(std::vector<verbs::Gid>())) {
        const bool good = gid.type == verbs::GidType::kRoceV2 && !gid.link_local;
        if (gid.index != index || good) continue;
        check.warn(port.subject(),
                   fmt::format("index {} was asked for, and is {}{} there: completion error 12", index,
                               verbs::to_string(gid.type), gid.link_local ? ", link-local" : ""),
                   "the index of the RoCE v2 entry with an IPv4 address, in this same table");
      }
    }
    return;
  }
}

/// Of findings that say the same about the same thing, the first.
void drop_repeated(Findings& findings) {
  Findings kept;
  for (Finding& finding : findings) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Finding& each) {
      return each.check == finding.check && each.subject == finding.subject && each.found == finding.found;
    });
    if (!known) kept.push_back(std::move(finding));
  }
  findings = std::move(kept);
}

/// MTUs of ports in different captures: packets of one end are too large for the
/// other.
void compare_mtus(const std::vector<Capture>& captures, Findings& findings) {
  std::map<int, std::string> by_mtu;
  for (const Capture& capture : captures) {
    for (const Port& port : parse_ibv_devinfo(capture.text)) {
      if (port.active() && port.active_mtu > 0) {
        by_mtu.try_emplace(port.active_mtu, fmt::format("{} of {}", port.subject(), base_name(capture.name)));
      }
    }
  }
  if (captures.size() < 2 || by_mtu.size() < 2) return;
  std::vector<std::string> seen;
  for (const auto& [mtu, where] : by_mtu) seen.push_back(fmt::format("{} ({})", mtu, where));
  Check(findings, "mtu", "packets larger than the receiver's MTU are dropped: local access violation, retry exceeded")
      .fail("", fmt::format("the two hosts differ: active MTU {}", fmt::join(seen, " and ")),
            "sudo ip link set NETDEV mtu 9000  # the same on both hosts and on the switch");
}

Findings read_one(std::string_view text, const Words& words) {
  Findings findings;
  for (const auto reader : {read_ports, read_device_list, read_memlock, read_ethtool, read_lspci, read_modules,
                            read_log, read_settings, read_nvidia_smi, read_gpu_names, read_gid_holes, read_gid_index}) {
    reader(text, findings);
  }
  read_words(text, words, WordScope::kAll, "line", findings);
  drop_repeated(findings);
  return findings;
}

}  // namespace

std::vector<Finding> read_captures(const std::vector<Capture>& captures, const Words& words) {
  Findings findings;
  // What the hosts differ in is the cause of what each of them reports.
  compare_mtus(captures, findings);
  for (const Capture& capture : captures) {
    Findings own = read_one(capture.text, words);
    if (own.empty()) {
      Check(own, "capture", "only what is recognised can be judged")
          .skip(capture.name,
                "none of the outputs that are known (lspci -vvv, lsmod, dmesg, ethtool, show_gids, ibdev2netdev, "
                "ibv_devinfo, ibstat, rdma link, nvidia-smi, mlxconfig, mlnx_qos, ulimit -a) nor a message of NCCL, "
                "UCX, perftest or the kernel",
                "gdrperf doctor --record FILE.tar.gz  # on that machine: it knows what to look at");
    }
    for (Finding& finding : own) findings.push_back(std::move(finding));
  }
  drop_repeated(findings);
  tell_where_fixes_hold(findings);
  return findings;
}

std::vector<Finding> read_captures(const std::vector<Capture>& captures) {
  return read_captures(captures, known_words());
}

std::vector<Finding> read_capture(std::string_view text) {
  return read_captures({{"", std::string(text)}});
}

}  // namespace gdrperf::doctor
