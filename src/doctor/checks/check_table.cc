// All checks, in the order to work them through: nothing below helps while
// something above fails.

#include "doctor/checks/check_table.h"

#include <array>

namespace gdrperf::doctor {
namespace {

template <void (*check)(const Survey&, Findings&)>
void run(const Survey& survey, const Settings&, Findings& findings) {
  check(survey, findings);
}

void run_softnic(const Survey& survey, const Settings& settings, Findings& findings) {
  check_softnic(survey, settings, findings);
}

void run_kernel_log(const Survey& survey, const Settings& settings, Findings& findings) {
  check_kernel_log(survey, settings, findings);
}

void run_port_states(const Survey& survey, const Settings&, Findings& findings) {
  check_port_states(survey.ports, survey.platform, findings);
}

void run_gids(const Survey& survey, const Settings&, Findings& findings) {
  check_gids(survey.ports, survey.platform, findings);
}

void run_mtu(const Survey& survey, const Settings&, Findings& findings) {
  check_mtu(survey.ports, survey.platform, findings);
}

constexpr std::array kChecks = {
    CheckEntry{
        "rdma-device", "RDMA device", "`/sys/class/infiniband`, libibverbs, the PCI bus",
        "no device: the adapter's RDMA module is not loaded, it has no driver, it belongs to a VM, or there is none",
        run<check_rdma_device>},
    CheckEntry{"softnic", "RDMA device", "the software device's library", "it is not next to the program", run_softnic},
    CheckEntry{"libibverbs", "RDMA device", "whether the library is installed", "it is not: no RDMA program runs",
               run<check_libibverbs>},
    CheckEntry{"ib_uverbs", "RDMA device", "its devices and module", "not loaded", run<check_rdma_modules>},
    CheckEntry{"rdma_ucm", "RDMA device", "its device and module", "not loaded (matters to `-R` alone)",
               run<check_rdma_modules>},
    CheckEntry{"device-file", "RDMA device", "`/dev/infiniband/uverbsN`",
               "missing (containers), not readable and writable, or it does not open", run<check_device_files>},
    CheckEntry{"provider", "RDMA device", "whether libibverbs shows each device of the kernel's",
               "its user-space driver is missing, or an image has another than the host", run<check_provider>},
    CheckEntry{"versions", "RDMA device", "OFED, loaded modules, NVIDIA driver, kernel, peer memory module",
               "they are of different sources, or a pair that does not go together", run<check_versions>},
    CheckEntry{
        "firmware", "RDMA device", "firmware of each adapter",
        "older than the oldest that current drivers were tested with, or differing between adapters of one model",
        run<check_firmware>},
    CheckEntry{"nic-config", "RDMA device", "`mlxconfig query` (root)",
               "too few outstanding reads for GPUs (MAX_ACC_OUT_READ)", run<check_nic_config>},
    CheckEntry{"port-state", "Ports", "state and physical state of each port, its interface",
               "not ACTIVE; FAIL when no port is", run_port_states},
    CheckEntry{"port-type", "Ports", "InfiniBand or Ethernet, as set in the card (LINK_TYPE)",
               "no link, and the port could be set to the other type", run<check_port_type>},
    CheckEntry{"port-rate", "Ports", "rate of each port",
               "one lane only, or slower than another port of the same model", run<check_port_rate>},
    CheckEntry{"gid", "Ports", "the GID table of RoCE ports", "link-local RoCE v2 only; FAIL without RoCE v2",
               run_gids},
    CheckEntry{"gid-index", "Ports", "which index programs should take, `NCCL_IB_GID_INDEX`",
               "the variable names another, or the table begins with holes (pods)", run<check_gid_index>},
    CheckEntry{"netns", "Ports", "network namespace of the GIDs, `rdma system`",
               "they belong to interfaces of another one (macvlan pods)", run<check_netns>},
    CheckEntry{"mtu", "Ports", "active MTU against the largest, the interface's MTU",
               "smaller: an interface at 1500 gives 1024, from 4200 on 4096", run_mtu},
    CheckEntry{"subnet", "Ports", "several RoCE interfaces in one subnet; rp_filter, arp_ignore, arp_announce",
               "Linux answers for one of them from the other", run<check_subnets>},
    CheckEntry{"port-errors", "Ports", "counters and hw_counters of each port",
               "packets were lost, damaged or refused; FAIL from 1,000 lost packets and one in 100,000 on",
               run<check_counters>},
    CheckEntry{"link-flaps", "Ports", "link_downed and link_error_recovery", "above zero", run<check_counters>},
    CheckEntry{"flow-control", "Ports", "`ethtool -a`, `mlnx_qos`, `dcb`: pause, PFC, trust",
               "neither PFC nor pause, or PFC by a trust that does not reach it", run<check_flow_control>},
    CheckEntry{"ecn", "Ports", "`/sys/class/net/*/ecn`: congestion control by priority",
               "off for the priority that carries the data", run<check_ecn>},
    CheckEntry{"traffic-class", "Ports",
               "traffic class of RoCE packets, `NCCL_IB_TC`, `NCCL_GIN_IB_TC`, `UCX_IB_TRAFFIC_CLASS`, DSCP map",
               "their priority is not the lossless one", run<check_traffic_class>},
    CheckEntry{"nic-link", "PCIe", "link speed and width, now and at best; the slot's; the ports' rates",
               "below its best, and too little for the ports behind it (both functions of a card share one link)",
               run<check_nic_links>},
    CheckEntry{"gpu-link", "PCIe", "link width (an idle GPU clocks its speed down)", "fewer lanes than the GPU has",
               run<check_gpu_links>},
    CheckEntry{"common-root", "PCIe", "the PCIe root of each GPU and of its nearest NIC", "they share none",
               run<check_common_root>},
    CheckEntry{
        "acs", "PCIe", "`lspci -vvv` of the bridges between each GPU and each NIC, below the switch they share",
        "redirect is on; with Data Direct (ConnectX-8 DMA function), Grace and Vera: redirect is not as required there",
        run<check_acs>},
    CheckEntry{"iommu", "PCIe", "type of the IOMMU group of NICs and GPUs, the command line",
               "addresses are translated", run<check_iommu>},
    CheckEntry{"iommu-faults", "PCIe", "IOMMU faults in the kernel's log", "there are any: data was lost or is wrong",
               run_kernel_log},
    CheckEntry{"pcie-requests", "PCIe", "MaxPayload and MaxReadReq (root)",
               "a fast NIC asks in 512 bytes; payload below what both can", run<check_pcie_settings>},
    CheckEntry{"relaxed-ordering", "PCIe", "DevCtl (root), PCI_WR_ORDERING, CPU model",
               "turned off by the NIC's register or by a variable", run<check_pcie_settings>},
    CheckEntry{"aer", "PCIe", "error registers (root) and the log", "a link corrects or loses data",
               run<check_pcie_settings>},
    CheckEntry{"ats", "PCIe", "the ATS capability (root)", "off in a virtual machine with a GPU",
               run<check_pcie_settings>},
    CheckEntry{"bar1", "PCIe", "largest region of each GPU", "below 1 GiB", run<check_bars>},
    CheckEntry{"resizable-bar", "PCIe", "`resource*_resize` of each GPU", "its region is smaller than the GPU offers",
               run<check_resizable_bar>},
    CheckEntry{"mmio", "PCIe", "where the regions of GPUs lie", "above 32 TiB in a virtual machine", run<check_bars>},
    CheckEntry{"nvidia-driver", "GPUDirect RDMA", "each GPU's driver and its version, `nvidia-smi -L`",
               "no driver, another one, one with a known fault, or it does not answer", run<check_nvidia_driver>},
    CheckEntry{"amd-gpu", "GPUDirect RDMA", "amdgpu, its peer client, dma-buf in the kernel",
               "no driver, or neither way to a NIC", run<check_amd_gpus>},
    CheckEntry{"vgpu", "GPUDirect RDMA", "names of the GPUs", "a vGPU, whose memory no NIC took", run<check_vgpu>},
    CheckEntry{"gpu-registration", "GPUDirect RDMA",
               "GPU memory registered with each NIC, each way; what CUDA reports of each GPU",
               "refused; GeForce and GPUs that share memory with the CPU", run<check_gpu_registration>},
    CheckEntry{"dma-buf", "GPUDirect RDMA", "what GPU driver and NIC answer when asked",
               "not possible, and no peer memory module either", run<check_dma_buf>},
    CheckEntry{"peermem", "GPUDirect RDMA",
               "`nvidia_peermem` or `nv_peer_mem`: loaded, registered (`memory_peers`, `ib_core`, `ib_uverbs`)",
               "FAIL when neither it nor dma-buf can serve; the log, kallsyms and modinfo are asked why",
               run<check_peer_memory>},
    CheckEntry{"pair", "GPUDirect RDMA", "each GPU with its nearest NIC",
               "no NIC on the same switch, root or node: libraries stage through the host", run<check_pairs>},
    CheckEntry{"c2c", "GPUDirect RDMA", "Grace and Vera", "NCCL leaves GPUDirect RDMA off over C2C", run<check_c2c>},
    CheckEntry{"data-direct", "GPUDirect RDMA", "the DMA function of a ConnectX-8, `NCCL_IB_DATA_DIRECT`",
               "it has no driver, or a setting keeps NCCL from using it", run<check_data_direct>},
    CheckEntry{"topology-override", "GPUDirect RDMA", "`GrdmaPciTopoCheckOverride` of the NVIDIA driver (Grace, Vera)",
               "GPU and NIC are in different IOMMU groups, dma-buf is refused, and it is not set",
               run<check_topology_override>},
    CheckEntry{"gpu-initiated", "GPUDirect RDMA",
               "`PeerMappingOverride` and `EnableStreamMemOPs` of the NVIDIA driver, ConnectX-5 or later, dma-buf or "
               "peer memory",
               "half of the settings: a GPU cannot ring a NIC's doorbell itself; SKIP with the setting where there is "
               "none",
               run<check_gpu_initiated>},
    CheckEntry{
        "memlock", "Host",
        "`RLIMIT_MEMLOCK`, `CAP_IPC_LOCK`, and where the limit comes from (shell, unit, limits.d, slurmd, container)",
        "limited; FAIL below 64 MiB, where a sweep cannot register its buffers", run<check_memlock>},
    CheckEntry{"cgroup", "Host",
               "`cpu.max`, `memory.max`, `rdma.max` of this process's cgroup, memory nodes of its cpuset",
               "CPU time is limited, memory below 2 GiB, RDMA objects are few, or a NIC's node is left out",
               run<check_cgroup>},
    CheckEntry{"numa", "Host", "NUMA node of each NIC, CPUs of this process", "none of its CPUs is near",
               run<check_numa>},
    CheckEntry{"numa-balancing", "Host", "the kernel's setting", "on, with several nodes", run<check_numa_balancing>},
    CheckEntry{"governor", "Host", "cpufreq", "not `performance`", run<check_governor>},
    CheckEntry{"idle-states", "Host", "cpuidle", "a state that takes more than 50 us to leave", run<check_idle_states>},
    CheckEntry{"irqbalance", "Host", "whether it runs, `/proc/interrupts`",
               "most interrupts of a NIC are served by CPUs of another node", run<check_irqbalance>},
    CheckEntry{"hugepages", "Host", "huge pages reserved and free, transparent ones",
               "all reserved ones are in use, or there are none of either kind", run<check_huge_pages>},
    CheckEntry{"open-files", "Host", "`ulimit -n`", "below 1024", run<check_open_files>},
    CheckEntry{"firewall", "Host", "firewalld, nftables, iptables (root), ufw: control port, UDP 4791 for Soft-RoCE",
               "a port is not let in", run<check_firewall>},
    CheckEntry{"kernel-log", "Host", "`dmesg`",
               "it names a fault of these devices; lines known to be harmless are called so", run_kernel_log},
    CheckEntry{"container", "Containers and clouds", "`/dev/infiniband`, limits and network given to this container",
               "something is missing; the option of its runtime", run<check_container>},
    CheckEntry{"kubernetes", "Containers and clouds",
               "`/dev/infiniband`, IPC_LOCK, second network and peer memory of this pod",
               "one is missing; the lines of the manifest and the operators' settings", run<check_kubernetes>},
    CheckEntry{"cloud", "Containers and clouds", "Azure, AWS, Google, Oracle, Alibaba, other flat VMs",
               "a topology file or setting is missing", run<check_cloud>},
};

}  // namespace

std::span<const CheckEntry> check_table() { return kChecks; }

}  // namespace gdrperf::doctor
