// All checks, in the order to work them through: nothing below helps while
// something above fails.

#include "check_table.h"

#include <array>

namespace gdrperf::doctor {
namespace {

void run_rdma_device(const Survey& survey, const Settings&, Findings& findings) {
  check_rdma_device(survey, findings);
}

void run_softnic(const Survey& survey, const Settings& settings, Findings& findings) {
  check_softnic(survey, settings, findings);
}

void run_libibverbs(const Survey& survey, const Settings&, Findings& findings) {
  check_libibverbs(survey, findings);
}

void run_modules(const Survey& survey, const Settings&, Findings& findings) {
  check_rdma_modules(survey, findings);
}

void run_device_files(const Survey& survey, const Settings&, Findings& findings) {
  check_device_files(survey, findings);
}

void run_provider(const Survey& survey, const Settings&, Findings& findings) {
  check_provider(survey, findings);
}

void run_versions(const Survey& survey, const Settings&, Findings& findings) {
  check_versions(survey, findings);
}

void run_firmware(const Survey& survey, const Settings&, Findings& findings) {
  check_firmware(survey, findings);
}

void run_nic_config(const Survey& survey, const Settings&, Findings& findings) {
  check_nic_config(survey, findings);
}

void run_port_states(const Survey& survey, const Settings&, Findings& findings) {
  check_port_states(survey.ports, survey.platform, findings);
}

void run_port_rate(const Survey& survey, const Settings&, Findings& findings) {
  check_port_rate(survey, findings);
}

void run_gids(const Survey& survey, const Settings&, Findings& findings) {
  check_gids(survey.ports, survey.platform, findings);
}

void run_gid_index(const Survey& survey, const Settings&, Findings& findings) {
  check_gid_index(survey, findings);
}

void run_netns(const Survey& survey, const Settings&, Findings& findings) {
  check_netns(survey, findings);
}

void run_mtu(const Survey& survey, const Settings&, Findings& findings) {
  check_mtu(survey.ports, survey.platform, findings);
}

void run_subnets(const Survey& survey, const Settings&, Findings& findings) {
  check_subnets(survey, findings);
}

void run_counters(const Survey& survey, const Settings&, Findings& findings) {
  check_counters(survey, findings);
}

void run_flow_control(const Survey& survey, const Settings&, Findings& findings) {
  check_flow_control(survey, findings);
}

void run_nic_links(const Survey& survey, const Settings&, Findings& findings) {
  check_nic_links(survey, findings);
}

void run_gpu_links(const Survey& survey, const Settings&, Findings& findings) {
  check_gpu_links(survey, findings);
}

void run_acs(const Survey& survey, const Settings&, Findings& findings) {
  check_acs(survey, findings);
}

void run_iommu(const Survey& survey, const Settings&, Findings& findings) {
  check_iommu(survey, findings);
}

void run_kernel_log(const Survey& survey, const Settings&, Findings& findings) {
  check_kernel_log(survey, findings);
}

void run_pcie_settings(const Survey& survey, const Settings&, Findings& findings) {
  check_pcie_settings(survey, findings);
}

void run_bars(const Survey& survey, const Settings&, Findings& findings) {
  check_bars(survey, findings);
}

void run_nvidia_driver(const Survey& survey, const Settings&, Findings& findings) {
  check_nvidia_driver(survey, findings);
}

void run_amd_gpus(const Survey& survey, const Settings&, Findings& findings) {
  check_amd_gpus(survey, findings);
}

void run_gpu_registration(const Survey& survey, const Settings&, Findings& findings) {
  check_gpu_registration(survey, findings);
}

void run_dma_buf(const Survey& survey, const Settings&, Findings& findings) {
  check_dma_buf(survey, findings);
}

void run_peer_memory(const Survey& survey, const Settings&, Findings& findings) {
  check_peer_memory(survey, findings);
}

void run_pairs(const Survey& survey, const Settings&, Findings& findings) {
  check_pairs(survey, findings);
}

void run_c2c(const Survey& survey, const Settings&, Findings& findings) {
  check_c2c(survey, findings);
}

void run_memlock(const Survey& survey, const Settings&, Findings& findings) {
  check_memlock(survey, findings);
}

void run_numa(const Survey& survey, const Settings&, Findings& findings) {
  check_numa(survey, findings);
}

void run_numa_balancing(const Survey& survey, const Settings&, Findings& findings) {
  check_numa_balancing(survey, findings);
}

void run_governor(const Survey& survey, const Settings&, Findings& findings) {
  check_governor(survey, findings);
}

void run_idle_states(const Survey& survey, const Settings&, Findings& findings) {
  check_idle_states(survey, findings);
}

void run_irqbalance(const Survey& survey, const Settings&, Findings& findings) {
  check_irqbalance(survey, findings);
}

void run_huge_pages(const Survey& survey, const Settings&, Findings& findings) {
  check_huge_pages(survey, findings);
}

void run_open_files(const Survey& survey, const Settings&, Findings& findings) {
  check_open_files(survey, findings);
}

void run_firewall(const Survey& survey, const Settings&, Findings& findings) {
  check_firewall(survey, findings);
}

void run_container(const Survey& survey, const Settings&, Findings& findings) {
  check_container(survey, findings);
}

void run_cloud(const Survey& survey, const Settings&, Findings& findings) {
  check_cloud(survey, findings);
}

constexpr std::array kChecks = {
    CheckEntry{"rdma-device", "RDMA device",
               "`/sys/class/infiniband`, libibverbs, the PCI bus",
               "no device: the adapter's RDMA module is not loaded, it has no driver, it belongs to a VM, or there is none", run_rdma_device},
    CheckEntry{"softnic", "RDMA device",
               "the software device's library",
               "it is not beside the program", run_softnic},
    CheckEntry{"libibverbs", "RDMA device",
               "whether the library is installed",
               "it is not: no RDMA program runs", run_libibverbs},
    CheckEntry{"ib_uverbs", "RDMA device",
               "its devices and module",
               "not loaded", run_modules},
    CheckEntry{"rdma_ucm", "RDMA device",
               "its device and module",
               "not loaded (matters to `-R` alone)", run_modules},
    CheckEntry{"device-file", "RDMA device",
               "`/dev/infiniband/uverbsN`",
               "missing (containers), not readable and writable, or it does not open", run_device_files},
    CheckEntry{"provider", "RDMA device",
               "whether libibverbs shows each device of the kernel's",
               "its user-space driver is missing, or an image has another than the host", run_provider},
    CheckEntry{"versions", "RDMA device",
               "OFED, loaded modules, NVIDIA driver, kernel, peer memory module",
               "they are of different sources, or a pair that does not go together", run_versions},
    CheckEntry{"firmware", "RDMA device",
               "firmware of each adapter",
               "older than the oldest that current drivers were tested with, or differing between adapters of one model", run_firmware},
    CheckEntry{"nic-config", "RDMA device",
               "`mlxconfig query` (root)",
               "too few outstanding reads for GPUs (MAX_ACC_OUT_READ)", run_nic_config},
    CheckEntry{"port-state", "Ports",
               "state and physical state of each port, its interface",
               "not ACTIVE; FAIL when no port is", run_port_states},
    CheckEntry{"port-rate", "Ports",
               "rate of each port",
               "one lane only, or slower than another port of the same model", run_port_rate},
    CheckEntry{"gid", "Ports",
               "the GID table of RoCE ports",
               "link-local RoCE v2 only; FAIL without RoCE v2", run_gids},
    CheckEntry{"gid-index", "Ports",
               "which index programs should take, `NCCL_IB_GID_INDEX`",
               "the variable names another, or the table begins with holes (pods)", run_gid_index},
    CheckEntry{"netns", "Ports",
               "network namespace of the GIDs, `rdma system`",
               "they belong to interfaces of another one (macvlan pods)", run_netns},
    CheckEntry{"mtu", "Ports",
               "active MTU against the largest, the interface's MTU",
               "smaller: an interface at 1500 gives 1024, from 4200 on 4096", run_mtu},
    CheckEntry{"subnet", "Ports",
               "several RoCE interfaces in one subnet; rp_filter, arp_ignore, arp_announce",
               "Linux answers for one of them from the other", run_subnets},
    CheckEntry{"port-errors", "Ports",
               "counters and hw_counters of each port",
               "packets were lost, damaged or refused", run_counters},
    CheckEntry{"link-flaps", "Ports",
               "link_downed and link_error_recovery",
               "above zero", run_counters},
    CheckEntry{"flow-control", "Ports",
               "`ethtool -a`, `mlnx_qos`: pause, PFC, trust",
               "neither PFC nor pause, or PFC by a trust that does not reach it", run_flow_control},
    CheckEntry{"nic-link", "PCIe",
               "link speed and width, now and at best; the slot's; the ports' rates",
               "below its best, and too little for the ports behind it (both functions of a card share one link)", run_nic_links},
    CheckEntry{"gpu-link", "PCIe",
               "link width (an idle GPU clocks its speed down)",
               "fewer lanes than the GPU has", run_gpu_links},
    CheckEntry{"acs", "PCIe",
               "`lspci -vvv` of the bridges between each GPU and each NIC, below the switch they share",
               "redirect is on; with Data Direct (ConnectX-8 DMA function), Grace and Vera: redirect is not as required there", run_acs},
    CheckEntry{"iommu", "PCIe",
               "type of the IOMMU group of NICs and GPUs, the command line",
               "addresses are translated", run_iommu},
    CheckEntry{"iommu-faults", "PCIe",
               "IOMMU faults in the kernel's log",
               "there are any: data was lost or is wrong", run_kernel_log},
    CheckEntry{"pcie-requests", "PCIe",
               "MaxPayload and MaxReadReq (root)",
               "a fast NIC asks in 512 bytes; payload below what both can", run_pcie_settings},
    CheckEntry{"relaxed-ordering", "PCIe",
               "DevCtl (root), PCI_WR_ORDERING, CPU model",
               "turned off; or a CPU that needs it and nobody asks", run_pcie_settings},
    CheckEntry{"aer", "PCIe",
               "error registers (root) and the log",
               "a link corrects or loses data", run_pcie_settings},
    CheckEntry{"ats", "PCIe",
               "the ATS capability (root)",
               "told, not judged: virtual machines need it", run_pcie_settings},
    CheckEntry{"bar1", "PCIe",
               "largest region of each GPU",
               "below 1 GiB", run_bars},
    CheckEntry{"mmio", "PCIe",
               "where the regions of GPUs lie",
               "above 32 TiB in a virtual machine", run_bars},
    CheckEntry{"nvidia-driver", "GPUDirect RDMA",
               "each GPU's driver and its version, `nvidia-smi -L`",
               "no driver, another one, one with a known fault, or it does not answer", run_nvidia_driver},
    CheckEntry{"amd-gpu", "GPUDirect RDMA",
               "amdgpu, its peer client, dma-buf in the kernel",
               "no driver, or neither way to a NIC", run_amd_gpus},
    CheckEntry{"gpu-registration", "GPUDirect RDMA",
               "GPU memory registered with each NIC, each way; what CUDA says of each GPU",
               "refused; GeForce and GPUs that share memory with the CPU", run_gpu_registration},
    CheckEntry{"dma-buf", "GPUDirect RDMA",
               "what GPU driver and NIC answer when asked",
               "not possible, and no peer memory module either", run_dma_buf},
    CheckEntry{"peermem", "GPUDirect RDMA",
               "`nvidia_peermem` or `nv_peer_mem`: loaded, registered (`memory_peers`, `ib_core`, `ib_uverbs`)",
               "FAIL when neither it nor dma-buf can serve; the log, kallsyms and modinfo are asked why", run_peer_memory},
    CheckEntry{"pair", "GPUDirect RDMA",
               "each GPU with its nearest NIC",
               "no NIC on the same switch, root or node: libraries stage through the host", run_pairs},
    CheckEntry{"c2c", "GPUDirect RDMA",
               "Grace and Vera",
               "NCCL leaves GPUDirect RDMA off over C2C", run_c2c},
    CheckEntry{"memlock", "Host",
               "`RLIMIT_MEMLOCK`, `CAP_IPC_LOCK`, and where the limit comes from (shell, unit, limits.d, slurmd, container)",
               "limited; FAIL below 64 MiB, where a sweep cannot register its buffers", run_memlock},
    CheckEntry{"numa", "Host",
               "NUMA node of each NIC, CPUs of this process",
               "none of its CPUs is near", run_numa},
    CheckEntry{"numa-balancing", "Host",
               "the kernel's setting",
               "on, with several nodes", run_numa_balancing},
    CheckEntry{"governor", "Host",
               "cpufreq",
               "not `performance`", run_governor},
    CheckEntry{"idle-states", "Host",
               "cpuidle",
               "a state that takes more than 50 us to leave", run_idle_states},
    CheckEntry{"irqbalance", "Host",
               "whether it runs",
               "told, not judged", run_irqbalance},
    CheckEntry{"hugepages", "Host",
               "free huge pages",
               "told, not judged", run_huge_pages},
    CheckEntry{"open-files", "Host",
               "`ulimit -n`",
               "below 1024", run_open_files},
    CheckEntry{"firewall", "Host",
               "firewalld: control port, UDP 4791 for Soft-RoCE",
               "not among its ports", run_firewall},
    CheckEntry{"kernel-log", "Host",
               "`dmesg`",
               "it names a fault of these devices; lines known to be harmless are called so", run_kernel_log},
    CheckEntry{"container", "Containers and clouds",
               "`/dev/infiniband`, limits and network given to this container",
               "something is missing; the option of its runtime", run_container},
    CheckEntry{"cloud", "Containers and clouds",
               "Azure, AWS, Google, Oracle, Alibaba, other flat VMs",
               "a topology file or setting is missing", run_cloud},
};

}  // namespace

std::span<const CheckEntry> check_table() { return kChecks; }

}  // namespace gdrperf::doctor
