#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/topo/relation.h"

namespace gdrperf::topo {

struct Nic {
  Outside label;  ///< of the column: "NIC0", or "mlx5_0" with old drivers
  Outside name;   ///< RDMA device: from the NIC legend, else the label
};

/// The matrix of `nvidia-smi topo -m`: devices in column order, cells and
/// affinities as printed.
struct Matrix {
  /// One value for each GPU, "" where the cell is empty; nothing when the
  /// driver does not print that column.
  using Column = std::optional<std::vector<Outside>>;

  std::vector<std::string> gpus;  ///< "GPU0", ...
  std::vector<Nic> nics;
  std::vector<std::vector<std::string>> gpu_gpu;  ///< [gpu][gpu]; "X" on the diagonal
  std::vector<std::vector<std::string>> gpu_nic;  ///< [gpu][nic]: PIX PXB PHB NODE SYS SOC
  std::vector<std::vector<std::string>> nic_nic;  ///< [nic][nic]; "" where no row says it
  Column cpu_affinity;
  Column numa_affinity;
  Column gpu_numa_id;
};

}  // namespace gdrperf::topo
