// Any text either gives a tree that hangs together, or is refused with one
// short message that names line and column.
#include "fuzz.h"
#include "topo_trees.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
</system>)"};
}
