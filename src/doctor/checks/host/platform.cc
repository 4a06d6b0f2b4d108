// Needs of clouds, Grace and AMD GPUs.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

bool set_to(const Platform& platform, const char* name, std::string_view value) {
  const auto it = platform.environment.find(name);
  return it != platform.environment.end() && (value.empty() || it->second == value);
}

/// Files of Azure's HPC images and of azhpc-images' topology folder, by GPU.
std::string azure_topology(const Survey& survey) {
  for (const std::string& name : gpu_names(survey)) {
    if (name.find("H200") != std::string::npos || name.find("H100") != std::string::npos) {
      return name.find("NVL") != std::string::npos ? "/opt/microsoft/ncv5/topo.xml" : "/opt/microsoft/ndv5-topo.xml";
    }
    if (name.find("A100") != std::string::npos) return "/opt/microsoft/ndv4-topo.xml";
    if (name.find("V100") != std::string::npos) return "/opt/microsoft/ndv2-topo.xml";
  }
  return survey.amd_gpus().empty() ? "/opt/microsoft/ndv5-topo.xml" : "/opt/microsoft/ndmi300xv5-topo.xml";
}

void judge_azure(const Survey& survey, const Check& check) {
  if (set_to(survey.platform, "NCCL_TOPO_FILE", "")) {
    check.ok("", "Azure, with NCCL_TOPO_FILE set");
    return;
  }
  check
      .warn("",
            "Azure VM: its PCI bus is flat, so that NCCL finds no NIC near a GPU and leaves GPUDirect RDMA off "
            "without Azure's topology file",
            fmt::format(
                "export NCCL_TOPO_FILE={}  # comes with Azure's HPC images (ND and NC types; else azhpc-images on "
                "GitHub); or NCCL_NET_GDR_LEVEL=SYS; in pods mount the file",
                azure_topology(survey)))
      .for_good("the same line in /etc/nccl.conf (without 'export')")
      .saw("/sys/class/dmi/id/chassis_asset_tag", "Azure");
}

void judge_aws(const Survey& survey, const Check& check) {
  const bool efa =
      std::any_of(survey.rdma.begin(), survey.rdma.end(), [](const auto& each) { return each.driver == "efa"; });
  if (!efa) {
    check.skip("", fmt::format("AWS {} without EFA", survey.platform.instance));
  } else {
    check.ok(
        "", fmt::format("AWS {} with EFA: NCCL needs the aws-ofi-nccl plugin (FI_PROVIDER=efa); GPUDirect RDMA on p4d, "
                        "p5 and later",
                        survey.platform.instance));
  }
}

void judge_google(const Survey& survey, bool pair, const Check& check) {
  if (!pair) {
    check.ok("", "Google Cloud; no GPU with an RDMA device (A3 Mega has GPUDirect-TCPXO instead)");
  } else if (set_to(survey.platform, "NCCL_NET", "gIB")) {
    check.ok("", "Google Cloud, with NCCL_NET=gIB");
  } else {
    check
        .warn("",
              "Google Cloud VM with GPU and RDMA (A3 Ultra, A4, A4X): its network wants the NCCL plugin gIB with its "
              "settings, and "
              "this environment has none",
              "source /usr/local/gib/scripts/set_nccl_env.sh  # of the package nccl-gib; in pods mount "
              "/home/kubernetes/bin/gib")
        .saw("environment", "no NCCL_NET=gIB");
  }
}

/// Oracle's manifests for its shapes set the traffic class of its fabric.
void judge_oracle(const Survey& survey, bool pair, const Check& check) {
  if (!pair) {
    check.ok("", "Oracle Cloud; no GPU with an RDMA device");
  } else if (set_to(survey.platform, "NCCL_IB_TC", "")) {
    check.ok("", "Oracle Cloud, with NCCL_IB_TC set");
  } else {
    check
        .warn("",
              "Oracle Cloud with GPU and RDMA: its fabric wants traffic class 41, and this environment does not set it",
              "export NCCL_IB_TC=41 NCCL_IB_SL=0 NCCL_IB_GID_INDEX=3 NCCL_IB_QPS_PER_CONNECTION=4 "
              "NCCL_IB_SPLIT_DATA_ON_QPS=0; the "
              "shape's own list: github.com/oracle-quickstart/oci-hpc-oke")
        .for_good("the same lines in /etc/nccl.conf (without 'export')")
        .saw("environment", "no NCCL_IB_TC");
  }
}

