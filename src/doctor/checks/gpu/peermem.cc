// NVIDIA's peer memory module: is it there, does it register, and if not, why?

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kPeerMemoryWhy =
    "through this module ibv_reg_mr takes GPU memory; without it, or dma-buf, there is no "
    "GPUDirect RDMA";
constexpr const char* kPeers = "/sys/kernel/mm/memory_peers";
constexpr const char* kRegister = "ib_register_peer_memory_client";

Check peer_memory_check(Findings& findings) { return {findings, "peermem", kPeerMemoryWhy}; }

/// Clients registered with the RDMA core; nothing where it keeps no list.
std::optional<std::string> registered_client(const Machine& machine) {
  const auto clients = machine.list(kPeers);
  for (const std::string& client : clients) {
    if (!client.starts_with("nv_mem")) continue;
    const std::string version = line_of(machine, fmt::format("{}/{}/version", kPeers, client));
    return fmt::format("{}{}", client, version.empty() ? "" : " " + version);
  }
  if (clients.empty() && machine.resolve(kPeers).empty()) return std::nullopt;
  return "";
}

/// The RDMA stack of kernels from 6.3 on: only Ubuntu's before them had the peer memory API without OFED.
bool stack_without_peer_memory(const Survey& survey) {
  const Machine& machine = survey.machine;
  return version_at_least(survey.platform.kernel, "6.3") && !machine.list("/sys/module/ib_core").empty() &&
         !machine.list("/sys/module/mlx5_core").empty() && line_of(machine, "/sys/module/mlx5_core/version").empty() &&
         !machine.run({"ofed_info", "-s"}).ok();
}

/// Why the module is not there, from what any user may read.
PeerMemoryTrouble trouble_without_log(const Survey& survey, std::string& seen) {
  const ProgramResult info = survey.machine.run({"modinfo", "nvidia_peermem"});
  if (info.end == ProgramResult::End::kExited && info.status != 0) {
    seen = "modinfo nvidia_peermem: " + first_line(info.output);
    return PeerMemoryTrouble::kNotFound;
  }
  // Built without an RDMA stack, it depends on the GPU's driver alone.
  for (const std::string_view line : info.ok() ? lines_of(info.output) : std::vector<std::string_view>()) {
    const auto depends = value_after(line, "depends:");
    if (!depends || depends->empty() || depends->find("ib_") != std::string_view::npos) continue;
    seen = "modinfo nvidia_peermem: depends " + std::string(*depends);
    return PeerMemoryTrouble::kNoPeerMemoryApi;
  }
  const FileText symbols = survey.machine.read("/proc/kallsyms");
  if (symbols.access == Access::kGranted && !symbols.text.empty() &&
      symbols.text.find(kRegister) == std::string::npos) {
    seen = fmt::format("/proc/kallsyms: no {}", kRegister);
    return PeerMemoryTrouble::kNoPeerMemoryApi;
  }
  if (stack_without_peer_memory(survey)) {
    seen = fmt::format("Linux {} with its own RDMA stack (no /sys/module/mlx5_core/version, no ofed_info)",
                       survey.platform.kernel);
    return PeerMemoryTrouble::kNoPeerMemoryApi;
  }
  return PeerMemoryTrouble::kNone;
}

/// Machines where loading the module is no cure at all. True when this is one.
bool judge_not_for_this_machine(const Survey& survey, const Check& check) {
  const auto names = gpu_names(survey);
  const auto shared = std::find_if(names.begin(), names.end(), shares_memory_with_cpu);
  const std::string driver = nvidia_driver(survey.machine).version;
  if (shared != names.end()) {
    check.skip("",
               fmt::format("not for {}: GPU and CPU share the memory, which is registered as host memory", *shared));
  } else if (!driver.empty() && !version_at_least(driver, "470")) {
    check.fail("", fmt::format("not loaded, and driver {} brings no nvidia_peermem: driver 470 was the first", driver),
               "install nv_peer_mem 1.1 or 1.2 for this OFED, or a driver from 470 on; both stay after a reboot");
  } else {
    return false;
  }
  return true;
}

void judge_missing(const Survey& survey, Findings& findings) {
  const Check check = peer_memory_check(findings);
  if (judge_not_for_this_machine(survey, check)) return;
  std::string seen;
  PeerMemoryTrouble trouble = peer_memory_trouble(kernel_log(survey.machine).value_or(""));
  if (trouble == PeerMemoryTrouble::kNone || trouble == PeerMemoryTrouble::kUnsigned) {
    trouble = trouble_without_log(survey, seen);
  } else {
    seen = "dmesg";
  }
  if (survey.container && (trouble == PeerMemoryTrouble::kNotFound || trouble == PeerMemoryTrouble::kNone)) {
    check.fail("", "not loaded; modules are the host's to load, not this container's",
               survey.platform.runtime == Runtime::kKubernetes
                   ? "driver.rdma.enabled=true in the GPU operator (with driver.rdma.useHostMofed=true "
                     "where the node has OFED itself): it runs a peermem container next to the driver"
                   : "sudo modprobe nvidia_peermem  # on the host, not in the container");
  } else if (trouble != PeerMemoryTrouble::kNone) {
    check.fail("", meaning_of(trouble), cure_of(trouble)).saw("seen", seen);
  } else {
    judge_peer_memory(peer_memory(survey.modules), findings);
  }
}

