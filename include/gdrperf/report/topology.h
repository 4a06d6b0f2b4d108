#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/base/outside.h"

namespace gdrperf::report {

/// The machine's topology as a result document shows it: plain data, for
/// whoever knows it to fill in. Empty strings and nullopt become null.
struct TopologyGpu {
  std::string name;  ///< "GPU0"
  Outside model;
  std::string pci_address;
  std::optional<int> numa_node;
  Outside uuid = {};
};

struct TopologyNic {
  Outside name;  ///< RDMA device
  std::string pci_address;
  Outside netdev;
  std::optional<int> numa_node;
  Outside firmware = {};
  Outside driver = {};  ///< of the kernel
  Outside guid = {};    ///< of the node, as ibv_devinfo prints it
};

/// One PCIe link of a path, from the GPU to the NIC.
struct TopologyHop {
  std::string bdf;  ///< of the link's lower end
  std::optional<int> gen;
  std::optional<int> width;
  std::optional<int> gen_max = {};  ///< what both ends of the link can
  std::optional<int> width_max = {};
  std::optional<int> max_payload_bytes = {};
};

struct TopologyPair {
  std::string relation;         ///< PIX, PXB, PHB, NODE or SYS
  std::string nvidia_smi;       ///< what nvidia-smi said
  std::string pci;              ///< what the PCI tree says
  std::string common_ancestor;  ///< its address
  std::vector<TopologyHop> hops;
  std::optional<bool> acs_redirect;    ///< some bridge sends peer traffic up to the root
  std::optional<double> ceiling_gbps;  ///< Gb/s of payload the PCIe path can carry
  std::string limited_by = {};
  std::string difference = {};  ///< why nvidia-smi and the tree do not agree
};

struct Topology {
  std::string source = "none";  ///< "nvidia-smi", "pci" or "none"; of a recorded one
                                ///< "file" (a matrix), "hwloc", "sysfs", "lspci", "nccl-xml"
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  std::map<Outside, TopologyPair> pairs;  ///< key "GPU0/mlx5_0"
};

}  // namespace gdrperf::report
