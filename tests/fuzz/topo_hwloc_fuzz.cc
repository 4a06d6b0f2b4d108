// Any text either gives a tree that hangs together, or is refused with one
// short message that names line and column.
#include "fuzz.h"
#include "topo_trees.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return try_tree(gdrperf::topo::parse_hwloc_xml, data, size);
}

std::vector<std::string> fuzz_seeds() {
  const std::string devices = R"(
<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-0f]">
 <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[01-04]" pci_busid="0000:00:01.0" pci_type="0604 [8086:3408] [0000:0000] 13" pci_link_speed="15.753846">
  <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:15f8] [10de:118f] a1" pci_link_speed="15.75">
   <info name="PCIDevice" value="GP100GL"/>
   <object type="OSDev" name="cuda0" osdev_type="5"><info name="NVIDIAUUID" value="GPU-1"/></object>
  </object>
  <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0207 [15b3:1017] [0000:0000] 00">
   <object type="OSDev" name="ib0" osdev_type="2"/>
   <object type="OSDev" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="0:1:2:3"/></object>
  </object>
 </object>
</object>)";
  const auto machine = [&](const std::string& version) {
    return "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology" + version +
           "><object type=\"Machine\" nodeset=\"0x00000003\"><object type=\"Package\" "
           "nodeset=\"0x00000001\">" +
           devices + "</object></object></topology>";
  };
  return {machine(""), machine(" version=\"2.0\""), machine(" version=\"3.0\"")};
}
