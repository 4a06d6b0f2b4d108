// Treatment of peer-to-peer traffic by bridges between a GPU and its NIC (ACS), as
// the machine needs it: cleared on PCIe switches of bare metal, set where Data
// Direct, Grace, Vera or virtual machines need it.
//
// Masks and device numbers are those that rdma-core's rdma_topo (kernel-boot/)
// checks for: bit 6 DirectTrans, 4 UpstreamFwd, 3 CmpltRedir, 2 ReqRedir, 0
// SrcValid; "x" is left alone.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

Check acs_check(Findings& findings) {
  return {findings, "acs",
          "ACS redirect sends peer-to-peer traffic between GPU and NIC up to the root complex "
          "instead of straight across the switch"};
}

constexpr std::array kGraceRootPorts = {"0x22b1", "0x22b2", "0x22b8"};
constexpr std::array kVeraRootPorts = {"0x2f95", "0x2f96"};

bool is_one_of(const PciFunction* function, std::span<const char* const> devices) {
  return function != nullptr && function->vendor == "0x10de" &&
         std::find(devices.begin(), devices.end(), function->device) != devices.end();
}

bool on_nvidia_root(const Survey& survey, const PciFunction& function) {
  if (function.bridges.empty()) return false;
  const PciFunction* root = survey.function(function.bridges.front());
  return is_one_of(root, kGraceRootPorts) || is_one_of(root, kVeraRootPorts);
}

/// Number of bridges, from the root port down, that both hang below.
std::size_t shared(const PciFunction& one, const PciFunction& other) {
  const auto [a, b] = std::mismatch(one.bridges.begin(), one.bridges.end(), other.bridges.begin(),
                                    other.bridges.end());
  return static_cast<std::size_t>(a - one.bridges.begin());
}

/// Bridges that traffic between the two passes below the one they share; none
/// where it goes through the root complex anyway.
std::set<std::string> bridges_between(const PciFunction& gpu, const PciFunction& nic) {
  const std::size_t common = shared(gpu, nic);
  if (common == 0) return {};
  std::set<std::string> between(gpu.bridges.begin() + static_cast<std::ptrdiff_t>(common),
                                gpu.bridges.end());
  between.insert(nic.bridges.begin() + static_cast<std::ptrdiff_t>(common), nic.bridges.end());
  return between;
}

using AcsByAddress = std::map<std::string, LspciFunction>;

AcsByAddress by_address(std::vector<LspciFunction> functions) {
  AcsByAddress result;
  for (LspciFunction& function : functions) {
    result.insert_or_assign(full_pci_address(function.address), std::move(function));
  }
  return result;
}

std::string mask_of(const AcsControl& acs) {
  return fmt::format("ReqRedir{} CmpltRedir{} SrcValid{}", acs.request_redirect ? '+' : '-',
                     acs.completion_redirect ? '+' : '-', acs.source_validation ? '+' : '-');
}

/// The bridge right below the shared one on the way to `function`.
std::string port_towards(const PciFunction& function, std::size_t common) {
  return common < function.bridges.size() ? function.bridges[common] : std::string();
}

/// One bridge of a Data Direct complex against its mask.
void judge_mask(const AcsByAddress& acs, const std::string& bridge, const char* mask, bool request,
                bool completion, const Platform& platform, const Check& check) {
  const auto it = acs.find(bridge);
  if (it == acs.end() || it->second.denied || !it->second.acs) {
    check.skip(bridge, fmt::format("Data Direct: redirect is required here (ACS {}); needs root to see",
                                   mask),
               "sudo rdma_topo check");
    return;
  }
  const AcsControl& now = *it->second.acs;
  if (now.request_redirect == request && now.completion_redirect == completion) {
    check.ok(bridge, fmt::format("Data Direct: redirect as required (ACS {})", mask));
    return;
  }
  check.fail(bridge, fmt::format("Data Direct: ACS must be {} here, redirect is required; it is {}", mask,
                                 mask_of(now)),
             fmt::format("boot with pci=config_acs={}@{}; never clear ACS here", mask, bridge))
      .for_good("sudo rdma_topo write-grub-acs; " + after_grub_defaults(platform))
      .saw("lspci -s " + bridge, mask_of(now));
}

