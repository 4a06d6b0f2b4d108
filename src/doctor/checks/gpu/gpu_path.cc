// The way between GPU and NIC: a common root, Data Direct, driver settings that close it, vGPUs, small BARs.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "gdrperf/base/units.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/survey/pairs.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

std::string driver_parameter(const Machine& machine, const char* name) {
  const std::string parameters = machine.read("/proc/driver/nvidia/params").text;
  for (const std::string_view line : lines_of(parameters)) {
    if (const auto value = value_after(line, std::string(name) + ":")) return std::string(*value);
  }
  return {};
}

std::vector<const PciFunction*> all_gpus(const Survey& survey) {
  std::vector<const PciFunction*> gpus = survey.gpus();
  for (const PciFunction* gpu : survey.amd_gpus()) gpus.push_back(gpu);
  return gpus;
}

/// Largest and current size of a GPU's resizable region, in bytes; 0: not resizable.
struct Resizable {
  std::uint64_t now = 0;
  std::uint64_t most = 0;
};

Resizable resizable_of(const Machine& machine, const std::string& address) {
  Resizable result;
  const std::string folder = "/sys/bus/pci/devices/" + address;
  const std::string regions = machine.read(folder + "/resource").text;
  const auto lines = lines_of(regions);
  for (std::size_t i = 0; i < std::min<std::size_t>(6, lines.size()); ++i) {
    // A bit for each size: bit 0 is 1 MiB.
    const std::string sizes = line_of(machine, fmt::format("{}/resource{}_resize", folder, i));
    const std::uint64_t mask = std::strtoull(sizes.c_str(), nullptr, 16);
    const auto words = words_of(lines[i]);
    if (mask == 0 || words.size() < 2) continue;
    const std::uint64_t begin = std::strtoull(std::string(words[0]).c_str(), nullptr, 16);
    const std::uint64_t end = std::strtoull(std::string(words[1]).c_str(), nullptr, 16);
    int highest = 63;
    while ((mask >> highest & 1) == 0) --highest;
    const std::uint64_t most = highest < 43 ? std::uint64_t{1} << (highest + 20) : 0;
    if (end > begin && most > result.most) result = {end - begin + 1, most};
  }
  return result;
}

/// Depth of the deepest bridge that both lie below; 0: none.
std::size_t shared_bridges(const PciFunction& one, const PciFunction& other) {
  const auto ends = std::mismatch(one.bridges.begin(), one.bridges.end(), other.bridges.begin(), other.bridges.end());
  return static_cast<std::size_t>(ends.first - one.bridges.begin());
}

/// A GPU whose nearest NIC is under another root.
struct ApartGpu {
  const PciFunction* gpu;
  const PciFunction* nic;
};

std::optional<ApartGpu> judge_root(const Survey& survey, const PciFunction& gpu, const Check& check) {
  const PciFunction* best = nullptr;
  for (const PciFunction* nic : survey.nics()) {
    const auto rank = [&](const PciFunction& each) {
      return shared_bridges(gpu, each) * 2 + (gpu.root == each.root ? 1 : 0);
    };
    if (best == nullptr || rank(*nic) > rank(*best)) best = nic;
  }
  if (best == nullptr || gpu.root.empty()) return std::nullopt;
  const std::size_t shared = shared_bridges(gpu, *best);
  if (shared > 0) {
    check.ok(gpu.address, fmt::format("below {} with {}", gpu.bridges[shared - 1], best->address));
  } else if (gpu.root == best->root) {
    check.ok(gpu.address,
             fmt::format("under {} with {}: through the CPU's root complex, at no more than the CPU forwards", gpu.root,
                         best->address));
  } else if (survey.platform.grace || survey.platform.virtual_machine) {
    check.ok(gpu.address, fmt::format("under {}, {} under {}: {}", gpu.root, best->address, best->root,
                                      survey.platform.grace ? "C2C or Data Direct carries it (c2c, data-direct)"
                                                            : "a virtual machine's tree does not show the host's"));
  } else if (gpu_shares_memory(survey)) {
    check.ok(gpu.address, "GPU and CPU share memory: the NIC reaches it as host memory");
  } else {
    return ApartGpu{&gpu, best};
  }
  return std::nullopt;
}

/// One NIC for many GPUs is one finding, and none where "pair" has it.
void judge_apart(const Survey& survey, const std::vector<ApartGpu>& apart, const Check& check) {
  const auto& [gpu, nic] = apart.front();
  std::string found =
      fmt::format("under {}, and no NIC there: the nearest is {} under {}", gpu->root, nic->address, nic->root);
  if (apart.size() > 1) found += fmt::format("; {} more GPUs have none under their root either", apart.size() - 1);
  if (far_pairs_are_told(survey)) {
    check.skip(gpu->address, found + " (see pair)");
    return;
  }
  check
      .warn(gpu->address, found,
            "move the NIC to a slot of that root (see 'gdrperf topo'); until then measure both ways: gdrperf write_bw "
            "HOST --buffer cuda:0 --path both")
      .saw("/sys/bus/pci/devices", fmt::format("{} and {} share no root", gpu->address, nic->address));
}

}  // namespace

void check_common_root(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "common-root",
      "GPUDirect RDMA is promised only below one PCIe root complex: between two, many CPUs forward it slowly or not at "
      "all");
  std::vector<ApartGpu> apart;
  for (const PciFunction* gpu : all_gpus(survey)) {
    if (const auto each = judge_root(survey, *gpu, check)) apart.push_back(*each);
  }
  if (!apart.empty()) judge_apart(survey, apart, check);
  if (of_this_check(findings, "common-root") == 0) check.skip("", "no GPU with an RDMA NIC");
}

