#include "mem/cuda/copier.h"

#include <array>

#include <fmt/format.h>

#include "mem/cuda/device.h"
#include "mem/cuda/kernels.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::mem::cuda {
namespace {

constexpr std::size_t kMarks = 64;
constexpr float kScalar = 0.5f;

class StreamCopier final : public Copier {
 public:
  explicit StreamCopier(int device) : device_(device) {
    use_device(device);
    ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", device);
    for (cudaEvent_t& event : events_) {
      ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags", device);
    }
  }
  ~StreamCopier() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    for (cudaEvent_t event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    cudaStreamDestroy(stream_);
    cudaFree(result_);
    cudaFreeHost(host_result_);
  }
  StreamCopier(const StreamCopier&) = delete;
  StreamCopier& operator=(const StreamCopier&) = delete;

  void to_host(std::byte* host, const std::byte* gpu, std::size_t bytes) override {
    ok(cudaMemcpyAsync(host, gpu, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync", device_);
  }
  void to_gpu(std::byte* gpu, const std::byte* host, std::size_t bytes) override {
    ok(cudaMemcpyAsync(gpu, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync", device_);
  }
  void consume(const std::byte* data, std::size_t bytes) override {
    if (!kernels_built()) {
      throw Error(ExitCode::kEnvironment,
                  flag<&TestSpec::consume>() + ": this gdrperf was built without nvcc, it has no GPU kernels",
                  "install nvcc, configure again and build");
    }
    const std::size_t whole = bytes / sizeof(float) * sizeof(float);
    reserve(bytes);
    ok(launch_triad(static_cast<float*>(result_), reinterpret_cast<const float*>(data), whole / sizeof(float), kScalar,
                    stream_),
       "consume kernel", device_);
    ok(cudaMemcpyAsync(host_result_, result_, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync", device_);
  }
  void mark() override {
    if (marked_ - reached_ == kMarks) {
      ok(cudaEventSynchronize(events_[reached_ % kMarks]), "cudaEventSynchronize", device_);
      ++reached_;
    }
    ok(cudaEventRecord(events_[marked_ % kMarks], stream_), "cudaEventRecord", device_);
    ++marked_;
  }
  std::uint64_t reached() override {
    while (reached_ < marked_) {
      const cudaError_t state = cudaEventQuery(events_[reached_ % kMarks]);
      if (state == cudaErrorNotReady) break;
      ok(state, "cudaEventQuery", device_);
      ++reached_;
    }
    return reached_;
  }
  void finish() override { ok(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", device_); }

 private:
  void reserve(std::size_t bytes) {
    if (result_bytes_ >= bytes) return;
    ok(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", device_);
    cudaFree(result_);
    cudaFreeHost(host_result_);
    result_ = host_result_ = nullptr;
    result_bytes_ = 0;
    ok(cudaMalloc(&result_, bytes), "cudaMalloc(results)", device_);
    ok(cudaMemsetAsync(result_, 0, bytes, stream_), "cudaMemsetAsync", device_);
    ok(cudaHostAlloc(&host_result_, bytes, cudaHostAllocPortable), "cudaHostAlloc(results)", device_);
    result_bytes_ = bytes;
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kMarks> events_{};
  std::uint64_t marked_ = 0;
  std::uint64_t reached_ = 0;
  void* result_ = nullptr;
  void* host_result_ = nullptr;
  std::size_t result_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Copier> make_copier(int device) { return std::make_unique<StreamCopier>(device); }

}  // namespace gdrperf::mem::cuda
