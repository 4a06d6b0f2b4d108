// Words of system tools, drivers and libraries.

#include <array>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kSystemRules = {
    WordRule{"rdma-modules", Verdict::kFail,
             {"modprobe: fatal: module mlx|modprobe: fatal: module ib_|modprobe: fatal: module rdma_|modprobe: fatal: module bnxt_re|modprobe: "
              "fatal: module irdma|modprobe: fatal: module ionic_rdma|modprobe: fatal: module efa",
              "not found in directory /lib/modules", nullptr}, nullptr, nullptr,
             "this RDMA module has no file for the kernel that runs: it was not built for this kernel, or this is a container, whose modules "
             "are the host's",
             "a new kernel starts without the modules that were built for the old one",
             "build OFED (DOCA-OFED) again for 'uname -r', or install the kernel's own extra modules (Ubuntu: linux-modules-extra, RHEL: "
             "kernel-modules-extra); on driver-container nodes the network operator's; dkms status; it stays after a reboot"},
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
    WordRule{"rdma-device", Verdict::kFail, {"can't open umad port|stat of ib device|ibpanic", nullptr, nullptr}, nullptr, nullptr,
             "the management tools find no such device, or no ib_umad: ibstat and its kin need both",
             "they open /dev/infiniband/umadN",
             "sudo modprobe ib_umad; the right name: ibv_devices; in containers: --device=/dev/infiniband, and enough rights "
             "for umad"},
    WordRule{"nvidia-driver", Verdict::kFail, {"no devices were found", nullptr, nullptr}, nullptr, nullptr,
             "nvidia-smi finds no GPU that works",
             "a GPU that is not started gives neither memory nor answers",
             "sudo dmesg | grep -i -e nvrm -e 'bar ': RmInitAdapter, Xid 79, BARs without room; lspci | grep -i nvidia; in "
             "containers: --gpus all"},
    WordRule{"nvidia-driver", Verdict::kFail, {"failed to initialize nvml", "unknown error|insufficient permissions", nullptr}, nullptr, nullptr,
             "the container lost its GPUs: systemd took their devices out of its cgroup ('systemctl daemon-reload' does)",
             "device rules of a cgroup are written anew by systemd",
             "restart the container; for good: docker with --device=/dev/nvidia0 --device=/dev/nvidiactl, CDI, or "
             "\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json"},
    WordRule{"nvidia-driver", Verdict::kFail, {"gpu is lost|unable to determine the device handle|fallen off the bus", nullptr, nullptr}, nullptr, nullptr,
             "a GPU fell off the PCIe bus",
             "it answers nobody until it is reset",
             "sudo dmesg | grep -i -e xid -e aer; power, riser and cooling; reboot, and have it replaced when it comes back"},
    WordRule{"kubernetes", Verdict::kFail, {"missing rdma device spec", nullptr, nullptr}, nullptr, nullptr,
             "the RDMA device plugin finds no device files for this adapter: mlx5_ib, ib_umad or rdma_ucm is not loaded on "
             "the node, or the adapter has no driver",
             "the plugin passes issm, umad, uverbs and rdma_cm files to the pod",
             "on the node: sudo modprobe -a mlx5_ib ib_umad ib_uverbs rdma_ucm; ls /dev/infiniband; then delete the plugin's "
             "pod"},
    WordRule{"kubernetes", Verdict::kFail, {"incorrect rdma subsystem network namespace", nullptr, nullptr}, nullptr, nullptr,
             "the shared device plugin needs the RDMA subsystem in shared mode, and this node's is exclusive",
             "in exclusive mode a device is seen in one network namespace alone",
             "sudo rdma system set netns shared  # on the node, before any pod runs; or rdma-cni with SR-IOV, which wants exclusive"},
    WordRule{"libibverbs", Verdict::kFail, {"error while loading shared libraries", "libibverbs.so|librdmacm.so", nullptr}, nullptr, nullptr,
             "libibverbs or librdmacm is not installed there: no RDMA program starts",
             "RDMA programs load them",
             "sudo apt-get install libibverbs1 librdmacm1 ibverbs-providers  # dnf install libibverbs librdmacm; until then gdrperf-doctor, "
             "which starts without them"},
    WordRule{"kubernetes", Verdict::kFail, {"namespace awareness mode|awareness mode", nullptr, nullptr}, nullptr, nullptr,
             "rdma-cni moves devices into pods, which the mode of this node does not allow: it must be exclusive",
             "in shared mode an RDMA device belongs to the host",
             "sudo rdma system set netns exclusive  # on the node, before any pod runs; for good: options ib_core "
             "netns_mode=0 in /etc/modprobe.d"},
    WordRule{"kubernetes", Verdict::kFail, {"nvidia-driver: line", "unbound variable", nullptr}, nullptr, nullptr,
             "the script of the driver container's peermem sidecar has a fault",
             "the peermem container starts the same script",
             "a newer driver container (driver.version), or dma-buf in place of peermem: driver.rdma.enabled=false with the "
             "open kernel module"},
    WordRule{"openmpi", Verdict::kOk, {"infiniband ports on a device are not used by default", nullptr, nullptr}, nullptr, nullptr,
             "harmless with UCX: Open MPI tells that its old openib transport leaves InfiniBand to UCX",
             "",
             ""},
    WordRule{"openmpi", Verdict::kWarn, {"error initializing an openfabrics device|no openfabrics connection schemes", nullptr, nullptr}, nullptr, nullptr,
             "Open MPI's old openib transport does not know this adapter; UCX does",
             "openib is no longer kept up",
             "mpirun --mca pml ucx --mca btl ^openib ...; it must be built with UCX: ompi_info | grep ucx"},
    WordRule{"port-state", Verdict::kFail, {"openfabrics device", "no active ports detected", nullptr}, nullptr, nullptr,
             "Open MPI finds no ACTIVE port",
             "only an ACTIVE port carries data",
             "ibstat; ip link set NETDEV up; the cable and the switch, or the subnet manager"},
};

}  // namespace

std::span<const WordRule> system_words() { return kSystemRules; }

}  // namespace gdrperf::doctor
