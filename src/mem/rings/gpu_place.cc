#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/proto/settings.h"
#include "mem/cuda/device.h"
#include "mem/cuda/kernels.h"
#include "mem/rings/kernels.h"
#include "mem/rings/place.h"

namespace gdrperf::mem::rings {
namespace {

using cuda::ok;
using cuda::use_device;

/// Pages of this process that GPUs reach: rings of several QPs share some.
class Pages {
 public:
  static Pages& get() {
    static Pages pages;
    return pages;
  }
  /// cudaSuccess, or why the page at `at` cannot be had.
  cudaError_t add(std::uintptr_t at, unsigned flags) {
    const MutexLock lock(mutex_);
    Page& page = pages_[at];
    if (page.uses++ > 0) return cudaSuccess;
    const cudaError_t error = cudaHostRegister(reinterpret_cast<void*>(at), size(), flags);
    page.ours = error == cudaSuccess;
    if (error == cudaSuccess || error == cudaErrorHostMemoryAlreadyRegistered) {
      cudaGetLastError();
      return cudaSuccess;
    }
    cudaGetLastError();
    pages_.erase(at);
    return error;
  }
  void remove(std::uintptr_t at) {
    const MutexLock lock(mutex_);
    const auto page = pages_.find(at);
    if (page == pages_.end() || --page->second.uses > 0) return;
    if (page->second.ours) cudaHostUnregister(reinterpret_cast<void*>(at));
    cudaGetLastError();
    pages_.erase(page);
  }
  static std::uintptr_t size() {
    static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }

 private:
  struct Page {
    int uses = 0;
    bool ours = false;
  };
  Mutex mutex_;
  std::map<std::uintptr_t, Page> pages_ GUARDED_BY(mutex_);
};

/// A kernel that runs as long as the run does.
class GpuPlace final : public Place {
 public:
  GpuPlace(const Poster& poster, const std::string& flag) : poster_(poster), flag_(flag) {
    use_device(poster.gpu);
    if (!cuda::kernels_built()) {
      throw Error(ExitCode::kEnvironment, fmt::format("{}: this build has no kernels for GPUs", flag),
                  "build with nvcc (the CUDA toolkit)");
    }
    load_kernels();
    ok(cudaStreamCreateWithFlags(&posting_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", poster.gpu);
  }
  ~GpuPlace() override {
    cudaSetDevice(poster_.gpu);
    if (posting_ != nullptr) cudaStreamSynchronize(posting_);
    for (const std::uintptr_t page : pages_) Pages::get().remove(page);
    for (void* each : near_) cudaFree(each);
    for (void* each : shared_) cudaFreeHost(each);
    if (posting_ != nullptr) cudaStreamDestroy(posting_);
  }
  GpuPlace(const GpuPlace&) = delete;
  GpuPlace& operator=(const GpuPlace&) = delete;

  void* near(std::size_t bytes) override {
    use_device(poster_.gpu);
    void* at = nullptr;
    ok(cudaMalloc(&at, bytes), "cudaMalloc", poster_.gpu);
    near_.push_back(at);
    ok(cudaMemsetAsync(at, 0, bytes, posting_), "cudaMemsetAsync", poster_.gpu);
    ok(cudaStreamSynchronize(posting_), "cudaStreamSynchronize", poster_.gpu);
    return at;
  }
  void* shared(std::size_t bytes) override {
    use_device(poster_.gpu);
    void* at = nullptr;
    ok(cudaHostAlloc(&at, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc", poster_.gpu);
    shared_.push_back(at);
    std::memset(at, 0, bytes);
    return at;
  }

  void* map(void* at, std::size_t bytes) override {
    std::string why;
    void* const mapped = try_map(at, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable, why);
    if (mapped != nullptr) return mapped;
    throw Error(
        ExitCode::kEnvironment, fmt::format("{}: the GPU cannot reach the queues of the device: {}", flag_, why),
        "the library keeps them in memory that the NVIDIA driver does not register; 'gdrperf doctor' looks closer");
  }
  std::uint64_t* map_doorbell(std::uint64_t* at, std::string& kind) override {
    std::string why;
    constexpr unsigned kPlain = cudaHostRegisterMapped | cudaHostRegisterPortable;
    kind = "uar";
    if (void* const mapped = try_map(at, sizeof *at, kPlain | cudaHostRegisterIoMemory, why))
      return static_cast<std::uint64_t*>(mapped);
    kind = "memory";
    if (void* const mapped = try_map(at, sizeof *at, kPlain, why)) return static_cast<std::uint64_t*>(mapped);
    kind = "cpu";
    return nullptr;
  }

  void launch(const Run& run) override {
    use_device(poster_.gpu);
    const bool shared = shares(groups_of(shape_of(poster_)), run.queue_count);
    int blocks = 0;
    ok(resident_blocks(shape_of(poster_), shared, run.bounce != nullptr, blocks),
       "cudaOccupancyMaxActiveBlocksPerMultiprocessor", poster_.gpu);
    if (poster_.blocks > blocks) {
      throw usage_error(
          fmt::format("{}: {} blocks of {} threads wait for each other, and the GPU runs {} at the same time", flag_,
                      poster_.blocks, poster_.threads, blocks),
          fmt::format("give {} {}, or fewer", flag<&TestSpec::gpu_blocks>(), blocks));
    }
    ok(launch_posting(shape_of(poster_), run, posting_), "the kernel that posts", poster_.gpu);
  }
  void join() override {
    cudaSetDevice(poster_.gpu);
    ok(cudaStreamSynchronize(posting_), "the kernel that posts", poster_.gpu);
  }

 private:
  /// Kernels that are loaded when first used would wait for the one that runs.
  void load_kernels() const {
    ok(cuda::load_kernels(), "cudaFuncGetAttributes", poster_.gpu);
    int blocks = 0;
    for (const bool shared : {false, true}) {
      ok(resident_blocks(shape_of(poster_), shared, false, blocks), "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
         poster_.gpu);
    }
    ok(resident_blocks(shape_of(poster_), false, true, blocks), "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
       poster_.gpu);
  }

  void* try_map(void* at, std::size_t bytes, unsigned flags, std::string& why) {
    use_device(poster_.gpu);
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    const std::uintptr_t size = Pages::size();
    const std::uintptr_t first = begin / size * size;
    std::vector<std::uintptr_t> added;
    cudaError_t error = cudaSuccess;
    for (std::uintptr_t page = first; page < begin + bytes && error == cudaSuccess; page += size) {
      error = Pages::get().add(page, flags);
      if (error == cudaSuccess) added.push_back(page);
    }
    void* mapped = nullptr;
    if (error == cudaSuccess) error = cudaHostGetDevicePointer(&mapped, reinterpret_cast<void*>(first), 0);
    void* last = nullptr;
    if (error == cudaSuccess) error = cudaHostGetDevicePointer(&last, reinterpret_cast<void*>(added.back()), 0);
    const bool whole = static_cast<std::uint8_t*>(last) - static_cast<std::uint8_t*>(mapped) ==
                       static_cast<std::ptrdiff_t>(added.empty() ? 0 : added.back() - first);
    if (error == cudaSuccess && whole) {
      pages_.insert(pages_.end(), added.begin(), added.end());
      return static_cast<std::uint8_t*>(mapped) + (begin - first);
    }
    cudaGetLastError();
    for (const std::uintptr_t page : added) Pages::get().remove(page);
    why = fmt::format("cudaHostRegister: {}", error == cudaSuccess ? "pages lie apart" : cudaGetErrorString(error));
    return nullptr;
  }

  Poster poster_;
  std::string flag_;
  cudaStream_t posting_ = nullptr;
  std::vector<void*> near_;
  std::vector<void*> shared_;
  std::vector<std::uintptr_t> pages_;
};

}  // namespace

std::unique_ptr<Place> make_gpu_place(const Poster& poster, const std::string& flag) {
  return std::make_unique<GpuPlace>(poster, flag);
}

}  // namespace gdrperf::mem::rings