/// Whether no GPU shares a bridge with any NIC.
bool flat_bus(const Survey& survey) {
  const auto near = [&](const PciFunction& gpu, const PciFunction& nic) {
    return !gpu.bridges.empty() && !nic.bridges.empty() && gpu.root == nic.root &&
           gpu.bridges.front() == nic.bridges.front();
  };
  for (const auto& gpus : {survey.gpus(), survey.amd_gpus()}) {
    for (const PciFunction* gpu : gpus) {
      for (const PciFunction* nic : survey.nics()) {
        if (near(*gpu, *nic)) return false;
      }
    }
  }
  return true;
}

bool kernel_option(const Survey& survey, const char* option) {
  const std::string config = survey.machine.read("/boot/config-" + survey.platform.kernel).text;
  return config.empty() || config.find(std::string(option) + "=y") != std::string::npos;
}

std::string missing_options(const Survey& survey) {
  std::string missing;
  for (const char* option : {"CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"}) {
    if (!kernel_option(survey, option)) missing += (missing.empty() ? "" : ", ") + std::string(option);
  }
  return missing;
}

void judge_amd_path(const Survey& survey, const Check& check) {
  const auto clients = survey.machine.list("/sys/kernel/mm/memory_peers");
  const bool registered = std::any_of(clients.begin(), clients.end(),
                                      [](const auto& name) { return name.starts_with("amd"); });
  const bool exported = survey.machine.read("/proc/kallsyms").text.find("ib_register_peer_memory_client") !=
                        std::string::npos;
  // Only amdgpu-dkms has a version and a peer memory client; the kernel's own amdgpu has neither.
  const std::string dkms = line_of(survey.machine, "/sys/module/amdgpu/version");
  const std::string missing = missing_options(survey);
  const bool dma_buf = version_at_least(survey.platform.kernel, "5.12") && missing.empty();
  if (registered) {
    check.ok("", "amdgpu is registered as peer memory client");
  } else if (exported) {
    check
        .fail(
            "",
            "the RDMA stack exports ib_register_peer_memory_client, but no peer client registered "
            "(/sys/kernel/mm/memory_peers): RCCL takes the symbol for support, and registration ends in 'Bad address'",
            dma_buf
                ? version_at_least(survey.platform.kernel, "6.3")
                      ? "use dma-buf: HSA_FORCE_FINE_GRAIN_PCIE=1 NCCL_DMABUF_ENABLE=1 (from Linux 6.3 on amdgpu "
                        "cannot take OFED's symbol)"
                      : "use dma-buf: HSA_FORCE_FINE_GRAIN_PCIE=1 NCCL_DMABUF_ENABLE=1; or amdgpu-dkms built after OFED"
                : "install amdgpu-dkms after OFED, so that it registers; or a kernel with dma-buf for RDMA")
        .saw("/proc/kallsyms", "ib_register_peer_memory_client")
        .saw("/sys/kernel/mm/memory_peers", "no amdkfd");
  } else if (!dma_buf) {
    check.warn("",
               missing.empty() ? fmt::format("Linux {} registers no dma-buf with RDMA devices", survey.platform.kernel)
                               : fmt::format("this kernel is built without {}: no dma-buf for RDMA", missing),
               "a kernel from 5.12 on with these options, or amdgpu-dkms with OFED's peer memory");
  } else {
    check.ok(
        "",
        fmt::format(
            "{}, dma-buf possible (Linux {}): NCCL_DMABUF_ENABLE=1 with RCCL; no peer memory client is registered, so "
            "programs that register GPU memory by ibv_reg_mr fail (Bad address, or Invalid argument)",
            dkms.empty() ? "amdgpu" : "amdgpu-dkms " + dkms, survey.platform.kernel));
  }
}

}  // namespace

