#include "mem/cuda/gpu_missing.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/proto/settings.h"
#include "gdrperf/topo/nvidia_proc.h"

#ifndef GDRPERF_WITH_CUDA
#define GDRPERF_WITH_CUDA 0
#endif

namespace gdrperf::mem {

GpuNeeds gpu_needs(const std::string& root) {
  return {topo::nvidia_gpus_on_bus(root), topo::nvidia_driver_version(root), GDRPERF_WITH_CUDA != 0};
}

bool complete(const GpuNeeds& needs) { return needs.gpus_on_bus > 0 && !needs.driver.empty() && needs.cuda; }

Error gpu_missing(std::string_view what, const GpuNeeds& needs) {
  const bool gpu = needs.gpus_on_bus > 0;
  const bool driver = !needs.driver.empty();
  const std::vector<std::string> found = {
      gpu ? fmt::format("{} NVIDIA GPU{} on the PCI bus", needs.gpus_on_bus, needs.gpus_on_bus == 1 ? "" : "s")
          : std::string("no NVIDIA GPU on the PCI bus"),
      driver ? "NVIDIA driver " + needs.driver : std::string("no NVIDIA driver is loaded"),
      needs.cuda ? "this gdrperf was built with CUDA" : "this gdrperf was built without CUDA"};
  const std::string hint =
      !gpu      ? own_flag<&EndSpec::buffer>() +
                 " host needs none; or run where a GPU is (a virtual machine or container has to be given it)"
      : !driver ? "install or load the NVIDIA driver (modprobe nvidia); 'gdrperf doctor' finds out more"
                : "install the CUDA toolkit (nvcc and libcudart_static.a), configure again with -Dcuda=enabled and "
                  "build";
  return Error(ExitCode::kEnvironment, fmt::format("{}: no GPU memory here: {}", what, fmt::join(found, "; ")), hint);
}

}  // namespace gdrperf::mem
