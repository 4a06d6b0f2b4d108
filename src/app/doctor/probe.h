#pragma once

#include <iosfwd>

namespace gdrperf::app {

/// Probe that `gdrperf doctor` runs beside itself: asks each GPU and each NIC for
/// GPUDirect RDMA and prints a line for each answer (doctor::GpuProbe reads
/// them). CUDA may take seconds, or hang: not in the doctor's own process.
int run_gpu_probe(std::ostream& out);

}  // namespace gdrperf::app
