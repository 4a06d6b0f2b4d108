#pragma once

#include <cstddef>

namespace gdrperf::topo {

/// Bounds of what a reader takes from a file: the largest machines known have
/// tens of GPUs, more than a thousand NICs where each has virtual functions, and
/// some thousand PCI functions. Pairs are kept in tables.
inline constexpr std::size_t kMostFunctions = 65536;
inline constexpr std::size_t kMostRoots = 4096;
inline constexpr std::size_t kMostOsDevices = 4096;
inline constexpr std::size_t kMostGpus = 128;
inline constexpr std::size_t kMostNics = 2048;
inline constexpr std::size_t kMostCaptureBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostName = 256;

}  // namespace gdrperf::topo
