// Words of UCX, libfabric and libibverbs.

#include <array>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kUcxRules = {
    WordRule{"gid", Verdict::kFail, {"ibv_create_ah", "connection timed out", nullptr}, nullptr, nullptr,
             "the other NIC did not answer ARP (address handle: Connection timed out): no route between the two addresses, "
             "or the GID is of another network",
             "RoCE v2 sends to the MAC that ARP finds for the address",
             "ping -I NETDEV ADDRESS; ip route get ADDRESS oif NETDEV; UCX_IB_GID_INDEX and UCX_NET_DEVICES of one network "
             "at both ends"},
    WordRule{"memlock", Verdict::kFail, {"failed", "please set max locked memory", nullptr}, nullptr, "current:",
             "memory could not be registered under the memlock limit",
             "memory that NICs use is locked",
             "ulimit -l unlimited where the job is started; docker --ulimit memlock=-1"},
    WordRule{"roce-loss", Verdict::kFail, {"transport retry count exceeded", nullptr, nullptr}, "roce", nullptr,
             "packets get lost on a RoCE fabric until the sender gives up: neither the switch nor the "
             "NIC is set up for loss",
             "the other end did not answer in time: packets did not get through, or not back",
             "make the priority lossless (mlnx_qos -i NETDEV --trust dscp --pfc 0,0,0,1,0,0,0,0, at "
             "each end and the switch), or let the NIC cope: mlxreg -d DEVICE --reg_name ROCE_ACCEL "
             "--set roce_adp_retrans_en=1,roce_slow_restart_en=1,roce_tx_window_en=1"},
    WordRule{"roce-loss", Verdict::kFail, {"transport retry count exceeded", nullptr, nullptr}, nullptr, nullptr,
             "the other end did not answer: lost packets (lossy RoCE fabric), a path that does not "
             "lead there, or a peer that died",
             "the other end did not answer in time: packets did not get through, or not back",
             "ethtool -S NETDEV | grep -E 'discard|out_of_seq' at both ends: lossy? Then PFC "
             "(mlnx_qos) or roce_accl (roce_adp_retrans_en=1); else addresses and routes: gdrperf "
             "write_bw HOST"},
    WordRule{"roce-loss", Verdict::kFail, {"retry_exc", nullptr, nullptr}, nullptr, nullptr,
             "the other end did not answer: lost packets (lossy RoCE fabric), a path that does not "
             "lead there, or a peer that died",
             "the other end did not answer in time: packets did not get through, or not back",
             "ethtool -S NETDEV | grep -E 'discard|out_of_seq' at both ends: lossy? Then PFC "
             "(mlnx_qos) or roce_accl (roce_adp_retrans_en=1); else GID index, addresses and routes: "
             "gdrperf write_bw HOST"},
    WordRule{"versions", Verdict::kFail, {"devx", "failed", "event|uar|obj_create|open_device|general_cmd"}, nullptr, nullptr,
             "DEVX calls fail: the kernel's own mlx5_ib is loaded below a user space of MLNX_OFED (or "
             "the other way round)",
             "user space and kernel modules must come from one source",
             "modinfo mlx5_ib | grep -E 'filename|^version'; ofed_info -s; reinstall OFED for the "
             "running kernel (--add-kernel-support), then sudo /etc/init.d/openibd restart; or "
             "UCX_IB_MLX5_DEVX=n"},
    WordRule{"ucx", Verdict::kWarn, {"gpu_direct_rdma is not available", nullptr, nullptr}, nullptr, nullptr,
             "UCX finds no GPUDirect RDMA: neither a peer memory module nor dma-buf",
             "GPU data goes through host memory",
             "sudo modprobe nvidia_peermem, or a UCX of 1.14 and later with dma-buf "
             "(UCX_IB_GPU_DIRECT_RDMA=y tells why not)"},
    WordRule{"relaxed-ordering", Verdict::kWarn, {"pci_relaxed_ordering", nullptr, nullptr}, nullptr, nullptr,
             "UCX registers memory without relaxed ordering here",
             "on Sapphire and Emerald Rapids and on AMD, writes wait for each other without it: 16 "
             "instead of more than 40 GB/s",
             "UCX_IB_PCI_RELAXED_ORDERING=y"},
    WordRule{"ucx", Verdict::kFail, {"destination is unreachable|no active messages transport", nullptr, nullptr}, nullptr, nullptr,
             "UCX found no transport that reaches the other end",
             "a device or a network is missing at one end",
             "ucx_info -d at both ends; UCX_NET_DEVICES and UCX_TLS must name what both have; RoCE: "
             "the same subnet or a route, UCX_IB_GID_INDEX"},
    WordRule{"device-file", Verdict::kFail, {"ibv_open_device", "failed", nullptr}, nullptr, nullptr,
             "an RDMA device is listed and cannot be opened",
             "programs reach RDMA devices through /dev/infiniband/uverbsN",
             "docker run --device=/dev/infiniband ...; gdrperf doctor in that container"},
    WordRule{"provider", Verdict::kWarn, {"no userspace device-specific driver", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs has no provider for this kernel driver: in a container the image's user "
             "space does not match the host's OFED",
             "libibverbs shows only devices it has a user-space driver for",
             "install the user space of the same release in the image: MLNX_OFED or DOCA "
             "(--user-space-only), or ibverbs-providers (rdma-core) with an inbox host"},
    WordRule{"libfabric", Verdict::kFail, {"fi_mr_reg", "failed", nullptr}, nullptr, nullptr,
             "libfabric could not register memory; on EFA GPU memory is taken on p4d, p5 and later "
             "only",
             "a NIC that cannot reach GPU memory needs staging",
             "FI_EFA_USE_DEVICE_RDMA=0; or fi_info -p efa -c FI_HMEM: nothing means no GPU memory"},
    WordRule{"libfabric", Verdict::kFail, {"net/ofi", "unable to register memory", nullptr}, nullptr, nullptr,
             "the NIC (EFA) does not register GPU memory here",
             "GPUDirect RDMA is there on p4d, p5 and later",
             "FI_EFA_USE_DEVICE_RDMA=0 OFI_NCCL_DISABLE_DMABUF=1 to test; else another instance type"},
    WordRule{"ucx", Verdict::kWarn, {"mlx5", "remote access", nullptr}, nullptr, nullptr,
             "remote access error: the other end refused the address or key",
             "the memory went away, or an IOMMU at the other end turns addresses",
             "gdrperf doctor on that machine: iommu, acs"},
    WordRule{"memlock", Verdict::kFail, {"rlimit_memlock is", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs says that the memlock limit is low",
             "memory that NICs use is locked",
             "LimitMEMLOCK=infinity for slurmd or sshd, limits.d for logins, docker --ulimit "
             "memlock=-1; then restart that daemon"},
    WordRule{"memlock", Verdict::kFail, {"locked memory", "openfabrics", nullptr}, nullptr, nullptr,
             "Open MPI could not lock memory: the memlock limit of the daemon that starts the ranks",
             "limits come from what starts the ranks (sshd, slurmd, orted)",
             "LimitMEMLOCK=infinity for slurmd or sshd, then restart it; check: mpirun bash -c "
             "\"ulimit -l\""},
    WordRule{"memlock", Verdict::kWarn, {"only allow registering part", nullptr, nullptr}, nullptr, nullptr,
             "the adapter's driver registers only part of memory (mlx4 log_num_mtt)",
             "large registrations fail",
             "options mlx4_core log_num_mtt=24 in /etc/modprobe.d, or a current driver"},
WordRule{"provider", Verdict::kWarn, {"couldn't load driver", "libvmw_pvrdma|libi40iw|libcxgb|libhfi1|libocrdma|libqedr|librxe|libsiw|libipathverbs|libmthca|libnes|libhns|libefa|libbnxt|libirdma|liberdma|libmana|libmlx4", nullptr}, nullptr, nullptr,
             "the library for another maker's adapters is not installed: harmless, unless that is the adapter here",
             "libibverbs tries all that are listed in /etc/libibverbs.d",
             "nothing; or where it is this adapter: sudo apt-get install ibverbs-providers (dnf: rdma-core)"},
    WordRule{"provider", Verdict::kFail, {"couldn't load driver", nullptr, nullptr}, nullptr, nullptr,
             "the provider library of libibverbs does not load: user space of another release, or "
             "packages missing in the image",
             "libibverbs shows only devices it has a user-space driver for",
             "sudo apt-get install --reinstall ibverbs-providers  # in the image; with OFED on the "
             "host: the same OFED user space"},
    WordRule{"nvshmem", Verdict::kFail, {"mem registration failed", nullptr, nullptr}, nullptr, nullptr,
             "NVSHMEM could not register GPU memory with the NIC: peer memory or dma-buf does not "
             "serve",
             "IBRC and IBGDA need GPUDirect RDMA",
             "sudo modprobe nvidia_peermem; gdrperf doctor: peermem, dma-buf; "
             "NVSHMEM_IB_DISABLE_DMABUF=1 goes round a broken dma-buf"},
    WordRule{"nvshmem", Verdict::kFail, {"cannot allocate buffer on the specified memory type", nullptr, nullptr}, nullptr, nullptr,
             "NVSHMEM (IBGDA) cannot place queues in GPU memory with this NIC",
             "IBGDA needs the driver to map the NIC for the GPU",
             "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\" "
             "in /etc/modprobe.d, then reboot; nvidia_peermem loaded"},
    WordRule{"gdrcopy", Verdict::kWarn, {"gdr_open|gdrdrv not loaded|gdrdrv is not loaded", nullptr, nullptr}, nullptr, nullptr,
             "GDRCopy is not there: its kernel module gdrdrv is not loaded",
             "small messages go slower without it",
             "sudo modprobe gdrdrv  # of the gdrdrv-dkms package"},
    WordRule{"gid", Verdict::kFail, {"ibv_query_gid", "failed", nullptr}, nullptr, nullptr,
             "the GID index that was asked for is empty",
             "the table differs from machine to machine, and from pod to pod",
             "show_gids; UCX_IB_GID_INDEX=INDEX of the RoCE v2/IPv4 entry"},
    WordRule{"memlock", Verdict::kFail, {"failed to register memory|failed to register mr", "cannot allocate memory", nullptr}, nullptr, nullptr,
             "memory could not be registered (Cannot allocate memory): the memlock limit; with GPU memory, more than BAR1 holds (256 MiB on a "
             "T4 and on GeForce)",
             "registered memory is locked, and of a GPU takes room in BAR1",
             "ulimit -l in that process: unlimited? nvidia-smi -q -d MEMORY (BAR1); docker --ulimit memlock=-1"},
    WordRule{"peermem", Verdict::kFail, {"failed to register address|failed to register memory|failed to register mr", "input/output error|bad address", nullptr}, nullptr, nullptr,
             "memory was not registered: with GPU memory no peer memory module or dma-buf serves, or this GPU does no "
             "GPUDirect RDMA (GeForce)",
             "without peer memory or dma-buf a NIC cannot be given GPU memory",
             "sudo modprobe nvidia_peermem on the host; then 'gdrperf doctor' there: peermem, dma-buf, gpu-registration"},
    WordRule{"rdma_ucm", Verdict::kFail, {"rdma_create_event_channel", "no such device|no such file", nullptr}, nullptr, nullptr,
             "rdma_cm is not there: the module rdma_ucm is not loaded, or /dev/infiniband/rdma_cm is not in the container",
             "rdma_cm goes through this kernel module",
             "sudo modprobe rdma_ucm; containers: --device=/dev/infiniband/rdma_cm"},
    WordRule{"ucx", Verdict::kWarn, {"is not available, please use one or more of", nullptr, nullptr}, nullptr, nullptr,
             "UCX was told to use a device or transport that is not here",
             "a name of another machine, a port that is down, or a container without /dev/infiniband",
             "ucx_info -d lists what there is; UCX_NET_DEVICES and UCX_TLS unset or naming those"},
    WordRule{"ucx", Verdict::kFail, {"local protection on", nullptr, nullptr}, nullptr, nullptr,
             "the NIC could not reach local memory (local protection)",
             "memory went away before the transfer ended, or an IOMMU or ACS keeps the NIC from the GPU",
             "'gdrperf doctor' here: iommu, acs, gpu-registration; UCX_IB_GPU_DIRECT_RDMA=n to test; the same MTU at both "
             "ends"},
    WordRule{"ucx", Verdict::kWarn, {"remote access on", nullptr, nullptr}, nullptr, nullptr,
             "remote access error: the other end refused the address or key",
             "the memory went away, or an IOMMU at the other end turns addresses",
             "gdrperf doctor on that machine: iommu, acs"},
    WordRule{"ucx", Verdict::kFail, {"remote operation on", nullptr, nullptr}, nullptr, nullptr,
             "the NIC at the other end could not read or write its memory (remote operation)",
             "the other end has the fault",
             "gdrperf doctor on that machine: iommu, acs, gpu-registration; its dmesg"},
};

}  // namespace

std::span<const WordRule> ucx_words() { return kUcxRules; }

}  // namespace gdrperf::doctor