/// Loaded, but the RDMA core lists no client of its kind.
void judge_unregistered(const PeerMemory& found, const Survey& survey, Findings& findings) {
  const Check check = peer_memory_check(findings);
  const std::string text = fmt::format(
      "{} is loaded without registering: there is no {}/nv_mem, where NCCL looks, and it prints "
      "'GPU Direct RDMA Disabled'",
      found.module, kPeers);
  const char* fix =
      "build it against the OFED that runs: reinstall the NVIDIA driver after OFED (some pairs of "
      "distribution and OFED have no release that matches); or dma-buf: NCCL_DMABUF_ENABLE=1 with "
      "the open kernel module";
  const bool served = found.bound_to.empty() ? dma_buf(survey).works.value_or(false) : true;
  check.add(served ? Verdict::kWarn : Verdict::kFail, "", text, fix)
      .saw("/proc/modules", found.module)
      .saw(kPeers, "no nv_mem");
}

void judge_loaded(const PeerMemory& found, const Survey& survey, Findings& findings) {
  const Check check = peer_memory_check(findings);
  const auto client = registered_client(survey.machine);
  const auto registers = ask_gpus(survey.machine).registers("peermem");
  if (registers.value_or(false)) {
    check.ok("", fmt::format("{} loaded; GPU memory was registered through it", found.module));
  } else if (client && !client->empty()) {
    check.ok("", fmt::format("{} loaded and registered as {}", found.module, *client));
  } else if (!found.bound_to.empty() || !found.users_known) {
    client ? judge_unregistered(found, survey, findings) : judge_peer_memory(found, findings);
  } else if (!client && !dma_buf(survey).works.value_or(true)) {
    judge_peer_memory(found, findings);
  } else {
    judge_unregistered(found, survey, findings);
  }
}

}  // namespace

void judge_peer_memory(const PeerMemory& found, Findings& findings) {
  const Check check = peer_memory_check(findings);
  const Cure cure = load_module("nvidia_peermem");
  if (!found.bound_to.empty()) {
    check.ok("", fmt::format("{} loaded and registered with {}", found.module, found.bound_to));
  } else if (!found.module.empty() && !found.users_known) {
    check.ok("", found.module + " loaded; this kernel does not show what it is registered with");
  } else if (!found.module.empty()) {
    check.fail("",
               fmt::format("{} is loaded but registered with neither ib_core nor ib_uverbs: it was "
                           "built without this RDMA stack",
                           found.module),
               "install the NVIDIA driver again after OFED or DOCA-OFED, then sudo modprobe -r "
               "nvidia_peermem && sudo modprobe nvidia_peermem; or use dma-buf");
  } else {
    check.fail("", "neither nvidia_peermem nor nv_peer_mem is loaded", cure.now)
        .for_good(cure.for_good)
        .undo(cure.undo);
  }
}

void judge_peer_memory_trouble(PeerMemoryTrouble trouble, ModulePlace place, Findings& findings) {
  const Check check = peer_memory_check(findings);
  if (trouble == PeerMemoryTrouble::kUnsigned) {
    check.warn("", meaning_of(trouble), "lsmod | grep peermem  # was it loaded in the end?");
  } else {
    check.fail("", meaning_of(trouble),
               place == ModulePlace::kHost ? cure_of(trouble)
                                           : "drain the node, then delete the pod of its driver: it builds the module "
                                             "against the RDMA core that runs; where it installs "
                                             "user space only: FORCE_REINSTALL=true in driver.env of the "
                                             "ClusterPolicy; it stays until kernel or OFED change");
  }
}

void check_peer_memory(const Survey& survey, Findings& findings) {
  const Check check = peer_memory_check(findings);
  const PeerMemory found = peer_memory(survey.modules);
  if (survey.gpus().empty()) {
    check.skip("", "no NVIDIA GPU");
    return;
  }
  if (!survey.any_hardware()) {
    check.skip("", "no RDMA NIC to register with");
    return;
  }
  if (survey.loaded("nvidia_peermem") && survey.loaded("nv_peer_mem")) {
    check.warn("", "nvidia_peermem and nv_peer_mem are both loaded: which one serves is chance",
               "sudo modprobe -r nv_peer_mem")
        .for_good("remove the package nvidia-peer-memory-dkms or nvidia_peer_memory")
        .undo("sudo modprobe nv_peer_mem");
  }
  if (!found.module.empty()) {
    judge_loaded(found, survey, findings);
  } else if (const DmaBuf other = dma_buf(survey); other.works.value_or(false)) {
    check.skip("", "not loaded; not needed with dma-buf");
  } else if (!other.works) {
    check.skip("", "not loaded; needed unless dma-buf serves, which nobody asked here");
  } else {
    judge_missing(survey, findings);
  }
}

}  // namespace gdrperf::doctor
