// One verdict for each GPU and NIC: place and maximum by topo, readiness by what the checks found.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/survey/pairs.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::doctor {
namespace {

using topo::Relation;

/// Whether GPU memory can be given to the NIC, and the sentence about it.
struct DirectPath {
  bool ready = false;
  std::string words;
};

DirectPath direct_path(const Survey& survey, const GpuProbe& probe, const PciFunction& gpu, const RdmaDevice& device) {
  const auto down = [](const Port& port) { return !port.state.empty() && !port.active(); };
  if (!device.ports.empty() && std::all_of(device.ports.begin(), device.ports.end(), down)) {
    return {false, "no direct path: no port of the NIC is up"};
  }
  if (!survey.gpus().empty()) {
    if (const auto registers = probe.registers(device.name, gpu.address)) {
      return *registers ? DirectPath{true, "direct path ready"} : DirectPath{false, "no direct path: the NIC takes no memory of this GPU"};
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
  return *works ? DirectPath{true, "direct path ready"} : DirectPath{false, "no direct path: peermem, dma-buf"};
}

std::string words_of_pair(const DirectPath& path, Relation relation, double gbytes) {
  std::string words = path.words;
  if (path.ready && gbytes > 0) words += fmt::format(", expect {:.0f} GB/s", gbytes);
  if (path.ready && relation >= Relation::kNode) {
    words += "; libraries stage through the host at this distance unless told (NCCL_NET_GDR_LEVEL=SYS)";
  }
  return words;
}

}  // namespace

std::vector<PairVerdict> judge_pairs(const Survey& survey) {
  std::vector<PairVerdict> verdicts;
  const GpuProbe probe = ask_gpus(survey.machine);
  topo::Topology topology;
  topology.source = survey.tree.source;
  topology.tree = survey.tree;
  for (const topo::Pair& pair : topo::pairs_of(topology)) {
    const topo::TreeGpu& gpu = *survey.tree.gpu(pair.gpu);
    const topo::TreeNic& nic = *survey.tree.nic(pair.nic);
    const PciFunction* function = survey.function(topo::to_string(survey.tree.functions[gpu.function].address));
    const auto device = std::find_if(survey.rdma.begin(), survey.rdma.end(), [&](const RdmaDevice& each) { return each.name == pair.nic; });
    if (function == nullptr || device == survey.rdma.end() || !pair.relation) continue;
    const DirectPath path = direct_path(survey, probe, *function, *device);
    const auto ceiling = topo::pair_ceiling(survey.tree, topo::path_to_nic(survey.tree, gpu.function, nic), nic);
    const double gbytes = ceiling ? ceiling->gbps / 8 : 0;
    std::string words = words_of_pair(path, *pair.relation, gbytes);
    const bool loses = std::any_of(device->ports.begin(), device->ports.end(),
                                   [&](const Port& port) { return port_lost_packets(survey, port); });
    if (path.ready && loses) words += "; less while packets are lost (port-errors)";
    verdicts.push_back({pair.gpu, pair.nic, std::string(topo::to_string(*pair.relation)), path.ready, gbytes,
                        std::move(words)});
  }
  return verdicts;
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
