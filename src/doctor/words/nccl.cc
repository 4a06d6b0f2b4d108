// Words of NCCL and RCCL.

#include <array>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kNcclRules = {
    WordRule{"gid", Verdict::kFail, {"got completion", "status=12|error 12", "localgid fe80"}, nullptr, nullptr,
             "completion error 12 over a link-local GID (localGid fe80...): the other end is not reached from it",
             "a link-local GID is not routed, and mostly has no answer beyond its own link",
             "export NCCL_IB_GID_INDEX=3  # the RoCE v2/IPv4 index that show_gids or 'gdrperf devices' prints; give the "
             "interface an IPv4 address where there is none"},
    WordRule{"memlock", Verdict::kFail, {"ibv_reg_dmabuf_mr", "cannot allocate memory", nullptr}, nullptr, nullptr,
             "GPU memory could not be registered as dma-buf (Cannot allocate memory): the memlock limit, or buffers larger "
             "than BAR1 or the NIC allow (NCCL_BUFFSIZE)",
             "registered memory counts against memlock and takes room in BAR1",
             "ulimit -l inside the job: unlimited? NCCL_BUFFSIZE at its default? nvidia-smi -q -d MEMORY (BAR1); docker "
             "--ulimit memlock=-1"},
    WordRule{"memlock", Verdict::kFail, {"ibv_create_cq|ibv_create_comp_channel", "cannot allocate memory", nullptr}, nullptr, "max locked memory",
             "a CQ could not be created (Cannot allocate memory): the memlock limit of the process, or of the daemon that "
             "started it",
             "queues are locked memory, too",
             "ulimit -l inside the job; LimitMEMLOCK=infinity for slurmd or sshd, docker --ulimit memlock=-1, then restart "
             "that daemon"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "retry_exc_err|error 12,|error 12 |status=12", nullptr}, nullptr, nullptr,
             "completion error 12 (retry exceeded): the two NICs cannot reach each other; when it comes at once, the GID index is a "
             "link-local or RoCE v1 one",
             "the other end did not answer in time: packets did not get through, or not back",
             "export NCCL_IB_GID_INDEX=3  # the RoCE v2/IPv4 index that show_gids or 'gdrperf devices' prints, at every rank; then "
             "addresses, routes, PFC and the switch: gdrperf write_bw HOST"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "wr_flush_err|error 5,|error 5 |status=5", nullptr}, nullptr, nullptr,
             "completion error 5 (flushed): it follows the first error, which is often at the other end",
             "the QP was in error already: what broke it stands earlier, or in the log of the peer",
             "read the first error of every rank (NCCL_DEBUG=INFO): 12 there means the network, 10 or 11 memory at the other end"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "loc_prot_err|error 4,|error 4 |status=4", nullptr}, nullptr, nullptr,
             "completion error 4 (local protection): memory of this end went away, or the NIC could not reach it",
             "the registered memory and what the NIC was told to move do not agree",
             "sudo gdrperf doctor  # acs and iommu first; then differing MTU at both ends ('local access violation'), which gdrperf "
             "doctor HOST compares; test with NCCL_NET_GDR_LEVEL=LOC"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "rem_access_err|error 10,|error 10 |status=10", nullptr}, nullptr, nullptr,
             "completion error 10 (remote access): the other end refused the address or key: its memory is not registered as this end "
             "believes",
             "remote keys and memory do not agree",
             "the first error of the other rank; the IOMMU there must be off or in passthrough (gdrperf doctor)"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "rem_op_err|error 11,|error 11 |status=11", nullptr}, nullptr, nullptr,
             "completion error 11 (remote operation): the NIC at the other end could not read or write its memory",
             "the other end has the fault",
             "gdrperf doctor on that machine: ACS, IOMMU, peer memory; its dmesg"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "rem_inv_req_err|error 9,|error 9 |status=9", nullptr}, nullptr, nullptr,
             "completion error 9 (remote invalid request): the two ends do not agree about sizes or operations",
             "both ends must run the same NCCL with the same settings",
             "same NCCL version and NCCL_* variables at every rank"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "rnr_retry_exc_err|error 13,|error 13 |status=13", nullptr}, nullptr, nullptr,
             "completion error 13 (receiver not ready): the other end posted no receive in time",
             "the other rank is stuck or too slow",
             "look at the rank that hangs; NCCL_IB_RETRY_CNT=7 is the default"},
    WordRule{"nccl", Verdict::kFail, {"got completion", "loc_len_err|error 1,|error 1 |status=1 ", nullptr}, nullptr, nullptr,
             "completion error 1 (local length): a message longer than the receive that was posted for it",
             "both ends must agree about sizes",
             "same NCCL version and NCCL_* variables at every rank"},
    WordRule{"nccl", Verdict::kFail, {"local access violation", nullptr, nullptr}, nullptr, nullptr,
             "local access violation: packets larger than the other end agreed to, or memory that was "
             "not registered",
             "both ends must agree about MTU and memory",
             "set the same MTU at both servers and the switch (ip link set NETDEV mtu 9000); gdrperf "
             "doctor HOST compares both ends"},
    WordRule{"memlock", Verdict::kFail, {"ibv_reg_mr", "cannot allocate memory", nullptr}, nullptr, nullptr,
             "memory could not be registered (Cannot allocate memory): the memlock limit of the "
             "process, or of the daemon that started it",
             "limits come from what starts the ranks (sshd, slurmd, orted, containers), not from the "
             "shell one looks with",
             "ulimit -l inside the job, e.g. mpirun -n 1 bash -c 'ulimit -l'; raise it where it comes "
             "from: LimitMEMLOCK=infinity for slurmd or sshd, docker --ulimit memlock=-1, then "
             "restart that daemon",
             "printf '* - memlock unlimited\\n' | sudo tee /etc/security/limits.d/99-rdma.conf"},
    WordRule{"peermem", Verdict::kFail, {"ibv_reg_mr", "bad address", nullptr}, nullptr, nullptr,
             "GPU memory could not be registered (Bad address): no peer memory module serves, or this "
             "GPU does no GPUDirect RDMA (GeForce, GB10)",
             "without peer memory or dma-buf a NIC cannot be given GPU memory",
             "with the open driver: NCCL_DMABUF_ENABLE=1; else nvidia_peermem (driver 470 and later, on the host, not in a pod); "
             "with AMD GPUs: dma-buf (NCCL_DMABUF_ENABLE=1); gdrperf doctor on that machine says which"},
    WordRule{"dma-buf", Verdict::kFail, {"ibv_reg_dmabuf_mr", "not supported", nullptr}, nullptr, nullptr,
             "the NIC's driver registers no dma-buf (Operation not supported)",
             "dma-buf needs kernel, NIC driver and GPU driver together",
             "kernel 5.12 or later (or OFED 5.5 and later), or nvidia_peermem with "
             "NCCL_DMABUF_ENABLE=0"},
    WordRule{"dma-buf", Verdict::kFail, {"ibv_reg_dmabuf_mr", "failed", nullptr}, nullptr, nullptr,
             "GPU memory could not be registered as dma-buf",
             "dma-buf needs kernel, NIC driver and GPU driver together",
             "gdrperf doctor on that machine says which of them lacks it; NCCL_DMABUF_ENABLE=0 with "
             "nvidia_peermem goes round it"},
    WordRule{"amd-gpu", Verdict::kWarn, {"gpu direct rdma disabled", nullptr, nullptr}, "rccl version", nullptr,
             "RCCL finds no interface between amdgpu and the RDMA stack: the kernel's own amdgpu and RDMA modules have no peer memory in "
             "common",
             "data goes through host memory: half of the rate or less",
             "dma-buf: NCCL_DMABUF_ENABLE=1 with a kernel that has CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY; or amdgpu-dkms "
             "installed after OFED, which then registers as a peer (/sys/kernel/mm/memory_peers)"},
    WordRule{"nccl", Verdict::kWarn, {"gpu direct rdma disabled", nullptr, nullptr}, nullptr, "c2c",
             "NCCL uses no GPUDirect RDMA with this NIC: it found neither peer memory "
             "(/sys/kernel/mm/memory_peers/nv_mem*/version, nvidia_peermem) nor dma-buf, or the NIC "
             "is too far",
             "data goes through host memory: half of the rate or less",
             "gdrperf doctor here: peermem, dma-buf, amd-gpu; with NVIDIA GPUs and driver 470 or later nvidia_peermem is loaded on the host, "
             "with AMD GPUs there is none: dma-buf. It is loaded? NCCL before 2.23 does not look for it "
             "under its new name: update NCCL; in VMs of clouds also NCCL_TOPO_FILE"},
    WordRule{"nccl", Verdict::kWarn, {"gpu direct rdma", "disabled", "distance"}, nullptr, nullptr,
             "NCCL leaves GPUDirect RDMA off because GPU and NIC are too far apart for its level",
             "the default allows one PCIe switch or the same host bridge",
             "NCCL_NET_GDR_LEVEL=SYS  # measure both ways: gdrperf write_bw HOST --buffer cuda:0 "
             "--path both; in VMs: NCCL_TOPO_FILE"},
    WordRule{"nccl", Verdict::kWarn, {"gdr 0", nullptr, nullptr}, nullptr, "c2c",
             "NCCL goes through host memory (GDR 0): GPUDirect RDMA is off for this pair",
             "half of the rate or less, and CPU memory is busy",
             "NCCL_NET_GDR_LEVEL=PHB or SYS when GPU and NIC are far apart; else gdrperf doctor on "
             "that machine: peermem, dma-buf, ACS"},
    WordRule{"nccl", Verdict::kWarn, {"c2c", nullptr, nullptr}, "gdr 0", nullptr,
             "Grace with C2C: NCCL leaves GPUDirect RDMA off there by itself",
             "measured, the direct path is 13 to 20 % faster there",
             "NCCL_NET_GDR_LEVEL=SYS  # or a newer NCCL, with NCCL_NET_GDR_C2C=1"},
    WordRule{"peermem", Verdict::kWarn, {"no peer-to-peer", nullptr, nullptr}, nullptr, nullptr,
             "no peer-to-peer between GPUs or GPU and NIC: NCCL goes through host memory",
             "a bridge, an IOMMU or the platform forbids it",
             "gdrperf doctor on that machine: acs, iommu, gpu-registration; nvidia-smi topo -p2p r"},
    WordRule{"nccl", Verdict::kFail, {"ibv_modify_qp", "connection timed out|110", nullptr}, nullptr, nullptr,
             "the QP could not be connected (Connection timed out): the NIC of the other end is not "
             "reachable from this one; typical of rail-only fabrics, where rails do not meet",
             "with several NICs NCCL connects across rails unless told not to",
             "export NCCL_CROSS_NIC=0  # rails that are not connected; then check each pair of NICs "
             "with gdrperf write_bw HOST -d NIC --peer-dev NIC"},
    WordRule{"netns", Verdict::kFail, {"ibv_modify_qp", "no such device", nullptr}, nullptr, nullptr,
             "the QP could not be connected (No such device): the GID index is empty here, or the GID belongs to an interface of "
             "another network namespace, as in macvlan and ipvlan pods",
             "a GID can only be used where its interface lives",
             "is it a pod? Its GID index is its own: NCCL_IB_GID_INDEX=INDEX of the RoCE v2/IPv4 entry that show_gids lists in it, or a newer "
             "NCCL, which finds it; else hostNetwork: true, or an SR-IOV VF with its own RDMA device"},
    WordRule{"gid", Verdict::kFail, {"ibv_modify_qp", "invalid argument", nullptr}, nullptr, nullptr,
             "the QP could not be connected (Invalid argument): the GID index does not fit: empty "
             "here, or IPv4 at one end and link-local or IPv6 at the other",
             "both ends must use GIDs of one kind",
             "export NCCL_IB_GID_INDEX=3  # the RoCE v2/IPv4 one of show_gids, the same kind at each "
             "end"},
    WordRule{"gid", Verdict::kFail, {"ibv_modify_qp", "no data available", nullptr}, nullptr, nullptr,
             "the QP could not be connected (No data available): the GID index is empty here",
             "the table has holes, and differs from pod to pod",
             "name an index that show_gids lists: NCCL_IB_GID_INDEX, or newer NCCL, which looks for "
             "one itself"},
    WordRule{"gid", Verdict::kFail, {"ibv_modify_qp", "network is unreachable", nullptr}, nullptr, nullptr,
             "the QP could not be connected (Network is unreachable): there is no route to the other "
             "NIC",
             "RoCE v2 follows the IP routes of its interface",
             "ip route get ADDRESS oif NETDEV  # give each NIC a route (or its own table) to the "
             "networks of the others"},
    WordRule{"gid", Verdict::kFail, {"gid_attrs", "invalid argument|no such", nullptr}, nullptr, nullptr,
             "reading an empty index of the GID table failed: the table has holes, as in pods that "
             "own only some of its indexes",
             "the indexes of a pod are not those of the host",
             "name one that is filled: NCCL_IB_GID_INDEX (show_gids in the pod), or a newer NCCL, "
             "which skips holes"},
    WordRule{"device-file", Verdict::kFail, {"unable to open device", nullptr, nullptr}, nullptr, nullptr,
             "the RDMA device is listed but its file cannot be opened: in a container /dev/infiniband "
             "was not passed in",
             "programs reach RDMA devices through /dev/infiniband/uverbsN",
             "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1 "
             "--network=host ...; in Kubernetes an RDMA resource in the pod"},
    WordRule{"rdma-device", Verdict::kWarn, {"net/ib", "no device found", nullptr}, nullptr, nullptr,
             "NCCL finds no RDMA device and falls back to sockets",
             "TCP is several times slower",
             "gdrperf doctor here; NCCL_IB_HCA or NCCL_IB_DISABLE may hide devices; in containers "
             "pass /dev/infiniband in"},
    WordRule{"libibverbs", Verdict::kFail, {"failed to open libibverbs.so", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs is not installed there",
             "RDMA programs load it",
             "sudo apt-get install libibverbs1 ibverbs-providers  # dnf install libibverbs rdma-core; "
             "in the image of a container, too"},
    WordRule{"nccl", Verdict::kFail, {"call to ibv_create_qp failed", "cannot allocate memory", nullptr}, nullptr, nullptr,
             "a QP could not be created (Cannot allocate memory): memlock, or the NIC is out of QPs",
             "queues are locked memory, too",
             "ulimit -l unlimited where the ranks are started; fewer channels: NCCL_MAX_NCHANNELS, "
             "NCCL_IB_QPS_PER_CONNECTION"},
    WordRule{"nccl", Verdict::kWarn, {"ncclgin", "hang", nullptr}, nullptr, nullptr,
             "a GIN run that hangs: packets of the path MTU do not fit through the interfaces",
             "a library may use path MTU 4096 over interfaces of 1500",
             "sudo ip link set NETDEV mtu 9000 at both ends and the switch; or a newer NCCL, which "
             "reads active_mtu"},
    WordRule{"gid", Verdict::kFail, {"ibv_modify_qp", "no route to host", nullptr}, nullptr, nullptr,
             "the QP could not be connected (No route to host): there is no route or no ARP answer to "
             "the other NIC",
             "RoCE v2 follows the IP routes of its interface",
             "ip route get ADDRESS oif NETDEV; ping -I NETDEV ADDRESS; several interfaces in one "
             "subnet: arp_ignore, arp_announce, rp_filter (gdrperf doctor: subnet)"},
    WordRule{"acs", Verdict::kWarn, {"acs is enabled", nullptr, nullptr}, nullptr, nullptr,
             "ACS is on at a bridge: peer-to-peer goes up to the root complex",
             "GPU and NIC below one switch lose their direct way",
             "sudo gdrperf doctor  # names the bridges between GPU and NIC, and leaves the others "
             "alone"},
    WordRule{"iommu", Verdict::kWarn, {"missing \"iommu=pt\"", nullptr, nullptr}, nullptr, nullptr,
             "RCCL misses iommu=pt on the kernel command line",
             "with address translation on, GPUDirect RDMA is slow or hangs",
             "iommu=pt on the kernel's command line, then reboot (gdrperf doctor prints the command "
             "of this distribution)"},
    WordRule{"numa-balancing", Verdict::kWarn, {"numa auto balancing enabled", nullptr, nullptr}, nullptr, nullptr,
             "automatic NUMA balancing is on",
             "the kernel unmaps and migrates pages in the middle of a run; on Hyper-V RCCL turns "
             "GPUDirect RDMA off for it",
             "sudo sysctl -w kernel.numa_balancing=0  # for good: /etc/sysctl.d/90-rdma.conf"},
    WordRule{"amd-gpu", Verdict::kWarn, {"missing \"hsa_force_fine_grain_pcie=1\"", nullptr, nullptr}, nullptr, nullptr,
             "RCCL misses HSA_FORCE_FINE_GRAIN_PCIE=1",
             "peer-to-peer over PCIe needs fine-grained memory",
             "export HSA_FORCE_FINE_GRAIN_PCIE=1"},
    WordRule{"libfabric", Verdict::kWarn, {"net/ofi", "no eligible providers", nullptr}, nullptr, nullptr,
             "the OFI plugin finds no provider: EFA is missing in this instance or container",
             "NCCL falls back to sockets",
             "pass the EFA in (--device=/dev/infiniband, vpc.amazonaws.com/efa in pods); "
             "FI_PROVIDER=efa; fi_info -p efa"},
    WordRule{"libfabric", Verdict::kWarn, {"selected provider is tcp", nullptr, nullptr}, nullptr, nullptr,
             "the OFI plugin runs over TCP, not EFA",
             "TCP is several times slower",
             "FI_PROVIDER=efa; fi_info -p efa must list it: driver, security group and /dev/infiniband"},
    WordRule{"nccl", Verdict::kFail, {"async", "port error", nullptr}, nullptr, nullptr,
             "the port went down in the middle of a run",
             "transfers end when a link goes down",
             "sudo mlxlink -d DEVICE -m; the switch's log"},
    WordRule{"gid", Verdict::kWarn, {"gid table change", nullptr, nullptr}, nullptr, nullptr,
             "the GID table changed in the middle of a run: an address came or went",
             "QPs that use the old entry break",
             "fixed addresses on RoCE interfaces (no DHCP renewals, no bond flaps)"},
    WordRule{"control-port", Verdict::kFail, {"socketstartconnect", "failed", nullptr}, nullptr, nullptr,
             "the bootstrap connection of NCCL failed: a wrong interface (docker0, 172.17.x) or a "
             "firewall",
             "ranks find each other over TCP first",
             "export NCCL_SOCKET_IFNAME=NETDEV  # the interface all nodes share; open its ports"},
    WordRule{"control-port", Verdict::kFail, {"no socket interface found", nullptr, nullptr}, nullptr, nullptr,
             "NCCL finds no interface for its bootstrap",
             "ranks find each other over TCP first",
             "export NCCL_SOCKET_IFNAME=NETDEV"},
    WordRule{"nccl", Verdict::kOk, {"ibv_set_ece", "not supported", nullptr}, nullptr, nullptr,
             "harmless: this NIC or firmware has no enhanced connection establishment (ECE); NCCL goes on without",
             "",
             ""},
    WordRule{"nccl", Verdict::kOk, {"mlx5dv_get_data_direct_sysfs_path", "failed", nullptr}, nullptr, nullptr,
             "harmless: this NIC has no Data Direct function, which only a ConnectX-8 has",
             "",
             ""},
    WordRule{"nccl", Verdict::kOk, {"libnccl-net", "no plugin found|cannot open shared object|could not find", nullptr}, nullptr, nullptr,
             "harmless: no network plugin is installed; NCCL uses its own InfiniBand transport",
             "",
             ""},
    WordRule{"shm", Verdict::kFail, {"shared memory segment", "/dev/shm|size", nullptr}, nullptr, nullptr,
             "shared memory is full or too small: in containers /dev/shm has 64 MiB unless told otherwise",
             "NCCL exchanges data between ranks of a host through /dev/shm",
             "docker run --shm-size=16g ... or --ipc=host; Kubernetes: an emptyDir with medium: Memory at /dev/shm"},
    WordRule{"nccl", Verdict::kWarn, {"socketprogress|socketrecv|call to recv from", "connection reset|broken pipe|connection closed", nullptr}, nullptr, nullptr,
             "another rank ended first: this one only lost its connection",
             "the cause stands in the log of the rank that ended",
             "the first error of every rank (NCCL_DEBUG=INFO; its dmesg, for the OOM killer)"},
    WordRule{"nccl", Verdict::kWarn, {"watchdog caught collective operation timeout", nullptr, nullptr}, nullptr, nullptr,
             "a rank hangs or fell behind: this message says not why",
             "a collective waits for all ranks: one that crashed, or a network that lost packets, looks the same",
             "which rank is missing, and its first error (NCCL_DEBUG=INFO, TORCH_NCCL_TRACE_BUFFER_SIZE=2000); then 'gdrperf "
             "doctor' on that machine: port-errors, link-flaps, acs, iommu"},
    WordRule{"nccl", Verdict::kFail, {"async event", "local catastrophic error|device fatal", nullptr}, nullptr, nullptr,
             "the NIC failed in the middle of a run (local catastrophic error)",
             "its firmware stopped; all its QPs are gone",
             "sudo dmesg | grep mlx5_core: health, PCIe errors; sudo mlxfwreset -d DEVICE reset; update its firmware"},
    WordRule{"nccl", Verdict::kOk, {"via net/ib", "gdrdma", nullptr}, nullptr, nullptr,
             "GPUDirect RDMA is used: data goes the direct way (GDRDMA)",
             "",
             ""},
    WordRule{"nccl", Verdict::kWarn, {"via net/ib/", nullptr, nullptr}, nullptr, "gdrdma",
             "NCCL goes through host memory on this channel (NET/IB without GDRDMA)",
             "half of the rate or less, and CPU memory is busy",
             "'gdrperf doctor' on that machine: peermem, dma-buf, pair; NCCL_NET_GDR_LEVEL=PHB or SYS when GPU and NIC are "
             "far apart; in VMs of clouds NCCL_TOPO_FILE"},
    WordRule{"nccl", Verdict::kWarn, {"via net/socket|using network socket", nullptr, nullptr}, nullptr, nullptr,
             "NCCL uses sockets (TCP), not RDMA",
             "TCP is several times slower",
             "NCCL_DEBUG=INFO: the lines of NET/IB say why; NCCL_IB_DISABLE unset, NCCL_IB_HCA naming devices that exist, "
             "/dev/infiniband in containers; EFA: the aws-ofi-nccl plugin"},
    WordRule{"acs", Verdict::kWarn, {"p2p is disabled between|could not enable p2p between", nullptr, nullptr}, nullptr, nullptr,
             "P2P between GPUs is off: ACS or an IOMMU redirects it, or the platform forbids it",
             "GPUs of one host then exchange data through host memory",
             "sudo gdrperf doctor  # acs, iommu; nvidia-smi topo -p2p r; in virtual machines the host decides"},
    WordRule{"nccl", Verdict::kOk, {"gpu direct rdma", "enabled for hca|(dmabuf) enabled|(peermem) enabled", nullptr}, nullptr, nullptr,
             "GPUDirect RDMA is enabled for this NIC",
             "",
             ""},
    WordRule{"dma-buf", Verdict::kOk, {"dma-buf is available on gpu", nullptr, nullptr}, nullptr, nullptr,
             "dma-buf is available, says NCCL",
             "",
             ""},
    WordRule{"nccl", Verdict::kSkip, {"unhandled system error|nccl_error_system_error|ncclsystemerror|system call (e.g. socket, malloc)", nullptr, nullptr}, nullptr, nullptr,
             "NCCL names no cause in this line",
             "the line before it does, once asked",
             "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET, then read that output here"},
};

}  // namespace

std::span<const WordRule> nccl_words() { return kNcclRules; }

}  // namespace gdrperf::doctor
