#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::doctor {

/// Answers of GPUs and NICs to a request for GPUDirect RDMA: the lines of the
/// program's own probe (Machine::run({kGpuProbe})).
struct GpuProbe {
  struct Gpu {
    std::string address;  ///< "0000:17:00.0"
    std::string name;     ///< "NVIDIA H200"
    bool gdr = false;     ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
    bool dma_buf = false; ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  };
  /// A registration that was tried; with an empty `gpu` that of file
  /// descriptor -1, where EBADF shows that the NIC's driver can.
  struct Try {
    std::string nic;
    std::string gpu;
    std::string way;  ///< "dmabuf", "peermem"
    int error = 0;    ///< errno; 0: registered
    std::string words;
  };
  std::vector<Gpu> gpus;
  std::vector<Try> tries;
  std::string why_none;  ///< why nothing was asked; "" when it was

  const Gpu* gpu(std::string_view address) const;
  /// Whether one of these registrations worked; nothing when none was tried.
  std::optional<bool> registers(std::string_view way) const;
  std::optional<bool> registers(std::string_view nic, std::string_view gpu) const;
};

/// The lines
///   gpu ADDRESS gdr=0|1 dmabuf=0|1 NAME
///   nic DEVICE dmabuf ERRNO WORDS
///   reg DEVICE ADDRESS WAY ERRNO WORDS
///   none REASON
GpuProbe parse_gpu_probe(std::string_view text);

}  // namespace gdrperf::doctor
