#include "mem/cuda/memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "mem/cuda/copier.h"
#include "mem/cuda/device.h"
#include "mem/cuda/kernels.h"
#include "mem/cuda/register.h"
#include "mem/cuda/region.h"
#include "mem/cuda/relay.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "mem/host_buffer.h"

namespace gdrperf::mem::cuda {
namespace {

/// Pinned host memory, seen by every GPU.
class PinnedBuffer final : public CpuBuffer {
 public:
  PinnedBuffer(int device, std::size_t bytes) : CpuBuffer("cuda-host", bytes), device_(device) {
    use_device(device);
    void* at = nullptr;
    ok(cudaHostAlloc(&at, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
       fmt::format("cudaHostAlloc({})", format_size(bytes)), device);
    data_ = static_cast<std::byte*>(at);
    std::memset(data_, 0, bytes);
  }
  ~PinnedBuffer() override {
    cudaSetDevice(device_);
    cudaFreeHost(data_);
  }

 private:
  int device_;
};

/// Memory of one GPU.
class GpuBuffer final : public Buffer {
 public:
  GpuBuffer(const Kind& kind, int device, std::size_t bytes, Registration registration)
      : kind_(fmt::format("{}:{}", kind.place == Place::kCudaVmm ? "cuda-vmm"
                                   : kind.place == Place::kStaged ? "staged"
                                                                  : "cuda",
                          device)),
        region_(kind.place == Place::kCudaVmm ? make_vmm_region(device, bytes) : make_plain_region(device, bytes)),
        size_(bytes),
        device_(device),
        wanted_(registration),
        gpu_(describe(device)) {
    ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", device);
    ok(cudaMemsetAsync(region_->at(), 0, bytes, stream_), "cudaMemsetAsync", device);
    ok(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", device);
    int ordering = 0;
    cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device);
    needs_flush_ = ordering < cudaGPUDirectRDMAWritesOrderingOwner;
  }
  ~GpuBuffer() override {
    cudaSetDevice(device_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaFree(verdict_);
    cudaFree(flags_);
  }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(region_->at()); }
  std::size_t size() const override { return size_; }
  const std::string& kind() const override { return kind_; }
  bool cpu_reachable() const override { return false; }
  verbs::Mr register_with(ibv_pd* pd, int access) override {
    return register_gpu_memory(pd, device_, region_->at(), region_->bytes(), access, wanted_, registration_);
  }
  const std::string& registration() const override { return registration_; }
  const GpuInfo* gpu() const override { return &gpu_; }
  std::unique_ptr<Relay> make_relay(const RelayRun& run) override {
    return cuda::make_relay(device_, region_->at(), run);
  }
  std::unique_ptr<Copier> make_copier() override { return cuda::make_copier(device_); }

  const std::string& checker() const override {
    static const std::string kGpu = "gpu", kCopy = "copy";
    return kernels_built() ? kGpu : kCopy;
  }
  void fill(const PatternRun& run) override {
    use_device(device_);
    if (!on_kernels(run)) return fill_by_copy(run);
    ok(launch_fill(kernel_run(run), stream_), "fill kernel", device_);
    ok(cudaStreamSynchronize(stream_), "fill kernel", device_);
  }
  CheckResult check(const PatternRun& run) override {
    use_device(device_);
    // Completions say that data has left the NIC; it may still be on its way
    // into the memory where the device does not order that by itself.
    if (needs_flush_) {
      ok(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                            cudaFlushGPUDirectRDMAWritesToOwner),
         "cudaDeviceFlushGPUDirectRDMAWrites", device_);
    }
    return on_kernels(run) ? check_by_kernel(run) : check_by_copy(run);
  }

 private:
  static bool on_kernels(const PatternRun& run) {
    return kernels_built() && run.last_byte < 0 && run.stride % 16 == 0 && run.offset % 16 == 0;
  }
  KernelRun kernel_run(const PatternRun& run) const {
    return {static_cast<std::uint8_t*>(region_->at()) + run.offset,
            run.stride,
            run.count,
            run.size_bytes,
            pattern_start(run.key, run.first_slot, run.iteration),
            kSlotStep,
            kWordStep};
  }

