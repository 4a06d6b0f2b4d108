#include "mem/cuda/relay.h"

#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "mem/cuda/device.h"
#include "mem/cuda/kernels.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::mem::cuda {
namespace {

/// A GPU that somebody else uses may take its time.
constexpr std::chrono::seconds kStart{10};

/// Words that no relay uses. They are kept: freeing pinned memory waits for the whole GPU, and another relay may run on
/// it.
class SpareWords {
 public:
  static SpareWords& get() {
    static SpareWords words;
    return words;
  }
  RelayWords* take(int device) {
    const MutexLock lock(mutex_);
    if (spare_.empty()) {
      void* fresh = nullptr;
      ok(cudaHostAlloc(&fresh, sizeof(RelayWords), cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc",
         device);
      return new (fresh) RelayWords{};
    }
    RelayWords* const words = spare_.back();
    spare_.pop_back();
    return new (words) RelayWords{};
  }
  void give_back(RelayWords* words) {
    const MutexLock lock(mutex_);
    spare_.push_back(words);
  }

 private:
  Mutex mutex_;
  std::vector<RelayWords*> spare_ GUARDED_BY(mutex_);
};

class KernelRelay final : public Relay {
 public:
  KernelRelay(int device, std::uint8_t* at, const RelayRun& run) : device_(device) {
    use_device(device);
    words_ = SpareWords::get().take(device);
    ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", device);
    ok(launch_relay(at + run.incoming_last, at + run.outgoing_last, run.ahead, words_, stream_), "relay kernel",
       device);
    Patience patience(kStart);
    while (__atomic_load_n(&words_->started, __ATOMIC_ACQUIRE) == 0) {
      if (patience.over()) give_up();
      std::this_thread::yield();
    }
  }
  ~KernelRelay() override {
    cudaSetDevice(device_);
    __atomic_store_n(&words_->stop, 1u, __ATOMIC_RELEASE);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    SpareWords::get().give_back(words_);
  }
  KernelRelay(const KernelRelay&) = delete;
  KernelRelay& operator=(const KernelRelay&) = delete;

  const std::uint8_t* bell() const override { return &words_->bell; }

 private:
  /// The kernel may start yet: what it looks at stays.
  [[noreturn]] void give_up() {
    __atomic_store_n(&words_->stop, 1u, __ATOMIC_RELEASE);
    throw Error(ExitCode::kEnvironment,
                "a kernel that waits for messages does not start on GPU " + std::to_string(device_),
                "is the GPU busy? nvidia-smi");
  }

  int device_;
  RelayWords* words_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Relay> make_relay(int device, void* at, const RelayRun& run) {
  if (!kernels_built()) {
    throw Error(ExitCode::kEnvironment, flag<&TestSpec::initiator>() + " gpu-proxy: this build has no kernels for GPUs",
                "build with nvcc (the CUDA toolkit)");
  }
  return std::make_unique<KernelRelay>(device, static_cast<std::uint8_t*>(at), run);
}

}  // namespace gdrperf::mem::cuda
