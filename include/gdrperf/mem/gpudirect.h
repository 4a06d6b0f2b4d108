#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

namespace gdrperf::mem {

/// Answers of the CUDA driver about one GPU.
struct GpuSupport {
  std::string kind;         ///< "cuda:0", as make_buffer() takes it
  std::string pci_address;  ///< "0000:17:00.0"
  std::string name;         ///< "NVIDIA H200"
  bool gpu_direct_rdma = false;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool dma_buf = false;          ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
};

/// The CUDA runtime that this program was built with, "13.0"; "" where there was none.
std::string cuda_runtime_version();

enum class GpuWay { kDmaBuf, kPeerMemory };

/// All GPUs that CUDA shows here; empty where there is none, and `why_none`
/// says why. Throws nothing but std::bad_alloc.
std::vector<GpuSupport> gpu_support(std::string& why_none);

/// Registers memory of that GPU with `pd` and takes it back: 0, or the errno of
/// the registration (ENOTSUP: the GPU's driver exports no such memory).
int try_registration(ibv_pd* pd, const GpuSupport& gpu, GpuWay way);

/// errno of ibv_reg_dmabuf_mr with file descriptor -1: EBADF from a driver that
/// can register dma-buf, something else from one that cannot.
int ask_for_dma_buf(ibv_pd* pd);

}  // namespace gdrperf::mem