/// GPUs that share a switch with a Data Direct function. True when there is one.
bool judge_data_direct(const Survey& survey, const AcsByAddress& acs, const Check& check) {
  bool any = false;
  const Platform& platform = survey.platform;
  for (const PciFunction* gpu : survey.gpus()) {
    for (const PciFunction* dma : survey.data_direct()) {
      const std::size_t common = shared(*gpu, *dma);
      if (common == 0) continue;
      any = true;
      judge_mask(acs, port_towards(*dma, common), "xx110x1", false, true, platform, check);
      judge_mask(acs, port_towards(*gpu, common), "xx101x1", true, false, platform, check);
      const std::string one = iommu_group(survey.machine, gpu->address);
      const std::string other = iommu_group(survey.machine, dma->address);
      if (!one.empty() && !other.empty() && one != other) {
        check.fail(gpu->address,
                   fmt::format("IOMMU groups of GPU ({}) and Data Direct function {} ({}) differ",
                               base_name(one), dma->address, base_name(other)),
                   fmt::format("boot with pci=config_acs=xx111x0@{} for their root port: one group for "
                               "all below it; else the driver needs NVreg_GrdmaPciTopoCheckOverride=1",
                               gpu->bridges.front()))
            .for_good("sudo rdma_topo write-grub-acs; " + after_grub_defaults(platform));
      }
    }
  }
  return any;
}

/// Each GPU and NIC on a root port of Grace or Vera of its own: the kernel's
/// default isolation stays.
bool judge_nvidia_roots(const Survey& survey, const Check& check) {
  std::map<std::string, std::string> group_users;
  bool any = false;
  for (const PciFunction* function : survey.nics()) {
    if (!on_nvidia_root(survey, *function)) continue;
    any = true;
    const std::string group = iommu_group(survey.machine, function->address);
    for (const PciFunction* gpu : survey.gpus()) {
      const std::string theirs = iommu_group(survey.machine, gpu->address);
      if (group.empty() || group != theirs || shared(*gpu, *function) != 0) continue;
      check.fail(function->address,
                 fmt::format("shares IOMMU group {} with GPU {}: on Grace and Vera each has its own",
                             base_name(group), gpu->address),
                 "boot with the kernel's default ACS (no pci=config_acs, no disable_acs_redir)");
    }
  }
  if (any) {
    check.ok("", "root ports of Grace or Vera: ACS redirect and ATS are as they should be there, and "
                 "stay (ACS xx111x1, on Vera xx101x1)");
  }
  return any;
}

bool virtualised(const Survey& survey, const AcsByAddress& acs, const PciFunction& nic) {
  const auto it = acs.find(nic.address);
  if (it != acs.end() && it->second.ats_enabled.value_or(false)) return true;
  return std::any_of(survey.pci.begin(), survey.pci.end(), [](const PciFunction& function) {
    return function.driver == "vfio-pci" && (function.is_gpu() || function.is_network());
  });
}

/// The pairs of an ordinary machine.
struct Pairs {
  std::set<std::string> redirecting;
  std::vector<std::string> names;  ///< "GPU and NIC" whose traffic they turn
  std::set<std::string> bridges;
  bool denied = false;
  bool virtualised = false;
  bool any_acs = false;
};

Pairs look_at_pairs(const Survey& survey, const AcsByAddress& acs) {
  Pairs pairs;
  for (const PciFunction* gpu : survey.gpus()) {
    for (const PciFunction* nic : survey.nics()) {
      if (on_nvidia_root(survey, *nic)) continue;
      bool turned = false;
      for (const std::string& bridge : bridges_between(*gpu, *nic)) {
        pairs.bridges.insert(bridge);
        const auto it = acs.find(bridge);
        if (it == acs.end()) continue;
        pairs.denied = pairs.denied || (it->second.denied && !it->second.acs);
        pairs.any_acs = pairs.any_acs || it->second.acs.has_value();
        if (!it->second.acs || !it->second.acs->redirects()) continue;
        pairs.redirecting.insert(bridge);
        turned = true;
      }
      if (!turned) continue;
      pairs.names.push_back(fmt::format("{} and {}", gpu->address, nic->address));
      pairs.virtualised = pairs.virtualised || virtualised(survey, acs, *nic);
    }
  }
  return pairs;
}

