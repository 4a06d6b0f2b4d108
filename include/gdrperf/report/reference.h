#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::report {

/// One published figure (results/reference/gpudirect-rdma.json).
struct PublishedFigure {
  std::string machine;
  std::string gpu;
  std::string nic;
  double link_gbps = 0;                ///< 0: not stated
  bool infiniband = false;             ///< the link is: packets without RoCE's headers
  std::vector<std::string> relations;  ///< what the source says; several: one of them
  std::string op;
  double gbytes = 0;            ///< GB/s; 0: a latency
  int gpu_pcie_gen = 0;         ///< of the GPU's link of 16 lanes; 0: the GPU is not named
  std::string direction;        ///< of GPU memory by the NIC: "read", "write"; "" not stated
  bool gpudirect_rdma = false;  ///< one NIC on GPU memory: what gdrperf measures
  bool fault = false;           ///< of the machine, as its authors found: no figure to expect
  std::string source;
};

/// All of them; parsed once. Thread-safe.
const std::vector<PublishedFigure>& published_figures();

/// Rank of a bandwidth among those published for its relation and link
/// rate, as a sentence: "Published for SYS at 100 Gb/s: ...". Where the rate is
/// not known (0) or has none, all rates count, and it says so. "" where nothing
/// is published for the relation.
std::string standing(std::string_view relation, double link_gbps, double gbytes);

}  // namespace gdrperf::report
