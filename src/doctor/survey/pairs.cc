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
    if (const auto registers = probe.registers(device.name.raw(), gpu.address)) {
      return *registers ? DirectPath{true, "direct path ready"}
                        : DirectPath{false, "no direct path: the NIC takes no memory of this GPU"};
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

/// Whether packets of the NIC are lost: then its rate is not to be expected.
enum class Losses { kNone,
                    kCounted };

std::string words_of_pair(const DirectPath& path, Relation relation, double gbytes, Losses losses) {
  std::string words = path.words;
  // Through the root complex the links are no more than a bound.
  const bool bound = relation > Relation::kPxb || losses == Losses::kCounted;
  if (path.ready && gbytes > 0) words += fmt::format(", {} {:.0f} GB/s", bound ? "at most" : "expect", gbytes);
  if (path.ready && losses == Losses::kCounted) words += ", less while packets are lost (port-errors)";
  if (path.ready && relation >= Relation::kNode) {
    words += "; libraries stage through the host at this distance by default (NCCL_NET_GDR_LEVEL=SYS changes that)";
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
    const topo::TreeNic& nic = *survey.tree.nic(pair.nic.raw());
    const PciFunction* function = survey.function(topo::to_string(survey.tree.functions[gpu.function].address));
    const auto device = std::find_if(survey.rdma.begin(), survey.rdma.end(),
                                     [&](const RdmaDevice& each) { return each.name == pair.nic; });
    if (function == nullptr || device == survey.rdma.end() || !pair.relation) continue;
    const DirectPath path = direct_path(survey, probe, *function, *device);
    const auto ceiling = topo::pair_ceiling(survey.tree, topo::path_to_nic(survey.tree, gpu.function, nic), nic);
    const double gbytes = ceiling ? ceiling->gbps / 8 : 0;
    const bool loses = std::any_of(device->ports.begin(), device->ports.end(),
                                   [&](const Port& port) { return port_lost_packets(survey, port); });
    verdicts.push_back({pair.gpu, pair.nic, std::string(topo::to_string(*pair.relation)), path.ready, gbytes,
                        words_of_pair(path, *pair.relation, gbytes, loses ? Losses::kCounted : Losses::kNone)});
  }
  return verdicts;
}

namespace {

/// The nearest NIC of each GPU.
std::vector<PairVerdict> nearest_pairs(const Survey& survey) {
  std::vector<PairVerdict> nearest;
  const auto rank = [](const PairVerdict& pair) {
    return topo::relation_from_token(pair.relation).value_or(Relation::kSys);
  };
  for (PairVerdict& pair : judge_pairs(survey)) {
    if (nearest.empty() || nearest.back().gpu != pair.gpu) {
      nearest.push_back(std::move(pair));
    } else if (rank(pair) < rank(nearest.back())) {
      nearest.back() = std::move(pair);
    }
  }
  return nearest;
}

bool is_far(const Survey& survey, const PairVerdict& pair) {
  const Relation relation = topo::relation_from_token(pair.relation).value_or(Relation::kSys);
  return pair.ready && relation >= Relation::kNode && !survey.platform.virtual_machine && !survey.platform.grace;
}

std::string name_of(const PairVerdict& pair) {
  return fmt::format("{} <-> {}", printable(pair.gpu), printable(pair.nic));
}

std::string with_comma(const std::string& list) { return list.empty() ? list : list + ", "; }

/// What one NIC for many GPUs means is said once, and names them all.
void warn_of_far_pairs(const std::vector<PairVerdict>& far, std::size_t gpus, const Check& check) {
  std::string subject = name_of(far.front());
  std::string found = fmt::format("{}: {}", far.front().relation, far.front().words);
  if (far.size() > 1) {
    std::string list;
    for (const PairVerdict& pair : far) list = with_comma(list) + fmt::format("{} {}", name_of(pair), pair.relation);
    subject.clear();
    found = fmt::format("{} of {} GPUs have no near NIC ({}): {}", far.size(), gpus, list, far.front().words);
  }
  check.warn(subject, found,
             "NCCL_NET_GDR_LEVEL=SYS; UCX: UCX_IB_GPU_DIRECT_RDMA=y UCX_NET_DEVICES=NIC:1; measure both: gdrperf "
             "write_bw HOST --buffer cuda:0 --path both; or move the NIC to a slot of the GPU's node");
}

}  // namespace

bool far_pairs_are_told(const Survey& survey) {
  const auto pairs = nearest_pairs(survey);
  return std::any_of(pairs.begin(), pairs.end(), [&](const PairVerdict& pair) { return is_far(survey, pair); });
}

void check_pairs(const Survey& survey, Findings& findings) {
  const Check check(findings, "pair",
                    "a GPU reaches the NIC next to it fastest; at a distance UCX and NCCL go through host memory");
  const auto pairs = nearest_pairs(survey);
  std::vector<PairVerdict> far;
  for (const PairVerdict& pair : pairs) {
    if (is_far(survey, pair)) {
      far.push_back(pair);
    } else {
      check.ok(name_of(pair), fmt::format("{}: {}", pair.relation, pair.words));
    }
  }
  if (!far.empty()) warn_of_far_pairs(far, pairs.size(), check);
  if (pairs.empty()) check.skip("", "no GPU with an RDMA NIC");
}

}  // namespace gdrperf::doctor
