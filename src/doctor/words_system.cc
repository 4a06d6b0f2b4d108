// Words of system tools, drivers and libraries.

#include <array>

#include "words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kSystemRules = {
    WordRule{"numa-balancing", Verdict::kWarn, {"numa_balancing", "= 1", nullptr}, nullptr, nullptr,
             "automatic NUMA balancing is on",
             "the kernel unmaps and migrates pages in the middle of a run: spikes of milliseconds; on "
             "Hyper-V RCCL turns GPUDirect RDMA off for it",
             "sudo sysctl -w kernel.numa_balancing=0",
             "echo 'kernel.numa_balancing = 0' | sudo tee -a /etc/sysctl.d/90-rdma.conf"},
    WordRule{"iommu", Verdict::kWarn, {"default domain type", "translated", nullptr}, nullptr, nullptr,
             "the IOMMU translates addresses",
             "with address translation on, GPUDirect RDMA is slow or fails",
             "iommu=pt on the kernel's command line (ARM: iommu.passthrough=1), then reboot"},
    WordRule{"iommu", Verdict::kOk, {"default domain type", "passthrough", nullptr}, nullptr, nullptr,
             "the IOMMU passes through",
             "",
             ""},
    WordRule{"nvidia-driver", Verdict::kFail, {"nvidia-smi has failed", nullptr, nullptr}, nullptr, nullptr,
             "the NVIDIA driver is not loaded",
             "GPU memory is allocated and exported by this driver",
             "sudo modprobe nvidia; dkms status: is it built for 'uname -r'? Secure Boot: is its key "
             "enrolled?"},
    WordRule{"nvidia-driver", Verdict::kFail, {"driver/library version mismatch", nullptr, nullptr}, nullptr, nullptr,
             "user space and kernel module of the NVIDIA driver are of different versions",
             "programs and kernel module must be of one release",
             "sudo reboot  # the libraries were updated under the running driver"},
    WordRule{"gpu-registration", Verdict::kFail, {"nvidia geforce", nullptr, nullptr}, nullptr, nullptr,
             "a GeForce: it does no GPUDirect RDMA, whatever is loaded",
             "registration of its memory ends in \"Bad address\"",
             "a data-centre or professional GPU; else stage through host memory"},
    WordRule{"gpu-registration", Verdict::kFail, {"nvidia gb10", nullptr, nullptr}, nullptr, nullptr,
             "GB10 (DGX Spark): GPU and CPU share memory, and it does no GPUDirect RDMA",
             "registration of its GPU memory ends in \"Bad address\"",
             "register host memory (cudaHostAlloc)"},
    WordRule{"netns", Verdict::kWarn, {"netns shared", nullptr, nullptr}, nullptr, nullptr,
             "RDMA devices are shared between network namespaces (rdma system: netns shared)",
             "GIDs of other namespaces cannot be used: macvlan pods fail with \"No such device\"",
             "host network or SR-IOV VFs; or sudo rdma system set netns exclusive, and move devices: "
             "rdma dev set DEVICE netns NAME"},
    WordRule{"rdma-device", Verdict::kFail, {"secure boot enabled", nullptr, nullptr}, "key was rejected", nullptr,
             "Secure Boot refuses unsigned modules",
             "",
             "sudo mokutil --import MOK.der"},
    WordRule{"rccl", Verdict::kFail, {"hsa_amd", "bad address", nullptr}, nullptr, nullptr,
             "GPU memory of AMD was not registered",
             "dma-buf or amdgpu's peer client is missing",
             "see amd-gpu in gdrperf doctor"},
    WordRule{"versions", Verdict::kFail, {"no userspace device-specific driver found", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs has no provider that fits this kernel driver: in a container the user space "
             "of the image does not match the host's OFED",
             "libibverbs shows only devices it has a user-space driver for",
             "the same MLNX_OFED or DOCA user space in the image as on the host (--user-space-only)"},
    WordRule{"kubernetes", Verdict::kWarn, {"waiting for mellanox ofed", nullptr, nullptr}, nullptr, nullptr,
             "the GPU operator's peermem container waits for OFED on the node",
             "nvidia_peermem is loaded beside the driver container",
             "driver.rdma.useHostMofed=true where the node has OFED itself, else the network operator "
             "with ofedDriver"},
    WordRule{"kubernetes", Verdict::kFail, {"insufficient rdma/", nullptr, nullptr}, nullptr, nullptr,
             "no node has the RDMA resource that the pod asks for",
             "the device plugin of the network operator offers it",
             "kubectl describe node | grep rdma/; its configMap names the interfaces; or another "
             "resource name"},
    WordRule{"peermem", Verdict::kFail, {"ib_register_peer_memory_client", "undefined", nullptr}, nullptr, nullptr,
             "nvidia_peermem does not build: the RDMA headers it is built against have no peer memory "
             "API",
             "the kernel's own RDMA stack has none",
             "install MLNX_OFED or DOCA-OFED first, then the NVIDIA driver; or dma-buf with the open "
             "kernel module"},
};

}  // namespace

std::span<const WordRule> system_words() { return kSystemRules; }

}  // namespace gdrperf::doctor
