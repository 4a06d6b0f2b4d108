// Words of the kernel's log: faults by their name, and lines that are known to be harmless.

#include <array>

#include "words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kKernelRules = {
    WordRule{"iommu-faults", Verdict::kFail, {"io_page_fault", nullptr, nullptr}, nullptr, nullptr,
             "the IOMMU refused accesses of a device (AMD-Vi IO_PAGE_FAULT): its data did not arrive: "
             "data corruption, peer copies of zeros, not only slow",
             "peer-to-peer through a translating IOMMU fails silently",
             "iommu=pt (or amd_iommu=off) on the kernel's command line, then reboot; check with "
             "gdrperf verify"},
    WordRule{"iommu-faults", Verdict::kFail, {"dmar", "fault", nullptr}, nullptr, nullptr,
             "the IOMMU refused accesses of a device (DMAR fault): its data did not arrive: data "
             "corruption, not only slow",
             "peer-to-peer through a translating IOMMU fails silently",
             "iommu=pt (or intel_iommu=off) on the kernel's command line, then reboot; check with "
             "gdrperf verify"},
    WordRule{"iommu-faults", Verdict::kFail, {"arm-smmu", "event|unhandled context fault", nullptr}, nullptr, nullptr,
             "the SMMU refused accesses of a device: its data did not arrive: data corruption, not "
             "only slow",
             "peer-to-peer through a translating IOMMU fails silently",
             "iommu.passthrough=1 on the kernel's command line, then reboot; check with gdrperf verify"},
    WordRule{"nvidia-driver", Verdict::kFail, {"invalid page_table", nullptr, nullptr}, nullptr, nullptr,
             "nvidia_p2p_get_pages gave the NIC an invalid page table: a fault of some NVIDIA drivers",
             "GPU memory cannot be registered with such a driver",
             "a driver after R510, or R470 and R460 of May 2021 and later"},
    WordRule{"kernel-log", Verdict::kFail, {"nvidia_p2p_get_pages", "err", nullptr}, nullptr, "unknown symbol",
             "the NVIDIA driver refused to pin GPU memory for a NIC",
             "this GPU, vGPU or memory cannot be given to NICs",
             "memory of cudaMalloc (not managed); BAR1 large enough (nvidia-smi -q -d MEMORY); vGPU: "
             "only whole GPUs or vGPU types with RDMA"},
    WordRule{"kernel-log", Verdict::kFail, {"oops", nullptr, nullptr}, "nvidia", nullptr,
             "the kernel crashed (Oops) with nvidia modules loaded: what follows cannot be trusted",
             "modules that crash leave devices in any state",
             "reboot; update NVIDIA driver and OFED together; the call trace names the module"},
    WordRule{"kernel-log", Verdict::kFail, {"bug: unable to handle", nullptr, nullptr}, nullptr, nullptr,
             "the kernel crashed: what follows cannot be trusted",
             "modules that crash leave devices in any state",
             "reboot; update NVIDIA driver and OFED together; the call trace names the module"},
    WordRule{"kernel-log", Verdict::kFail, {"general protection fault", nullptr, nullptr}, "mlx5", nullptr,
             "the kernel crashed with mlx5 modules loaded",
             "modules that crash leave devices in any state",
             "reboot; update OFED or kernel; the call trace names the module"},
    WordRule{"kernel-log", Verdict::kFail, {"mlx5_core", "health", "compromised"}, nullptr, nullptr,
             "the NIC's firmware stopped answering (health compromised)",
             "the device must be reset",
             "sudo mlxfwreset -d DEVICE reset, or power off; update its firmware"},
    WordRule{"kernel-log", Verdict::kFail, {"mlx5_core", "synd", nullptr}, "health", nullptr,
             "the NIC's firmware reported a fault (health syndrome)",
             "the device may need a reset",
             "sudo mlxfwreset -d DEVICE reset; update its firmware"},
    WordRule{"nic-link", Verdict::kWarn, {"available pcie bandwidth", "limited by", nullptr}, nullptr, nullptr,
             "a card trained its link below what it can (the kernel says: limited by)",
             "a PCIe link below the ports' rate is the ceiling of every transfer",
             "another slot or riser; lspci -vvv | grep LnkSta"},
    WordRule{"kernel-log", Verdict::kWarn, {"high temperature", nullptr, nullptr}, nullptr, nullptr,
             "the NIC is too hot",
             "it slows down or turns off",
             "sudo mget_temp -d DEVICE; air flow"},
    WordRule{"kernel-log", Verdict::kWarn, {"module", "insufficient power", nullptr}, nullptr, nullptr,
             "the NIC has too little power from the slot",
             "it may turn ports off",
             "sudo mlxconfig -d DEVICE query | grep ADVANCED_POWER; another slot"},
    WordRule{"nvidia-driver", Verdict::kFail, {"nvrm: xid", nullptr, nullptr}, nullptr, nullptr,
             "the GPU reported a fault (Xid)",
             "a GPU in error answers neither CUDA nor NICs",
             "nvidia-smi -q | grep -i -A3 xid; the number in NVIDIA's Xid table; 79: fallen off the "
             "bus"},
    WordRule{"nvidia-driver", Verdict::kFail, {"rminitadapter failed", nullptr, nullptr}, nullptr, nullptr,
             "the NVIDIA driver could not start a GPU",
             "without it there is no GPUDirect RDMA",
             "sudo dmesg | grep NVRM; the right driver for this GPU, BIOS: Above 4G Decoding"},
    WordRule{"nvidia-driver", Verdict::kFail, {"nvrm", "api mismatch", nullptr}, nullptr, nullptr,
             "user space and kernel module of the NVIDIA driver are of different versions",
             "programs and kernel module must be of one release",
             "sudo reboot  # the libraries were updated under the running driver"},
    WordRule{"aer", Verdict::kWarn, {"aer", "corrected error", nullptr}, nullptr, nullptr,
             "PCIe errors were corrected",
             "they cost time, and grow with a bad riser",
             "lspci names the device of the message: reseat it, its riser and cables"},
    WordRule{"aer", Verdict::kFail, {"aer", "uncorrect", nullptr}, nullptr, nullptr,
             "uncorrected PCIe errors",
             "data on that link was lost",
             "reseat the card and its riser; firmware of card and BIOS"},
    WordRule{"link-flaps", Verdict::kWarn, {"mlx5", "link down", nullptr}, nullptr, nullptr,
             "a port lost its link",
             "transfers stall or end when a link flaps",
             "sudo mlxlink -d DEVICE -m  # signal and cable; the switch's log"},
    WordRule{"versions", Verdict::kFail, {"disagrees about version of symbol", nullptr, nullptr}, nullptr, nullptr,
             "modules of different builds are mixed (a symbol's version disagrees)",
             "RDMA modules of OFED and of the kernel do not go together",
             "reinstall OFED for the running kernel (--add-kernel-support), then sudo "
             "/etc/init.d/openibd restart"},
    WordRule{"versions", Verdict::kFail, {"unknown symbol", "ib_", nullptr}, nullptr, "peer_memory_client",
             "an RDMA module misses a symbol: modules of OFED and of the kernel are mixed",
             "RDMA modules of OFED and of the kernel do not go together",
             "reinstall OFED for the running kernel (--add-kernel-support), then sudo "
             "/etc/init.d/openibd restart"},
    WordRule{"kernel-log", Verdict::kOk, {"loading out-of-tree module taints kernel", nullptr, nullptr}, nullptr, nullptr,
             "harmless: a module from outside the kernel was loaded",
             "",
             ""},
    WordRule{"kernel-log", Verdict::kOk, {"module license", "taints kernel", nullptr}, nullptr, nullptr,
             "harmless: the NVIDIA module is not of the kernel's license",
             "",
             ""},
    WordRule{"kernel-log", Verdict::kOk, {"loading nvidia kernel mode setting", nullptr, nullptr}, nullptr, nullptr,
             "harmless: the display part of the driver was loaded",
             "",
             ""},
    WordRule{"kernel-log", Verdict::kOk, {"nvidia: probe of", "-1", nullptr}, nullptr, nullptr,
             "harmless on servers: a function of the GPU that has no driver (audio, USB)",
             "",
             ""},
    WordRule{"kernel-log", Verdict::kOk, {"mlx5_core", "port module event", "cable plugged"}, nullptr, nullptr,
             "harmless: a cable was found",
             "",
             ""},
    WordRule{"nvidia-driver", Verdict::kFail, {"could not insert 'nvidia'", nullptr, nullptr}, nullptr, nullptr,
             "the nvidia module does not load",
             "without it there is no GPU",
             "No such device: no GPU here, or one this driver does not serve (open module: Turing and "
             "later); Key was rejected: sign it; dkms status"},
    WordRule{"kernel-log", Verdict::kFail, {"mlx5_cmd", "failed", nullptr}, nullptr, nullptr,
             "the NIC's firmware refused a command (syndrome in the line)",
             "driver and firmware do not agree, or a limit of the NIC is reached",
             "update firmware and driver together; CREATE_MKEY: memory that cannot be registered "
             "(peermem, dma-buf)"},
    WordRule{"kernel-log", Verdict::kFail, {"dump error cqe", nullptr, nullptr}, nullptr, nullptr,
             "the NIC ended a transfer with an error (dump of the completion)",
             "vendor syndrome 0x51 and 0x52: local protection, 0x81: no answer, 0x88: remote access",
             "gdrperf doctor: iommu, acs, mtu; the program's own message tells the status"},
};

}  // namespace

std::span<const WordRule> kernel_words() { return kKernelRules; }

}  // namespace gdrperf::doctor
