// One verdict for each GPU and NIC.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/survey/pairs.h"

namespace gdrperf::doctor {
namespace {

using topo::Relation;

// Payload of packets of 4096 bytes, of 1024 bytes, and of PCIe packets of 256.
constexpr double kPortShare = 0.97;
constexpr double kSmallPortShare = 0.91;
constexpr double kPcieShare = 0.88;

Relation relation_of(const Survey& survey, const PciFunction& gpu, const PciFunction& nic) {
  const auto [g, n] = std::mismatch(gpu.bridges.begin(), gpu.bridges.end(), nic.bridges.begin(), nic.bridges.end());
  const auto common = g - gpu.bridges.begin();
  const auto between = (gpu.bridges.end() - g) + (nic.bridges.end() - n);
  // Two ports of one switch count as one bridge, as nvidia-smi has it.
  if (common > 0) return between <= 2 ? Relation::kPix : Relation::kPxb;
  if (!gpu.root.empty() && gpu.root == nic.root) return Relation::kPhb;
  const auto node = [&](const PciFunction& each) {
    return line_of(survey.machine, "/sys/bus/pci/devices/" + each.address + "/numa_node");
  };
  return node(gpu) == node(nic) ? Relation::kNode : Relation::kSys;
}

Link speed_of(const Machine& machine, const std::string& address, const char* which) {
  const std::string folder = "/sys/bus/pci/devices/" + address + "/" + which;
  return {std::strtod(line_of(machine, folder + "_link_speed").c_str(), nullptr),
          static_cast<int>(std::strtol(line_of(machine, folder + "_link_width").c_str(), nullptr, 10))};
}

/// Rate of the path in GB/s; 0: not known.
double expected_gbytes(const Survey& survey, const PciFunction& gpu, const PciFunction& nic, const RdmaDevice& device) {
  double least = 0;
  const auto take = [&](double gbps) {
    if (gbps > 0 && (least == 0 || gbps < least)) least = gbps;
  };
  take(link_gbps(speed_of(survey.machine, gpu.address, "max")) * kPcieShare);
  take(link_gbps(speed_of(survey.machine, nic.address, "current")) * kPcieShare);
  double ports = 0;
  for (const Port& port : device.ports) {
    if (port.active()) ports += port.rate_gbps * (port.active_mtu != 0 && port.active_mtu < 2048 ? kSmallPortShare : kPortShare);
  }
  take(ports);
  return least / 8;
}

/// Whether GPU memory can be given to the NIC, and in which words.
struct Way {
  bool ready = false;
  std::string words;
};

Way way_of(const Survey& survey, const GpuProbe& probe, const PciFunction& gpu, const RdmaDevice& device) {
  if (!survey.gpus().empty()) {
    if (const auto registers = probe.registers(device.name, gpu.address)) {
      return *registers ? Way{true, "direct path ready"} : Way{false, "no direct path: the NIC takes no memory of this GPU"};
    }
    const GpuProbe::Gpu* asked = probe.gpu(gpu.address);
    if (asked != nullptr && !asked->gdr) return {false, "no direct path: this GPU does no GPUDirect RDMA"};
  }
  if (gpu.is_amd_gpu()) {
    const bool peer = !survey.machine.list("/sys/kernel/mm/memory_peers/amdkfd").empty();
    return {peer, peer ? "direct path ready" : "direct path by dma-buf, if at all (amd-gpu)"};
  }
  if (!peer_memory(survey.modules).bound_to.empty()) return {true, "direct path ready"};
  const auto works = dma_buf(survey).works;
  if (!works) return {true, "direct path likely, not asked"};
  return *works ? Way{true, "direct path ready"} : Way{false, "no direct path: peermem, dma-buf"};
}

std::string words_of_pair(const Way& way, Relation relation, double gbytes) {
  std::string words = way.words;
  if (way.ready && gbytes > 0) words += fmt::format(", expect {:.0f} GB/s", gbytes);
  if (way.ready && relation >= Relation::kNode) {
    words += "; libraries stage through the host at this distance unless told (NCCL_NET_GDR_LEVEL=SYS)";
  }
  return words;
}

}  // namespace

std::vector<PairVerdict> judge_pairs(const Survey& survey) {
  std::vector<PairVerdict> pairs;
  const GpuProbe probe = ask_gpus(survey.machine);
  std::vector<const PciFunction*> gpus = survey.gpus();
  for (const PciFunction* gpu : survey.amd_gpus()) gpus.push_back(gpu);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const RdmaDevice& device : survey.rdma) {
      const PciFunction* nic = survey.function(device.pci_address);
      if (nic == nullptr) continue;
      const Relation relation = relation_of(survey, *gpus[i], *nic);
      const Way way = way_of(survey, probe, *gpus[i], device);
      pairs.push_back({fmt::format("GPU{}", i), device.name, std::string(topo::to_string(relation)), way.ready,
                       words_of_pair(way, relation, expected_gbytes(survey, *gpus[i], *nic, device))});
    }
  }
  return pairs;
}

void check_pairs(const Survey& survey, Findings& findings) {
  const Check check(findings, "pair", "a GPU reaches the NIC next to it fastest; at a distance UCX and NCCL go through host memory");
  const auto pairs = judge_pairs(survey);
  const auto rank = [](const PairVerdict& pair) { return topo::relation_from_token(pair.relation).value_or(Relation::kSys); };
  for (auto it = pairs.begin(); it != pairs.end();) {
    const auto end = std::find_if(it, pairs.end(), [&](const auto& pair) { return pair.gpu != it->gpu; });
    const auto best = std::min_element(it, end, [&](const auto& one, const auto& other) { return rank(one) < rank(other); });
    const std::string subject = fmt::format("{} <-> {}", best->gpu, best->nic);
    const std::string found = fmt::format("{}: {}", best->relation, best->words);
    if (best->ready && rank(*best) >= Relation::kNode && !survey.platform.virtual_machine && !survey.platform.grace) {
      check.warn(subject, found,
                 "NCCL_NET_GDR_LEVEL=SYS; UCX: UCX_IB_GPU_DIRECT_RDMA=y UCX_NET_DEVICES=NIC:1; measure both: gdrperf write_bw HOST "
                 "--buffer cuda:0 --path both; or move the NIC to a slot of the GPU's node");
    } else {
      check.ok(subject, found);
    }
    it = end;
  }
  if (pairs.empty()) check.skip("", "no GPU with an RDMA NIC");
}

}  // namespace gdrperf::doctor
