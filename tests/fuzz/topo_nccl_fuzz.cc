// NCCL's XML and its log. Any text either gives a tree that hangs together, or is refused with one
// short message that names line and column.
#include "fuzz.h"
#include "topo_trees.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_tree(gdrperf::topo::parse_nccl_log, data, size);
  return try_tree(gdrperf::topo::parse_nccl_xml, data, size);
}

std::vector<std::string> fuzz_seeds() {
  return {R"(<system version="1">
 <cpu numaid="0" affinity="ff" arch="x86_64">
  <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0072" link_speed="32.0 GT/s PCIe" link_width="16">
   <pci busid="0000:02:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x1003" link_speed="32.0 GT/s PCIe" link_width="16">
    <pci busid="0000:03:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0" gdr="1"/></pci>
   </pci>
   <pci busid="0000:04:00.0" class="0x020700"><nic><net name="mlx5_0" port="1" speed="100000" guid="0x1"/></nic></pci>
  </pci>
  <nic><net name="eth0" speed="1000"/></nic>
 </cpu>
 <cpu numaid="1"><pci busid="0001:00:00.0" class="0x030200"/><pci busid="0101:00:00.0" class="0x020000"/></cpu>
</system>)",
          "node1:4242:4250 [0] NCCL INFO === System : maxBw 48.0 totalBw 240.0 ===\n"
          "node1:4242:4250 [0] NCCL INFO CPU/0 (1/1/3)\n"
          "node1:4242:4250 [0] NCCL INFO + PCI[48.0] - PCI/1000 (1000c010)\n"
          "node1:4242:4250 [0] NCCL INFO               + PCI[48.0] - GPU/3000 (0)\n"
          "node1:4242:4250 [0] NCCL INFO                             + NVL[240.0] - NVS/0\n"
          "node1:4242:4250 [0] NCCL INFO               + PCI[48.0] - NIC/4000\n"
          "node1:4242:4250 [0] NCCL INFO                             + NET[50.0] - NET/0 (1/1/50.000000)\n"
          "node1:4242:4250 [0] NCCL INFO + PCI[48.0] - NIC/5000\n"
          "node1:4242:4250 [0] NCCL INFO               + NET[50.0] - NET/1 (2/1/50.000000)\n"
          "node1:4242:4250 [0] NCCL INFO + SYS[20.0] - CPU/1\n"
          "node1:4242:4250 [0] NCCL INFO CPU/1 (1/1/3)\n"
          "node1:4242:4250 [0] NCCL INFO + PCI[48.0] - GPU/81000 (1)\n"
          "node1:4242:4250 [0] NCCL INFO               + NVL[240.0] - NVS/0\n"
          "node1:4242:4250 [0] NCCL INFO + PCI[48.0] - NIC/c1000\n"
          "node1:4242:4250 [0] NCCL INFO               + NET[50.0] - NET/2 (3/1/50.000000)\n"
          "node1:4242:4250 [0] NCCL INFO + SYS[20.0] - CPU/0\n"
          "node1:4242:4250 [0] NCCL INFO ==========================================\n"};
}
