// Words of perftest.

#include <array>

#include "doctor/words/words.h"

namespace gdrperf::doctor {
namespace {

constexpr std::array kPerftestRules = {
    WordRule{"perftest", Verdict::kFail, {"transport retry counter exceeded|transport retry count exceeded (12)", nullptr, nullptr}, nullptr, "ucx",
             "completion error 12 (retry exceeded): the two NICs cannot reach each other",
             "the other end did not answer in time: packets did not get through, or not back",
             "the same kind of GID at both ends (-g INDEX, -x in perftest; RoCE v2 over IPv4), addresses and routes; gdrperf "
             "write_bw HOST chooses the GID itself"},
    WordRule{"peermem", Verdict::kFail, {"couldn't allocate mr", "error=14", nullptr}, nullptr, nullptr,
             "GPU memory was not registered (errno 14, Bad address): no memlock problem; peer memory "
             "does not serve, or this GPU does no GPUDirect RDMA (GeForce, GB10)",
             "without peer memory or dma-buf a NIC cannot be given GPU memory",
             "sudo modprobe nvidia_peermem  # with the open driver: --use_cuda_dmabuf; then gdrperf "
             "doctor on that machine"},
    WordRule{"dma-buf", Verdict::kFail, {"couldn't allocate mr", "error=93", nullptr}, nullptr, nullptr,
             "dma-buf is not supported there (errno 93, Protocol not supported): no memlock problem",
             "dma-buf needs kernel, NIC driver and GPU driver together",
             "without --use_cuda_dmabuf and with nvidia_peermem; or a newer kernel (5.12) or OFED, "
             "and user space (rdma-core 34) that match"},
    WordRule{"dma-buf", Verdict::kFail, {"couldn't allocate mr", "error=95", nullptr}, nullptr, nullptr,
             "dma-buf is not supported there (errno 95): no memlock problem",
             "dma-buf needs kernel, NIC driver and GPU driver together",
             "without --use_cuda_dmabuf and with nvidia_peermem; or a newer kernel (5.12) or OFED"},
    WordRule{"memlock", Verdict::kFail, {"couldn't allocate mr", "error=12", nullptr}, nullptr, nullptr,
             "memory could not be registered (errno 12, Cannot allocate memory): the memlock limit; "
             "with GPU memory, BAR1 that is full or small",
             "memory that NICs use is locked",
             "ulimit -l unlimited; docker --ulimit memlock=-1; with --use_cuda: nvidia-smi -q -d "
             "MEMORY (BAR1)"},
    WordRule{"peermem", Verdict::kFail, {"couldn't allocate mr", nullptr, nullptr}, "bad address", nullptr,
             "GPU memory was not registered (Bad address): no memlock problem; peer memory does not "
             "serve, or this GPU does no GPUDirect RDMA (GeForce, vGPU without it)",
             "without peer memory or dma-buf a NIC cannot be given GPU memory",
             "sudo modprobe nvidia_peermem  # in Kubernetes on the node; then gdrperf doctor on that "
             "machine"},
    WordRule{"peermem", Verdict::kFail, {"couldn't allocate mr", nullptr, nullptr}, "cumemalloc", "error=",
             "GPU memory was not registered: peer memory does not serve there, or this GPU does no "
             "GPUDirect RDMA (GeForce)",
             "without peer memory or dma-buf a NIC cannot be given GPU memory",
             "sudo modprobe nvidia_peermem  # with the open driver: --use_cuda_dmabuf; look at ulimit "
             "-l, too"},
    WordRule{"pcie-path", Verdict::kFail, {"syndrom 0x51", nullptr, nullptr}, nullptr, nullptr,
             "the NIC could not read or write the memory it was given (local protection, syndrome "
             "0x51): with GPU memory in a virtual machine, its BARs lie higher than devices or guest "
             "can address (MMIO base of the BIOS too high, 56 TB)",
             "addresses beyond the reach of a device end in errors after some transfers",
             "BIOS of the host: MMIO High Base 12 TB or lower (not 56 TB), MMIO size to match; then "
             "lspci -vv -s GPU | grep Region; bare metal: ACS and IOMMU (gdrperf doctor)"},
    WordRule{"perftest", Verdict::kFail, {"failed status 12", nullptr, nullptr}, nullptr, nullptr,
             "completion error 12 (retry exceeded): the two NICs cannot reach each other",
             "the other end did not answer in time: packets did not get through, or not back",
             "the same kind of GID at both ends (-x, RoCE v2 over IPv4), addresses and routes; PFC; "
             "gdrperf write_bw HOST chooses the GID itself"},
    WordRule{"perftest", Verdict::kFail, {"failed status 13", nullptr, nullptr}, nullptr, nullptr,
             "completion error 13 (receiver not ready)",
             "the other end posted no receive in time",
             "the same options at both ends"},
    WordRule{"perftest", Verdict::kFail, {"failed status 5", nullptr, nullptr}, nullptr, nullptr,
             "completion error 5 (flushed): what broke the QP stands earlier or at the other end",
             "it follows another error",
             "look at the other end"},
    WordRule{"perftest", Verdict::kFail, {"failed status 10", nullptr, nullptr}, nullptr, nullptr,
             "completion error 10 (remote access): the other end refused address or key",
             "the memory there is not what this end believes",
             "gdrperf doctor on that machine: iommu, acs; the same perftest version at both ends"},
    WordRule{"perftest", Verdict::kFail, {"failed status 4", nullptr, nullptr}, nullptr, nullptr,
             "completion error 4 (local protection): the NIC could not reach memory of this end",
             "memory or MTU do not agree",
             "gdrperf doctor here: iommu, acs, gpu-registration; the same MTU at both ends"},
    WordRule{"gid", Verdict::kFail, {"failed to modify qp", "rtr", nullptr}, nullptr, nullptr,
             "the QP could not be connected: the GID index does not fit (empty, or of another kind "
             "than at the other end), or there is no route",
             "both ends must use GIDs of one kind",
             "-x INDEX of the RoCE v2/IPv4 entry at both ends (show_gids); gdrperf write_bw HOST "
             "chooses it itself"},
    WordRule{"device-file", Verdict::kFail, {"couldn't get context for the device", nullptr, nullptr}, nullptr, nullptr,
             "the device could not be opened",
             "programs reach RDMA devices through /dev/infiniband/uverbsN",
             "ls -l /dev/infiniband; containers: --device=/dev/infiniband"},
    WordRule{"rdma-device", Verdict::kFail, {"no ib devices found", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs shows no RDMA device there",
             "without one nothing can be measured",
             "gdrperf doctor on that machine; containers: --device=/dev/infiniband and "
             "ibverbs-providers in the image"},
    WordRule{"rdma-device", Verdict::kFail, {"ib device", " not found", nullptr}, nullptr, nullptr,
             "the named RDMA device is not there",
             "names differ from machine to machine",
             "ibv_devices; gdrperf devices"},
    WordRule{"port-state", Verdict::kFail, {"port number", "state is down", nullptr}, nullptr, nullptr,
             "the port is down",
             "only an ACTIVE port carries data",
             "ip link set NETDEV up; ibstat; the cable and the switch"},
    WordRule{"control-port", Verdict::kFail, {"couldn't connect to", nullptr, nullptr}, nullptr, nullptr,
             "the TCP connection to the other end was not made: no server there, or a firewall in "
             "between",
             "perftest and gdrperf agree about a run over TCP",
             "start the server first; open the port: sudo firewall-cmd --add-port=18515/tcp "
             "(perftest), 18516/tcp (see gdrperf serve)"},
    WordRule{"mtu", Verdict::kFail, {"mtu is not the same", nullptr, nullptr}, nullptr, nullptr,
             "the two ends have different MTU",
             "packets larger than an end takes are dropped",
             "the same MTU at both ends and the switch: sudo ip link set NETDEV mtu 9000"},
    WordRule{"gid", Verdict::kFail, {"gid index", nullptr, nullptr}, "invalid", nullptr,
             "the GID index that was asked for is empty or of the wrong kind",
             "the table differs from machine to machine",
             "show_gids; -x INDEX of the RoCE v2/IPv4 entry"},
    WordRule{"perftest", Verdict::kFail, {"unexpected cm event", nullptr, nullptr}, nullptr, nullptr,
             "rdma_cm could not connect: no route to that address over an RDMA device, or nothing "
             "listens there",
             "rdma_cm finds the device by the IP address",
             "use the address of the RDMA interface; the same -R at both ends; rdma_ucm loaded"},
    WordRule{"perftest", Verdict::kFail, {"rdma_cm_event", "error", nullptr}, nullptr, nullptr,
             "rdma_cm could not connect: no RDMA device belongs to that address, or there is no route",
             "rdma_cm finds the device by the IP address",
             "use the address of the RDMA interface; rdma link; ip route get ADDRESS"},
    WordRule{"memlock", Verdict::kFail, {"couldn't create qp", nullptr, nullptr}, nullptr, nullptr,
             "a QP could not be created: the memlock limit, or more than the NIC has",
             "queues are locked memory, too",
             "ulimit -l unlimited; fewer QPs (-q) or a smaller depth (-t)"},
    WordRule{"mtu", Verdict::kWarn, {"mtu is higher than active", nullptr, nullptr}, nullptr, nullptr,
             "the MTU that was asked for is more than the active one",
             "the interface is too small for it",
             "sudo ip link set NETDEV mtu 9000 at both ends and on the switch"},
    WordRule{"perftest", Verdict::kWarn, {"couldn't read remote address|unable to read to socket/rdma_cm|failed to exchange data between server and clients", nullptr, nullptr}, nullptr, nullptr,
             "the other end ended first: its message names the cause",
             "perftest exchanges addresses over TCP until the test begins",
             "read the output of the other end; the same options and perftest version at both"},
    WordRule{"perftest", Verdict::kFail, {"cuda dma-buf cannot be used without cuda", nullptr, nullptr}, nullptr, nullptr,
             "--use_cuda must stand before --use_cuda_dmabuf",
             "perftest reads its options in order",
             "ib_write_bw --use_cuda=0 --use_cuda_dmabuf ..."},
    WordRule{"perftest", Verdict::kOk, {"cuda tests with inline messages", nullptr, nullptr}, nullptr, nullptr,
             "harmless: with GPU memory perftest sends nothing inline",
             "",
             ""},
    WordRule{"perftest", Verdict::kFail, {"unrecognized option", "use_cuda|use_rocm", nullptr}, nullptr, nullptr,
             "this perftest was built without CUDA or ROCm",
             "distributions build perftest without it",
             "./autogen.sh && ./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h && make; or gdrperf write_bw HOST "
             "--buffer cuda:0"},
    WordRule{"rdma-device", Verdict::kFail, {"unable to find the infiniband/roce device|no rdma devices found", nullptr, nullptr}, nullptr, nullptr,
             "libibverbs shows no RDMA device there, or not the named one",
             "without one nothing can be measured",
             "ibv_devices; gdrperf doctor on that machine; containers: --device=/dev/infiniband"},
    WordRule{"nvidia-driver", Verdict::kFail, {"cuinit|cudagetdevicecount|cuda_error_system_not_ready", "802|system not yet initialized|cuda_error_system_not_ready", nullptr}, nullptr, nullptr,
             "CUDA error 802 (system not yet initialized): the fabric manager of the NVSwitches does not run",
             "GPUs of an HGX or DGX start only with it",
             "sudo systemctl enable --now nvidia-fabricmanager  # of the very version of the driver; its log in "
             "/var/log/fabricmanager.log"},
    WordRule{"dma-buf", Verdict::kFail, {"cumemgethandleforaddressrange", "801|not supported|not_supported", nullptr}, nullptr, nullptr,
             "the GPU's driver exports no dma-buf (error 801)",
             "dma-buf needs the open kernel module and a kernel that supports it",
             "the open kernel module (nvidia-open, Turing and later) on Linux 5.12 or later; or nvidia_peermem without "
             "--use_cuda_dmabuf"},
};

}  // namespace

std::span<const WordRule> perftest_words() { return kPerftestRules; }

}  // namespace gdrperf::doctor
