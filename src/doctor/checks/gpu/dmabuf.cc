// dma-buf, and GPU memory that is really registered.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"

namespace gdrperf::doctor {
namespace {

/// GPUs for which CUDA denies GPUDirect RDMA, or whose name does.
void judge_gpus(const Survey& survey, const GpuProbe& probe, const Check& check) {
  for (const GpuProbe::Gpu& gpu : probe.gpus) {
    if (gpu.gdr) continue;
    check.fail(gpu.address,
               fmt::format("{} does no GPUDirect RDMA (GPU_DIRECT_RDMA_SUPPORTED is 0): "
                           "registration ends in 'Bad address', whatever is loaded",
                           gpu.name),
               shares_memory_with_cpu(gpu.name)
                   ? "register host memory: GPU and CPU share it here (cudaHostAlloc)"
                   : "a data-centre or professional GPU; else stage through host memory (--path "
                     "staged, NCCL_NET_GDR_LEVEL=LOC)");
  }
  if (!probe.gpus.empty()) return;
  for (const std::string& name : gpu_names(survey)) {
    if (!is_geforce(name) && !shares_memory_with_cpu(name)) continue;
    check.fail("", fmt::format("{} does no GPUDirect RDMA: registration ends in 'Bad address', "
                               "whatever is loaded",
                               name),
               is_geforce(name)
                   ? "a data-centre or professional GPU; else stage through host memory (--path "
                     "staged, NCCL_NET_GDR_LEVEL=LOC)"
                   : "register host memory: GPU and CPU share it here (cudaHostAlloc)");
    return;
  }
}

Outside device_driver(const Survey& survey, const Outside& name) {
  for (const RdmaDevice& device : survey.rdma) {
    if (device.name == name) return device.driver;
  }
  return {};
}

/// One finding for each NIC: which GPUs it takes memory of, and how.
void judge_nic(const Survey& survey, const GpuProbe& probe, const Outside& nic, const Check& check) {
  std::string ways;
  std::string failures;
  std::size_t good = 0;
  std::size_t bad = 0;
  for (const GpuProbe::Try& each : probe.tries) {
    if (nic != each.nic || each.gpu.empty()) continue;
    if (each.error == 0) {
      ++good;
      if (ways.find(each.way) == std::string::npos) ways += (ways.empty() ? "" : ", ") + each.way;
    } else if (const GpuProbe::Gpu* gpu = probe.gpu(each.gpu); gpu != nullptr && !gpu->gdr) {
      // Of a GPU that does none no NIC takes memory: said once, above.
    } else if (!probe.registers(nic.raw(), each.gpu).value_or(false)) {
      ++bad;
      failures = fmt::format("{} with {}: errno {} {}", each.way, each.gpu, each.error, each.words);
    }
  }
  if (bad > 0) {
    const bool efa = device_driver(survey, nic) == "efa";
    check.fail(nic, "GPU memory is not registered: " + failures,
               efa ? "this EFA cannot reach these GPUs (g6 and the like): transfers go through host "
                     "memory; set FI_EFA_USE_DEVICE_RDMA=0"
                   : "see peermem and dma-buf here; until then host memory: --path staged")
        .saw("probe", failures);
  } else if (good > 0) {
    check.ok(nic, fmt::format("takes GPU memory ({})", ways));
  }
}

}  // namespace

void check_dma_buf(const Survey& survey, Findings& findings) {
  const Check check(findings, "dma-buf",
                    "the way to give GPU memory to a NIC that needs no further module");
  if (survey.gpus().empty()) {
    check.skip("", "no NVIDIA GPU");
    return;
  }
  const DmaBuf found = dma_buf(survey);
  if (found.works.value_or(false)) {
    check.ok("", found.found);
  } else if (!found.works) {
    check.skip("", found.found, "gdrperf doctor  # on the machine itself, built with CUDA: it asks");
  } else if (!peer_memory(survey.modules).bound_to.empty()) {
    check.skip("", found.found + "; nvidia_peermem is there instead");
  } else {
    check.warn("", found.found, found.fix);
  }
}

void check_gpu_registration(const Survey& survey, Findings& findings) {
  const Check check(findings, "gpu-registration",
                    "the decisive test of GPUDirect RDMA: register GPU memory with each NIC, each way");
  if (survey.gpus().empty()) {
    check.skip("", "no NVIDIA GPU");
    return;
  }
  const GpuProbe probe = ask_gpus(survey.machine);
  judge_gpus(survey, probe, check);
  for (const RdmaDevice& device : survey.rdma) judge_nic(survey, probe, device.name, check);
  // Names known not to work need no probe.
  const bool l4_with_efa =
      survey.platform.cloud == Cloud::kAws && survey.platform.instance.starts_with("g6") &&
      std::any_of(survey.rdma.begin(), survey.rdma.end(),
                  [](const auto& device) { return device.driver == "efa"; });
  if (l4_with_efa && !probe.registers("dmabuf")) {
    check.fail("",
               fmt::format("EFA of {} cannot register GPU memory, though CUDA calls it able", survey.platform.instance),
               "transfers go through host memory: FI_EFA_USE_DEVICE_RDMA=0; GPUDirect RDMA is there "
               "on p4d, p5 and later");
    return;
  }
  if (of_this_check(findings, "gpu-registration") == 0) {
    check.skip("", probe.why_none.empty() ? "no NIC to register with" : probe.why_none);
  }
}

}  // namespace gdrperf::doctor
