#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/topo/pci.h"

namespace gdrperf::topo {

/// One PCI function: a device or a bridge. Zero, -1 and empty: not known.
struct PciFunction {
  PciAddress address;
  int parent = -1;  ///< index of the bridge above it; -1: on a root bus
  int root = -1;    ///< index of its root bus; -1: the source does not say where it hangs
  bool bridge = false;
  std::uint16_t class_code = 0;  ///< base class and subclass: 0x0302
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t subsystem = 0;  ///< vendor << 16 | device
  Outside model;                ///< in words
  Outside product;              ///< by its vital product data: "CONNECTX-6 VPI adapter card, HDR200 IB (200Gb/s) ..."
  PcieLink link;                ///< the link towards the root, or a port's link downwards
  PcieLink link_max;
  double link_gbytes = 0;  ///< GB/s of that link, from sources that tell no width
  int max_payload_bytes = 0;
  int max_read_request_bytes = 0;
  int port_type = -1;                ///< as in PciConfig
  std::optional<bool> acs_redirect;  ///< of a bridge
  std::string acs_unknown;           ///< why that is not known
  int iommu_group = -1;
  Outside iommu_type;                   ///< of the group: "DMA", "DMA-FQ", "identity"
  std::vector<int> numa;                ///< nodes next to it, ascending
  std::vector<Outside> os_devices;      ///< "mlx5_0", "ib0", "cuda0"
};

/// A root bus: below one host bridge.
struct PciRoot {
  Outside name;  ///< "0000:[00-0f]", "0000:c0"
  /// Attributes of NCCL's <cpu>, as they stand there: numaid, affinity, ...
  std::vector<std::pair<std::string, Outside>> attributes;
};

struct TreeGpu {
  std::string label;  ///< "GPU0"
  std::size_t function = 0;
  Outside uuid;
  bool by_class = false;  ///< the source does not call it a GPU: its class does
};

/// Source of a port's rate.
enum class PortRate {
  kPort,     ///< the port itself: sysfs, NCCL
  kProduct,  ///< the name of the product
  kAtMost,   ///< the PCI IDs of its chip: the card may be a slower one
};

/// "port", "product name", "PCI ID (at most)".
std::string_view to_string(PortRate source);

/// An RDMA device. Several may share a function (ports of one card).
struct TreeNic {
  Outside name;
  std::size_t function = 0;
  Outside guid;
  Outside netdev;
  std::optional<std::size_t>
      data_direct;       ///< function that reads and writes GPU memory in place of `function` (data_direct.h)
  double rate_gbps = 0;  ///< of its port, the fastest that is up; 0: not known
  PortRate rate_source = PortRate::kPort;
  bool infiniband = false;  ///< its port is: packets without RoCE's headers
  bool by_class = false;
  bool declared = false;  ///< its maker says where it is; the source does not show it
  /// Attributes of NCCL's <net>, as they stand there: port, gdr, speed.
  std::vector<std::pair<std::string, Outside>> attributes;
};

/// PCI functions of one machine, as far as they lie on paths of GPUs and NICs
/// or the source lists them. Parents stand in front of what hangs below them.
struct PciTree {
  /// "pci" for this machine, else the name of the format it was read from (formats.h).
  std::string source = "pci";
  /// As NCCL has trees: a switch is one function, and root ports are left out.
  bool of_nccl = false;
  Outside version;  ///< of the file's format: "2.0"
  std::vector<PciRoot> roots;
  std::vector<PciFunction> functions;
  std::vector<TreeGpu> gpus;  ///< labels may skip numbers
  std::vector<TreeNic> nics;
  std::map<Outside, std::vector<Outside>> nets_without_pci;  ///< name -> NUMA nodes
  std::vector<std::string> notes;  ///< what the reader of a result should know about the source

  const TreeGpu* gpu(std::string_view label) const;
  const TreeNic* nic(std::string_view name) const;
  /// Indices of the bridges above a function, from the root port down.
  std::vector<std::size_t> bridges(std::size_t function) const;
};

/// A GPU one computes on, by class and vendor alone: VGA, 3D or accelerator of
/// NVIDIA; 3D, display or accelerator of AMD, whose VGA class is ambiguous.
bool is_gpu_function(std::uint16_t class_code, std::uint16_t vendor);

/// The same, and AMD's VGA controllers that have devices to compute on.
bool is_gpu(const PciFunction& function);

/// Labels as GPUs all functions of the tree that are one, in the order of their
/// addresses, as nvidia-smi does; sorts the NICs likewise.
void find_gpus(PciTree& tree);

}  // namespace gdrperf::topo
