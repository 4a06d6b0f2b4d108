#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// Kernels on the GPU; all queued on `stream` of the current device.
namespace gdrperf::mem::cuda {

/// Messages in GPU memory, as a PatternRun names them.
struct KernelRun {
  std::uint8_t* at = nullptr;  ///< of the first message; 16-byte aligned, as `stride` is
  std::uint64_t stride = 0;
  std::uint64_t count = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t start = 0;       ///< first word of the first message
  std::uint64_t slot_step = 0;   ///< from a message's first word to the next one's
  std::uint64_t word_step = 0;
};

/// Result of a check; on the device, zeroed but for `first`.
struct KernelVerdict {
  unsigned long long wrong_messages;
  /// message * 2^40 + offset of the first wrong 8-byte word; ~0: none.
  unsigned long long first;
};

/// False: this build has no kernels (no nvcc); nothing below may be called.
bool kernels_built();
/// Loads them all: what is loaded at its first launch waits for kernels that run.
cudaError_t load_kernels();
cudaError_t launch_fill(const KernelRun& run, cudaStream_t stream);
/// `flags`: run.count words, zeroed.
cudaError_t launch_check(const KernelRun& run, KernelVerdict* verdict, unsigned* flags, cudaStream_t stream);
/// result[i] = data[i] + scalar * result[i] over `count` floats.
cudaError_t launch_triad(float* result, const float* data, std::size_t count, float scalar, cudaStream_t stream);


/// Host memory that a relay's kernel and the CPU share.
struct RelayWords {
  std::uint32_t started;  ///< by the kernel: it waits for message 1
  std::uint32_t stop;     ///< by the CPU
  std::uint8_t bell;      ///< by the kernel: the last message that arrived
};
/// See RelayRun. Runs until words->stop.
cudaError_t launch_relay(const volatile std::uint8_t* incoming, volatile std::uint8_t* outgoing, std::uint8_t ahead,
                         volatile RelayWords* words, cudaStream_t stream);

}  // namespace gdrperf::mem::cuda