void check_data_direct(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "data-direct",
      "through its DMA function a ConnectX-8 reaches GPU memory without the CPU's C2C link, at twice the rate");
  const auto functions = survey.data_direct();
  const auto setting = survey.platform.environment.find("NCCL_IB_DATA_DIRECT");
  for (const PciFunction* function : functions) {
    if (function->driver.empty()) {
      check.warn(function->address, "no driver is bound to this DMA function: Data Direct is off",
                 version_at_least(survey.platform.kernel, "6.12")
                     ? "sudo modprobe mlx5_ib; sudo dmesg | grep -i 'data.direct'"
                     : "Linux 6.12 or later, or a current DOCA-OFED; user space: rdma-core 54 or later")
          .saw("/sys/bus/pci/devices/" + function->address + "/driver", "none");
    } else if (setting != survey.platform.environment.end() && setting->second == "0") {
      check.warn(function->address, "NCCL_IB_DATA_DIRECT=0 turns it off for NCCL", "unset NCCL_IB_DATA_DIRECT")
          .saw("environment", "NCCL_IB_DATA_DIRECT=0");
    } else {
      check.ok(function->address, fmt::format("driven by {}", printable(function->driver)));
    }
  }
  if (functions.empty()) check.skip("", "no ConnectX-8 with a DMA function");
}

void check_topology_override(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "topology-override",
      "on GB200 and GB300 the NVIDIA driver gives out dma-buf only to NICs in the GPU's IOMMU group, unless set "
      "otherwise");
  if (!survey.platform.grace || survey.gpus().empty() || survey.nics().empty()) {
    check.skip("", "no Grace or Vera with GPU and NIC");
    return;
  }
  // The driver lists the setting without its prefix.
  const std::string value = driver_parameter(survey.machine, "GrdmaPciTopoCheckOverride");
  const auto nics = survey.nics();
  const bool apart = std::any_of(nics.begin(), nics.end(), [&](const PciFunction* nic) {
    const std::string group = iommu_group(survey.machine, nic->address);
    return !group.empty() && group != iommu_group(survey.machine, survey.gpus().front()->address);
  });
  const bool serves = ask_gpus(survey.machine).registers("dmabuf").value_or(false) || !survey.data_direct().empty();
  if (value == "1") {
    check.ok("", "GrdmaPciTopoCheckOverride is 1");
  } else if (!apart || serves) {
    check.ok("", serves ? "not needed: dma-buf works without it" : "not needed: GPU and NIC are in one IOMMU group");
  } else {
    check
        .warn("",
              "GPU and NICs are in different IOMMU groups, and GrdmaPciTopoCheckOverride is not set: dma-buf "
              "registration fails, "
              "NCCL falls back to sockets or host memory",
              "echo 'options nvidia NVreg_GrdmaPciTopoCheckOverride=1' | sudo tee /etc/modprobe.d/nvidia-grdma.conf  # "
              "rebuild the "
              "initramfs, reboot; in Kubernetes a kernelModuleConfig of the GPU operator")
        .undo("sudo rm /etc/modprobe.d/nvidia-grdma.conf")
        .saw("/proc/driver/nvidia/params",
             value.empty() ? "no GrdmaPciTopoCheckOverride" : "GrdmaPciTopoCheckOverride: " + value);
  }
}

void check_resizable_bar(const Survey& survey, Findings& findings) {
  const Check check(findings, "resizable-bar", "a NIC reaches no more GPU memory than this region shows");
  for (const PciFunction* gpu : all_gpus(survey)) {
    const Resizable region = resizable_of(survey.machine, gpu->address);
    if (region.most == 0) continue;
    if (region.now < region.most) {
      check
          .warn(gpu->address,
                fmt::format("{} of {} that the GPU offers", format_size(region.now), format_size(region.most)),
                "BIOS: Above 4G Decoding and Resizable BAR on, then reboot")
          .saw("/sys/bus/pci/devices/" + gpu->address + "/resource*_resize", format_size(region.most) + " at most");
    } else {
      check.ok(gpu->address, format_size(region.now) + ", the largest it offers");
    }
  }
  if (of_this_check(findings, "resizable-bar") == 0)
    check.skip("", "no GPU with a resizable region (data-centre GPUs have a large fixed one)");
}

void check_vgpu(const Survey& survey, Findings& findings) {
  const Check check(findings, "vgpu", "a vGPU is a share of a GPU: only some types give NICs access to their memory");
  const GpuProbe probe = ask_gpus(survey.machine);
  for (const std::string& name : gpu_names(survey)) {
    if (!is_vgpu(name)) continue;
    if (probe.registers("dmabuf").value_or(false) || probe.registers("peermem").value_or(false)) {
      check.ok(name, "a vGPU; a NIC took its memory");
    } else {
      check.warn(name, "a vGPU: GPUDirect RDMA is supported on a subset of vGPU types and guest systems only",
                 "the list 'GPUDirect RDMA' in the documentation of this vGPU release; else a whole GPU passed "
                 "through; until then "
                 "stage through host memory: --path staged, NCCL_NET_GDR_LEVEL=LOC");
    }
  }
  if (of_this_check(findings, "vgpu") == 0) check.skip("", survey.gpus().empty() ? "no NVIDIA GPU" : "no vGPU");
}

}  // namespace gdrperf::doctor
