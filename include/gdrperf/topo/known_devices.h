#pragma once

#include <cstdint>
#include <string_view>

#include "gdrperf/topo/pci_tree.h"

namespace gdrperf::topo {

/// Facts that the PCI IDs of a NIC tell (pci.ids, data sheets of the makers).
struct KnownNic {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string_view name;      ///< as in pci.ids: "ConnectX-6 Dx"
  double most_port_gbps = 0;  ///< of the fastest card with this chip; many cards are slower
};

/// Facts that the PCI IDs of a GPU tell.
struct KnownGpu {
  std::uint16_t vendor = 0;
  std::uint16_t first = 0;  ///< device IDs first to last are of this chip
  std::uint16_t last = 0;
  std::string_view name;
  PcieLink most;  ///< its link at most
  /// NVLink or NVLink-C2C to the CPU, GB/s each way; 0: none. The way of a NIC's data to and from its memory,
  /// where the two share no PCIe switch.
  double cpu_gbytes = 0;
  std::string_view cpu_link;  ///< "NVLink-C2C"
};

/// "Grace" or "Vera", of whose CPU the function is a root port (as rdma_topo of rdma-core knows them); null: of none.
const char* cpu_of_root_port(const PciFunction& function);

/// Null where the table has no such device. By the IDs, or, where the source tells none (`lspci -tv`), by the name.
const KnownNic* known_nic(const PciFunction& function);
const KnownGpu* known_gpu(const PciFunction& function);

/// The link between this GPU and its CPU that is no PCIe. POWER9 has two bricks for each of six GPUs, or three for
/// each of four; V100 and P100 have it on IBM's servers alone. Null where there is none.
const KnownGpu* gpu_on_cpu_link(const PciTree& tree, std::size_t gpu);

/// The greatest rate a product's name speaks of in 1e9 bit/s: 200 for "... HDR200 IB (200Gb/s) and 200GbE, ...". 0:
/// none.
double rate_in_words(std::string_view product);

/// Fills in what ports can carry, where the source does not tell their rate: by the product's name in its vital
/// product data, else "at most" by its IDs.
void fill_port_rates(PciTree& tree);

}  // namespace gdrperf::topo
