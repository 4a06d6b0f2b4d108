#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gdrperf::report {

/// What a result document says about the machine's topology: plain data, for
/// whoever knows it to fill in. Empty strings and nullopt become null.
struct TopologyGpu {
  std::string name;  ///< "GPU0"
  std::string model;
  std::string pci_address;
  std::optional<int> numa_node;
};

struct TopologyNic {
  std::string name;  ///< RDMA device
  std::string pci_address;
  std::string netdev;
  std::optional<int> numa_node;
  std::string firmware = {};
  std::string driver = {};  ///< of the kernel
};

/// One PCIe link of a path, from the GPU to the NIC.
struct TopologyHop {
  std::string bdf;  ///< of the link's lower end
  std::optional<int> gen;
  std::optional<int> width;
};

struct TopologyPair {
  std::string relation;         ///< PIX, PXB, PHB, NODE or SYS
  std::string nvidia_smi;       ///< what nvidia-smi said
  std::string pci;              ///< what the PCI tree says
  std::string common_ancestor;  ///< its address
  std::vector<TopologyHop> hops;
  std::optional<bool> acs_redirect;    ///< some bridge sends peer traffic up to the root
  std::optional<double> ceiling_gbps;  ///< Gb/s of payload the path can carry
};

struct Topology {
  std::string source = "none";  ///< "nvidia-smi", "file", "pci" or "none"
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  std::map<std::string, TopologyPair> pairs;  ///< key "GPU0/mlx5_0"
};

}  // namespace gdrperf::report
