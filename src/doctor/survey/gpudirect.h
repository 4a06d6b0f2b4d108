#pragma once

#include <optional>
#include <string>

#include "doctor/survey/gpu_probe.h"
#include "doctor/survey/modules.h"
#include "doctor/survey/survey.h"

namespace gdrperf::doctor {

/// /proc/driver/nvidia/version
struct NvidiaDriver {
  bool loaded = false;
  bool open = false;  ///< the open kernel module
  std::string version;
};
NvidiaDriver nvidia_driver(const Machine& machine);

/// Answers to this program's probe.
GpuProbe ask_gpus(const Machine& machine);

/// Names of the GPUs, as far as /proc/driver/nvidia or nvidia-smi tell.
std::vector<std::string> gpu_names(const Survey& survey);
/// A GeForce: it does no GPUDirect RDMA, whatever is loaded.
bool is_geforce(std::string_view name);
/// A vGPU: its name ends in its memory and series, "NVIDIA A100-40C".
bool is_vgpu(std::string_view name);
/// GB10 and Tegra: memory that GPU and CPU share, no GPUDirect RDMA to it.
bool shares_memory_with_cpu(std::string_view name);
/// A GPU here does: a board whose parts are soldered.
bool gpu_shares_memory(const Survey& survey);

/// Whether dma-buf serves here: asked, where it could be.
struct DmaBuf {
  std::optional<bool> works;  ///< nothing: not asked, and nothing speaks against it
  std::string found;
  std::string fix;
};
DmaBuf dma_buf(const Survey& survey);

/// Text of the kernel's log; nothing when this user may not read it.
std::optional<std::string> kernel_log(const Machine& machine);

}  // namespace gdrperf::doctor
