// Words of NVSHMEM and what is built on it, and of libfabric with EFA.

#include <array>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kNvshmemRules = {
    WordRule{"nvshmem", Verdict::kFail, {"mlx5dv_devx_uar", nullptr, nullptr}, nullptr, nullptr,
             "NVSHMEM (IBGDA) cannot map the NIC's doorbells for the GPU: the container may not, or the driver was not told "
             "to",
             "IBGDA rings the NIC from the GPU",
             "docker run --privileged, or --cap-add=IPC_LOCK --device=/dev/infiniband with all its files; on the host: "
             "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\" in /etc/modprobe.d, "
             "then reboot"},
    WordRule{"nvshmem", Verdict::kFail, {"not enumerated as an mlx5 device", nullptr, nullptr}, nullptr, nullptr,
             "IBGDA works with mlx5 adapters (ConnectX) alone: this is another",
             "its queues are written by the GPU in the format of mlx5",
             "NVSHMEM_HCA_LIST naming the mlx5 devices; without any: NVSHMEM_REMOTE_TRANSPORT=ibrc or libfabric, "
             "NVSHMEM_IB_ENABLE_IBGDA=0"},
    WordRule{"nvshmem", Verdict::kFail, {"unable to create ah|create dct share err", nullptr, nullptr}, nullptr, nullptr,
             "NVSHMEM could not make an address handle: the GID index is empty or wrong, or it took a NIC that is not of the "
             "fabric",
             "each peer is reached through a GID of the same kind",
             "NVSHMEM_IB_GID_INDEX=3 (the RoCE v2/IPv4 one of show_gids), NVSHMEM_HCA_LIST=mlx5_0:1,... naming the NICs of "
             "the fabric alone"},
    WordRule{"gid", Verdict::kWarn, {"ib_roce_get_version_num|ncclibrocegetversionnum", nullptr, nullptr}, nullptr, nullptr,
             "the GID table that NCCL or NVSHMEM reads has holes: no entry that it can use may be left",
             "in pods and VMs the table begins with empty entries",
             "NCCL_IB_GID_INDEX=INDEX NVSHMEM_IB_GID_INDEX=INDEX of the RoCE v2/IPv4 entry (show_gids in that container); or a newer NCCL, "
             "which skips holes"},
    WordRule{"nvshmem", Verdict::kWarn, {"non-zero status: 7|nvshmem initialization failed|nvshmem api called before|nvshmem setup connections failed|building transport map failed", nullptr, nullptr}, nullptr, nullptr,
             "NVSHMEM did not start: what it says here follows the first error, which stands above",
             "set-up goes on for some lines after it failed",
             "the first WARN or non-zero status of the rank (NVSHMEM_DEBUG=INFO); then gdrperf doctor: peermem, gid-index"},
    WordRule{"deepep", Verdict::kWarn, {"deepep error: cpu recv timeout|deepep timeout|deepep dispatch forward", nullptr, nullptr}, nullptr, nullptr,
             "DeepEP waited in vain for another rank: the first error is elsewhere",
             "a rank that crashed, a NIC that lost packets and NVSHMEM that did not connect look the same",
             "the first error of every rank; gdrperf doctor on each machine: port-errors, acs, numa-balancing; gdrperf "
             "write_bw between each pair"},
    WordRule{"libfabric", Verdict::kFail, {"net/ofi", "unable to register memory", "rc: -22"}, nullptr, nullptr,
             "libfabric of EFA installers before 1.29.1 refuses registrations of NCCL 2.19 and later (Invalid argument)",
             "it set a CUDA attribute that newer NCCL memory has not",
             "EFA installer 1.29.1 or later; or FI_EFA_SET_CUDA_SYNC_MEMOPS=0"},
    WordRule{"peermem", Verdict::kFail, {"efa_mr", "unable to register mr", "bad address"}, nullptr, nullptr,
             "EFA could not register memory (Bad address): GPU memory that neither nvidia_peermem nor dma-buf serves, or host "
             "memory that is mapped read-only",
             "libfabric before 2.5 gives CUDA memory to EFA without dma-buf",
             "GPU memory: a newer libfabric (EFA installer) with dma-buf, FI_HMEM_CUDA_USE_DMABUF=1; or nvidia_peermem, loaded "
             "on the host. Host memory: register pages that are writable"},
    WordRule{"libfabric", Verdict::kWarn, {"fi_hmem capability requires rdma", nullptr, nullptr}, nullptr, nullptr,
             "the EFA of this instance type has no RDMA read: no GPUDirect RDMA",
             "p4d, p5 and later have it",
             "FI_EFA_USE_DEVICE_RDMA=0; data goes through host memory; else another instance type"},
    WordRule{"libfabric", Verdict::kFail, {"net/ofi", "creating new endpoint", "invalid argument"}, nullptr, nullptr,
             "the libfabric in this container knows no GPU memory (FI_HMEM), or is not the one of the EFA installer",
             "aws-ofi-nccl needs a libfabric built with CUDA",
             "fi_info -p efa -c FI_HMEM: nothing means so; LD_LIBRARY_PATH=/opt/amazon/efa/lib first"},
};

}  // namespace

std::span<const WordRule> nvshmem_words() { return kNvshmemRules; }

}  // namespace gdrperf::doctor
