#pragma once

#include <cstdint>
#include <string>

namespace gdrperf {

/// A GPU whose memory was one end of a run. Empty or 0: not known here.
struct GpuInfo {
  int index = 0;             ///< as CUDA counts in that process
  std::string name;          ///< "NVIDIA H200"
  std::string uuid;          ///< "GPU-..."
  std::string pci_address;   ///< "0000:17:00.0"
  std::uint64_t bar1_bytes = 0;
  std::string driver;        ///< "580.159.04"
  std::string kernel_module; ///< open | proprietary
  bool operator==(const GpuInfo&) const = default;
};

}  // namespace gdrperf