void judge_pairs(const Pairs& pairs, const Platform& platform, const Check& check) {
  if (pairs.redirecting.empty()) {
    if (pairs.denied) {
      check.skip("", "needs root: lspci does not show capabilities to this user",
                 "sudo gdrperf doctor");
    } else {
      check.ok("", pairs.any_acs ? "no redirect" : "the bridges have no ACS");
    }
    return;
  }
  const std::string found = fmt::format("redirect is on at {} (ACSCtl), between {}",
                                        fmt::join(pairs.redirecting, ", "),
                                        fmt::join(pairs.names, "; "));
  if (pairs.virtualised) {
    check.ok("", found + ": right for virtual machines, which need it together with ATS (NIC: mlxconfig "
                         "ATS_ENABLED=1, its port: DirectTrans+, ACS 1x111x1)");
    return;
  }
  if (platform.virtual_machine || platform.container()) {
    check.warn("", found,
               platform.virtual_machine
                   ? "on the host of this virtual machine: sudo gdrperf doctor; a guest cannot change it"
                   : "on the host, not in this container: sudo gdrperf doctor");
    return;
  }
  check.warn("", found,
             fmt::format("for b in {}; do sudo setpci -s $b ECAP_ACS+6.w=0000:000c; done  # until "
                         "reboot; not where virtual machines share this host",
                         fmt::join(pairs.redirecting, " ")))
      .for_good(fmt::format("boot with 'pci=disable_acs_redir={}'", fmt::join(pairs.redirecting, ";")))
      .undo(fmt::format("for b in {}; do sudo setpci -s $b ECAP_ACS+6.w=000c:000c; done",
                        fmt::join(pairs.redirecting, " ")));
}

std::vector<LspciFunction> ask_lspci(const Survey& survey, const Check& check) {
  const ProgramResult lspci = survey.machine.run({"lspci", "-D", "-vvv"});
  if (lspci.ok()) return parse_lspci(lspci.output);
  if (lspci.end == ProgramResult::End::kNotInstalled) {
    check.skip("", survey.machine.recorded() ? "no lspci -D -vvv in the recording"
                                             : "lspci is not installed",
               install_command(survey.machine, "pciutils", "pciutils"));
  } else {
    check.skip("", "lspci failed: " + first_line(lspci.output));
  }
  return {};
}

}  // namespace

void check_acs(const Survey& survey, Findings& findings) {
  const Check check = acs_check(findings);
  if (survey.gpus().empty() || survey.nics().empty()) {
    check.skip("", "no pair of NVIDIA GPU and RDMA NIC");
    return;
  }
  bool any_bridge = false;
  for (const PciFunction* gpu : survey.gpus()) {
    for (const PciFunction* nic : survey.nics()) {
      any_bridge = any_bridge || !bridges_between(*gpu, *nic).empty();
    }
    any_bridge = any_bridge || !survey.data_direct().empty();
  }
  if (!any_bridge && survey.platform.virtual_machine) {
    check.skip("", "a virtual machine shows no bridges: the host's ACS decides, and ATS of the NIC",
               "on the host: sudo gdrperf doctor; there ATS is needed (mlxconfig -d DEVICE set "
               "ATS_ENABLED=1) and DirectTrans+ on the NIC's port");
    return;
  }
  if (!any_bridge) {
    if (!judge_nvidia_roots(survey, check)) {
      check.ok("", "no switch that a GPU and a NIC share: nothing to redirect");
    }
    return;
  }
  const AcsByAddress acs = by_address(ask_lspci(survey, check));
  if (acs.empty()) return;
  const bool direct = judge_data_direct(survey, acs, check);
  const bool roots = judge_nvidia_roots(survey, check);
  const Pairs pairs = look_at_pairs(survey, acs);
  if (!pairs.bridges.empty() || !(direct || roots)) judge_pairs(pairs, survey.platform, check);
}

}  // namespace gdrperf::doctor
