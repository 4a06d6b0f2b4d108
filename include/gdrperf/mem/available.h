#pragma once

#include <cstdint>
#include <string>

namespace gdrperf::mem {

/// Bytes of host memory that this process could still get without swapping: what the
/// kernel says is available (MemAvailable), or less where a control group (version 1 or
/// 2, its parents too) leaves less. Page cache that can be given up counts as free.
/// `root` is put in front of /proc and /sys, for tests. 0: not known.
std::uint64_t available_bytes(const std::string& root = {});

/// Bytes that the GPU of `kind` ("cuda:0") has left; 0 where that is not known.
std::uint64_t available_gpu_bytes(const std::string& kind);

}  // namespace gdrperf::mem
