#pragma once

#include <string>
#include <string_view>

#include "gdrperf/base/error.h"

namespace gdrperf::mem {

/// Needs of GPU memory: of a machine and of this program.
struct GpuNeeds {
  int gpus_on_bus = 0;
  std::string driver;  ///< version of the loaded kernel driver; "" without one
  bool cuda = false;   ///< built with the CUDA runtime
};

/// Looks at this machine. `root` is "" but in tests.
GpuNeeds gpu_needs(const std::string& root = {});

/// Whether all is here; the reason is another one then.
bool complete(const GpuNeeds& needs);

/// kEnvironment for `what` ("--buffer cuda:0"): which of GPU, driver and CUDA is
/// missing, and what to do about the first of it.
Error gpu_missing(std::string_view what, const GpuNeeds& needs);

}  // namespace gdrperf::mem