void check_cloud(const Survey& survey, Findings& findings) {
  const Check check(findings, "cloud",
                    "cloud VMs hide their PCI tree: libraries need a file that lists what is near what");
  const bool pair = (!survey.gpus().empty() || !survey.amd_gpus().empty()) && !survey.rdma.empty();
  switch (survey.platform.cloud) {
    case Cloud::kNone:
      if (survey.platform.virtual_machine && pair && flat_bus(survey) &&
          !set_to(survey.platform, "NCCL_TOPO_FILE", "")) {
        check.warn(
            "",
            "a virtual machine with a flat PCI bus: NCCL finds no NIC near a GPU and may leave GPUDirect RDMA off; "
            "without ATS "
            "and ACS direct translated on the host, it goes through the host's root complex, at a fraction of the rate",
            "in the guest: NCCL_NET_GDR_LEVEL=SYS, or a topology file of the host: NCCL_TOPO_FILE (NCCL_TOPO_DUMP_FILE "
            "writes "
            "one there); on the host: ATS of the NIC on (sudo mlxconfig -d DEVICE set ATS_ENABLED=true, then a power "
            "cycle; it "
            "stays) and ACS DirectTrans on the bridges above GPU and NIC, or a virtual PCIe switch for each pair");
      } else {
        check.skip("", "no cloud VM that is known");
      }
      return;
    case Cloud::kAzure:
      if (pair) {
        judge_azure(survey, check);
      } else {
        check.ok("", "Azure; no GPU with an RDMA device");
      }
      return;
    case Cloud::kAws: judge_aws(survey, check); return;
    case Cloud::kGoogle: judge_google(survey, pair, check); return;
    case Cloud::kOracle: judge_oracle(survey, pair, check); return;
    case Cloud::kAlibaba: check.ok("", "Alibaba Cloud: eRDMA is iWARP-like: rdma_cm (-R) connects it"); return;
  }
}

void check_c2c(const Survey& survey, Findings& findings) {
  const Check check(findings, "c2c", "over C2C the GPU's memory is near every NIC, whatever PCIe looks like");
  if (!survey.platform.grace || survey.gpus().empty()) {
    check.skip("", "no Grace or Vera with a GPU");
    return;
  }
  if (set_to(survey.platform, "NCCL_NET_GDR_LEVEL", "SYS") || set_to(survey.platform, "NCCL_NET_GDR_C2C", "1")) {
    check.ok("", "NCCL is set to use GPUDirect RDMA over C2C");
    return;
  }
  if (!survey.data_direct().empty()) {
    check.ok("", "Data Direct carries GPU memory to the NIC: C2C is not needed for it");
    return;
  }
  check.warn("", "Grace (C2C): NCCL leaves GPUDirect RDMA off between GPU and NIC by itself",
             "export NCCL_NET_GDR_LEVEL=SYS  # 13 to 20 % more; or a newer NCCL with NCCL_NET_GDR_C2C=1")
      .for_good("NCCL_NET_GDR_LEVEL=SYS in /etc/nccl.conf")
      .undo("unset NCCL_NET_GDR_LEVEL");
}

void check_amd_gpus(const Survey& survey, Findings& findings) {
  const Check check(findings, "amd-gpu",
                    "memory of AMD GPUs reaches a NIC through amdgpu: as peer memory, or as dma-buf");
  const auto gpus = survey.amd_gpus();
  if (gpus.empty()) {
    check.skip("", "no AMD GPU");
    return;
  }
  bool driven = false;
  for (const PciFunction* gpu : gpus) {
    if (gpu->driver == "amdgpu") {
      driven = true;
    } else if (gpu->driver == "vfio-pci") {
      check.skip(gpu->address, "reserved for a virtual machine (vfio-pci)");
    } else {
      check.fail(gpu->address,
                 gpu->driver.empty() ? "an AMD GPU without a driver" : "its driver is " + printable(gpu->driver),
                 "sudo modprobe amdgpu  # of amdgpu-dkms (ROCm)");
    }
  }
  if (driven && !survey.rdma.empty()) judge_amd_path(survey, check);
  if (driven && survey.rdma.empty()) check.ok("", "amdgpu; no RDMA device to register with");
}

void check_container(const Survey& survey, Findings& findings) {
  const Check check(findings, "container", "a container sees only the devices, limits and network that it was given");
  if (!survey.container) {
    check.skip("", "not in a container");
    return;
  }
  const bool devices = !survey.machine.list("/dev/infiniband").empty();
  const bool shown = !survey.machine.list("/sys/class/infiniband").empty();
  const char* name = to_string(survey.platform.runtime);
  if (shown && !devices) {
    check
        .fail("", fmt::format("{}: the host's RDMA devices are in /sys, but there is no /dev/infiniband in here", name),
              container_devices(survey.platform))
        .saw("/dev/infiniband", "missing");
  } else if (!shown) {
    check.skip("", fmt::format("{}: no RDMA device in /sys", name), container_devices(survey.platform));
  } else {
    check.ok("", fmt::format("{}, with /dev/infiniband", name));
  }
  if (survey.platform.runtime == Runtime::kKubernetes && survey.gpus().empty() && devices) {
    check.skip("", "no GPU in this pod", container_gpus(survey.platform));
  }
}

}  // namespace gdrperf::doctor
