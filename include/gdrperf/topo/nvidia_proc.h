#pragma once

#include <string>
#include <vector>

namespace gdrperf::topo {

/// The NVIDIA kernel driver's facts about one GPU.
struct NvidiaGpu {
  std::string pci_address;  ///< "0000:3b:00.0"
  std::string model;        ///< "NVIDIA H200"
};

/// The GPUs below `root`/proc/driver/nvidia in the order of their PCI addresses,
/// which is the order of GPU0, GPU1, ... in `nvidia-smi`; empty without the driver.
std::vector<NvidiaGpu> nvidia_gpus(const std::string& root = {});

/// GPUs on the PCI bus below `root`/sys, with or without the driver.
int nvidia_gpus_on_bus(const std::string& root = {});

/// "580.95.05" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ...";
/// "" of anything else.
std::string nvidia_version_in(const std::string& line);

/// Version of the NVIDIA kernel driver ("580.95.05"), "" without one.
std::string nvidia_driver_version(const std::string& root = {});

}  // namespace gdrperf::topo
