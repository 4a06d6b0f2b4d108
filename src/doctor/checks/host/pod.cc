// Needs of a pod for RDMA, and what to set in the operators. Nothing is asked of the cluster.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr int kCapIpcLock = 14;

bool has_capability(const Machine& machine, int capability) {
  const std::string status = machine.read("/proc/self/status").text;
  for (const std::string_view line : lines_of(status)) {
    const auto bits = value_after(line, "CapEff:");
    if (bits) return (std::strtoull(std::string(*bits).c_str(), nullptr, 16) >> capability & 1) != 0;
  }
  return false;
}

/// The variable that a device plugin sets for its resource: "PCIDEVICE_NVIDIA_COM_SRIOV_RDMA_VF".
std::string plugin_variable(const Platform& platform) {
  for (const auto& [name, value] : platform.environment) {
    if (name.starts_with("PCIDEVICE_") && !name.ends_with("_INFO")) return name;
  }
  return {};
}

// Device files that the pod has, and that its cgroup does not let it open: those of a mounted folder.
std::string shut_device(const Survey& survey) {
  for (const RdmaDevice& device : survey.rdma) {
    if (device.in_kernel && device.verbs && device.verbs->error.find("Operation not permitted") != std::string::npos)
      return printable(device.name);
  }
  return {};
}

void judge_devices(const Survey& survey, const Check& check) {
  const bool there = !survey.machine.list("/dev/infiniband").empty();
  if (const std::string shut = shut_device(survey); there && !shut.empty()) {
    check
        .fail(
            "devices",
            fmt::format("this pod sees /dev/infiniband and may not open {}: a mounted folder (hostPath) does not allow "
                        "its devices; a device plugin or privilege is missing",
                        shut),
            "resources.limits: {rdma/hca_shared_devices_a: 1}, or the SR-IOV resource of this cluster, in place of "
            "the hostPath; or securityContext: {privileged: true}")
        .for_good("cluster side: a NicClusterPolicy with rdmaSharedDevicePlugin or sriovDevicePlugin")
        .saw("/dev/infiniband", "there; opening its device: Operation not permitted");
  } else if (there) {
    check.ok("devices", "/dev/infiniband is there");
  } else {
    check
        .fail("devices", "this pod has no /dev/infiniband: it asked for no RDMA resource",
              "resources.limits: {rdma/hca_shared_devices_a: 1}, or the SR-IOV resource of this cluster; 'kubectl "
              "describe node | grep "
              "-A20 Allocatable' lists the names")
        .for_good(
            "cluster side: a NicClusterPolicy of the network operator with rdmaSharedDevicePlugin or sriovDevicePlugin")
        .saw("/dev/infiniband", "missing");
  }
}

void judge_lock(const Survey& survey, const Check& check) {
  const MemlockLimit limit = survey.machine.memlock();
  if (has_capability(survey.machine, kCapIpcLock)) {
    check.ok("IPC_LOCK", "granted");
  } else if (!limit.soft_bytes) {
    check.ok("IPC_LOCK", "not granted, and not needed: memlock is unlimited");
  } else {
    check
        .fail("IPC_LOCK",
              "this pod has neither the capability IPC_LOCK nor an unlimited memlock: registration ends in 'Cannot "
              "allocate "
              "memory'",
              "securityContext: {capabilities: {add: [IPC_LOCK]}} in the container; OpenShift: an SCC that allows it")
        .saw("/proc/self/status", "CapEff without bit 14 (CAP_IPC_LOCK)");
  }
}

void judge_network(const Survey& survey, const Check& check) {
  const auto interfaces = survey.machine.list("/sys/class/net");
  const bool second = std::any_of(interfaces.begin(), interfaces.end(), [](const std::string& name) {
    return name != "lo" && name != "eth0" && !name.starts_with("tunl") && !name.starts_with("ip6tnl") &&
           !name.starts_with("sit");
  });
  const bool roce = std::any_of(survey.ports.begin(), survey.ports.end(),
                                [](const Port& port) { return port.link_layer == "Ethernet"; });
  if (!roce) return;
  if (second) {
    check.ok("network", "an interface besides eth0 is there");
  } else {
    check
        .fail("network",
              "this pod has eth0 alone: the RoCE interface is not in its network namespace, its GID table is empty",
              "annotations: {k8s.v1.cni.cncf.io/networks: NAME-OF-THE-RDMA-NETWORK} in the pod (Multus), or "
              "hostNetwork: true")
        .for_good("cluster side: SriovNetwork, HostDeviceNetwork or MacvlanNetwork of the network operator")
        .saw("/sys/class/net", "eth0 and lo only");
  }
}

void judge_gpu_side(const Survey& survey, const Check& check) {
  if (survey.gpus().empty()) {
    check.skip("GPU", "no GPU in this pod", container_gpus(survey.platform));
    return;
  }
  const bool peermem = !peer_memory(survey.modules).module.empty();
  const DmaBuf dmabuf = dma_buf(survey);
  if (peermem || dmabuf.works.value_or(false)) {
    check.ok("GPU", peermem ? "the node has a peer memory module" : "dma-buf serves");
  } else if (nvidia_driver(survey.machine).open && !dmabuf.works) {
    check.ok("GPU", "no peer memory module on the node; dma-buf may serve (open kernel module)");
  } else {
    check
        .fail("GPU", "the node has no peer memory module: the GPU operator runs no nvidia-peermem container there",
              "helm: --set driver.rdma.enabled=true; where the node has OFED itself: --set "
              "driver.rdma.useHostMofed=true; else the "
              "network operator with ofedDriver (DOCA-OFED) first")
        .for_good(
            "or without peermem: driver.kernelModuleType=open and dma-buf (GPU operator 23.9 and later, Linux 5.12 and "
            "later)")
        .saw("/proc/modules", "neither nvidia_peermem nor nv_peer_mem");
  }
}

}  // namespace

void check_kubernetes(const Survey& survey, Findings& findings) {
  const Check check(findings, "kubernetes",
                    "a pod gets devices, locked memory and a second network only where its manifest asks for them");
  if (survey.platform.runtime != Runtime::kKubernetes) {
    check.skip("", "not in a pod");
    return;
  }
  if (survey.machine.list("/sys/class/infiniband").empty() && plugin_variable(survey.platform).empty()) {
    check.skip("", "this node shows no RDMA device", container_devices(survey.platform));
    return;
  }
  judge_devices(survey, check);
  judge_lock(survey, check);
  judge_network(survey, check);
  judge_gpu_side(survey, check);
}

}  // namespace gdrperf::doctor
