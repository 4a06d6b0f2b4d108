// Any bytes are taken as configuration space: links are real ones or unknown.
#include "fuzz.h"
#include "topo_trees.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf::topo;
  const PciConfig config = parse_pci_config({reinterpret_cast<const char*>(data), size});
  for (const PcieLink& link : {config.link, config.link_max}) {
    require(!link.known() || (generation(link) >= 1 && link.width <= 32));
  }
  require(config.max_payload_bytes <= 4096 && config.max_read_request_bytes <= 4096);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string bytes(4096, '\0');
  bytes[0] = '\x34';
  bytes[6] = 0x10;     // capabilities
  bytes[0x34] = 0x60;  // PCI Express
  bytes[0x60] = 0x10;
  bytes[0x61] = 0x60;  // a loop
  bytes[0x6c] = 0x03;
  bytes[0x6d] = 0x01;
  bytes[0x100] = 0x0d;  // ACS
  bytes[0x102] = 0x01;
  bytes[0x103] = 0x14;
  return {bytes, bytes.substr(0, 256), bytes.substr(0, 64)};
}
