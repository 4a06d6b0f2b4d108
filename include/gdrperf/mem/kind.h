#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gdrperf::mem {

enum class Place {
  kHost,      ///< "host": plain pages
  kHugepage,  ///< "hugepage": 2 MiB pages
  kCuda,      ///< "cuda:N": cudaMalloc
  kCudaVmm,   ///< "cuda-vmm:N": cuMemCreate, GPUDirect RDMA allowed
  kCudaHost,  ///< "cuda-host": pinned host memory that GPUs see
  kRocm,      ///< "rocm:N": hipMalloc, of an AMD GPU
  kZe,        ///< "ze:N": zeMemAllocDevice, of an Intel GPU
  kFile,      ///< "file:PATH", "file:PATH@OFFSET": a mapped file or device
  kStaged,    ///< "staged:N": GPU memory reached through pinned host memory
};

/// A kind of memory as it is written: a place, and for GPUs which one: an
/// index, a PCI address or a UUID.
struct Kind {
  Place place = Place::kHost;
  std::string gpu;
  std::string file = {};     ///< kFile
  std::uint64_t offset = 0;  ///< kFile: of its first byte
};

/// Throws usage_error, naming `flag`, for a text that names no kind.
Kind parse_kind(std::string_view text, const std::string& flag);

/// Data lies in GPU memory (cuda, cuda-vmm, rocm, ze, staged): the CPU cannot look at it.
bool on_gpu(const Kind& kind);

/// Memory of a GPU that is not NVIDIA's: rocm, ze.
bool of_other_maker(const Kind& kind);

}  // namespace gdrperf::mem