  /// All of the run in host memory.
  std::vector<std::byte>& copy_of(const PatternRun& run) {
    copy_.resize(run.stride * run.count);
    return copy_;
  }
  static PatternRun moved_to_front(PatternRun run) {
    run.offset = 0;
    return run;
  }
  void fill_by_copy(const PatternRun& run) {
    std::vector<std::byte>& host = copy_of(run);
    fill_pattern(host.data(), moved_to_front(run));
    ok(cudaMemcpy2D(data() + run.offset, run.stride, host.data(), run.stride, run.size_bytes, run.count,
                    cudaMemcpyHostToDevice),
       "cudaMemcpy2D", device_);
  }
  CheckResult check_by_copy(const PatternRun& run) {
    std::vector<std::byte>& host = copy_of(run);
    ok(cudaMemcpy2D(host.data(), run.stride, data() + run.offset, run.stride, run.size_bytes, run.count,
                    cudaMemcpyDeviceToHost),
       "cudaMemcpy2D", device_);
    return check_pattern(host.data(), moved_to_front(run));
  }

  CheckResult check_by_kernel(const PatternRun& run) {
    if (verdict_ == nullptr)
      ok(cudaMalloc(reinterpret_cast<void**>(&verdict_), sizeof *verdict_), "cudaMalloc", device_);
    if (flag_count_ < run.count) {
      cudaFree(flags_);
      flags_ = nullptr;
      ok(cudaMalloc(reinterpret_cast<void**>(&flags_), run.count * sizeof *flags_), "cudaMalloc", device_);
      flag_count_ = run.count;
    }
    KernelVerdict verdict{0, ~0ull};
    ok(cudaMemcpyAsync(verdict_, &verdict, sizeof verdict, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync",
       device_);
    ok(cudaMemsetAsync(flags_, 0, run.count * sizeof *flags_, stream_), "cudaMemsetAsync", device_);
    ok(launch_check(kernel_run(run), verdict_, flags_, stream_), "check kernel", device_);
    ok(cudaMemcpyAsync(&verdict, verdict_, sizeof verdict, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync",
       device_);
    ok(cudaStreamSynchronize(stream_), "check kernel", device_);
    CheckResult result;
    result.wrong_messages = verdict.wrong_messages;
    if (verdict.wrong_messages != 0) {
      const std::uint64_t message = verdict.first >> 40;
      const std::uint64_t offset = verdict.first & ((1ull << 40) - 1);
      std::uint64_t found = 0;
      ok(cudaMemcpy(&found, data() + run.offset + message * run.stride + offset,
                    std::min<std::uint64_t>(8, run.size_bytes - offset), cudaMemcpyDeviceToHost),
         "cudaMemcpy", device_);
      result.first = mismatch_of(run, run.first_slot + message, offset / 8, found);
    }
    return result;
  }

  std::string kind_;
  std::unique_ptr<Region> region_;
  std::size_t size_;
  int device_;
  Registration wanted_;
  std::string registration_;
  GpuInfo gpu_;
  bool needs_flush_ = false;
  cudaStream_t stream_ = nullptr;
  KernelVerdict* verdict_ = nullptr;
  unsigned* flags_ = nullptr;
  std::uint64_t flag_count_ = 0;
  std::vector<std::byte> copy_;
};

}  // namespace

void check(const Kind& kind, const std::string& text, const char* flag) {
  find_device(kind.gpu.empty() ? "0" : kind.gpu, fmt::format("{} {}", flag, text));
}

std::uint64_t free_bytes(const Kind& kind) {
  use_device(find_device(kind.gpu, own_flag<&EndSpec::buffer>()));
  std::size_t left = 0;
  std::size_t total = 0;
  return cudaMemGetInfo(&left, &total) == cudaSuccess ? left : 0;
}

std::unique_ptr<Buffer> make(const Kind& kind, std::size_t bytes, Registration registration) {
  const int device = find_device(kind.gpu.empty() ? "0" : kind.gpu, own_flag<&EndSpec::buffer>());
  if (kind.place == Place::kCudaHost) return std::make_unique<PinnedBuffer>(device, bytes);
  return std::make_unique<GpuBuffer>(kind, device, bytes, registration);
}

}  // namespace gdrperf::mem::cuda
