// Fill, compare and consume at the memory's speed: each thread moves 16 bytes
// at a time, several of them under way at once.
#include "mem/cuda/kernels.h"

namespace gdrperf::mem::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kUnroll = 4;
/// Blocks that keep every multiprocessor busy, however small the messages are.
constexpr unsigned kMaxBlocks = 132 * 16;
constexpr unsigned kMaxRows = 65535;

__device__ ulonglong2 expected(std::uint64_t start, std::uint64_t word_step, std::uint64_t vector) {
  const std::uint64_t first = start + 2 * vector * word_step;
  return make_ulonglong2(first, first + word_step);
}

/// One row of blocks per message; rows go on where there are more messages.
__global__ void __launch_bounds__(kThreads) fill_kernel(KernelRun run) {
  const std::uint64_t vectors = run.size_bytes / 16;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * kThreads;
  for (std::uint64_t message = blockIdx.y; message < run.count; message += gridDim.y) {
    std::uint8_t* to = run.at + message * run.stride;
    const std::uint64_t start = run.start + message * run.slot_step;
    ulonglong2* out = reinterpret_cast<ulonglong2*>(to);
    for (std::uint64_t v = blockIdx.x * static_cast<std::uint64_t>(kThreads) + threadIdx.x; v < vectors; v += step) {
      out[v] = expected(start, run.word_step, v);
    }
    if (blockIdx.x == 0 && threadIdx.x < run.size_bytes % 16) {
      const std::uint64_t byte = vectors * 16 + threadIdx.x;
      const std::uint64_t word = start + byte / 8 * run.word_step;
      to[byte] = static_cast<std::uint8_t>(word >> (8 * (byte % 8)));
    }
  }
}

__device__ void blame(const KernelRun& run, KernelVerdict* verdict, unsigned* flags, std::uint64_t message,
                      std::uint64_t offset) {
  if (atomicExch(&flags[message], 1u) == 0) atomicAdd(&verdict->wrong_messages, 1ull);
  atomicMin(&verdict->first, message << 40 | offset);
}

__device__ void compare(const KernelRun& run, KernelVerdict* verdict, unsigned* flags, std::uint64_t message,
                        std::uint64_t vector, ulonglong2 found, ulonglong2 wanted) {
  if (found.x != wanted.x) {
    blame(run, verdict, flags, message, vector * 16);
  } else if (found.y != wanted.y) {
    blame(run, verdict, flags, message, vector * 16 + 8);
  }
}

__global__ void __launch_bounds__(kThreads)
    check_kernel(KernelRun run, KernelVerdict* verdict, unsigned* flags) {
  const std::uint64_t vectors = run.size_bytes / 16;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * kThreads;
  for (std::uint64_t message = blockIdx.y; message < run.count; message += gridDim.y) {
    const std::uint8_t* from = run.at + message * run.stride;
    const std::uint64_t start = run.start + message * run.slot_step;
    const ulonglong2* in = reinterpret_cast<const ulonglong2*>(from);
    std::uint64_t v = blockIdx.x * static_cast<std::uint64_t>(kThreads) + threadIdx.x;
    for (; v + (kUnroll - 1) * step < vectors; v += kUnroll * step) {
      ulonglong2 found[kUnroll];
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) found[u] = __ldcs(&in[v + u * step]);
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) {
        compare(run, verdict, flags, message, v + u * step, found[u],
                expected(start, run.word_step, v + u * step));
      }
    }
    for (; v < vectors; v += step) {
      compare(run, verdict, flags, message, v, __ldcs(&in[v]), expected(start, run.word_step, v));
    }
    if (blockIdx.x == 0 && threadIdx.x < run.size_bytes % 16) {
      const std::uint64_t byte = vectors * 16 + threadIdx.x;
      const std::uint64_t word = start + byte / 8 * run.word_step;
      if (from[byte] != static_cast<std::uint8_t>(word >> (8 * (byte % 8)))) {
        blame(run, verdict, flags, message, byte / 8 * 8);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    triad_kernel(float* result, const float* data, std::size_t count, float scalar) {
  const std::size_t vectors = count / 4;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kThreads;
  const std::size_t first = blockIdx.x * static_cast<std::size_t>(kThreads) + threadIdx.x;
  const float4* in = reinterpret_cast<const float4*>(data);
  float4* out = reinterpret_cast<float4*>(result);
  for (std::size_t v = first; v < vectors; v += step) {
    const float4 a = in[v];
    float4 c = out[v];
    c.x = a.x + scalar * c.x;
    c.y = a.y + scalar * c.y;
    c.z = a.z + scalar * c.z;
    c.w = a.w + scalar * c.w;
    out[v] = c;
  }
  for (std::size_t i = vectors * 4 + first; i < count; i += step) result[i] = data[i] + scalar * result[i];
}

/// One thread: what it waits for is one byte. Volatile loads go past the caches that a NIC's writes do not
/// reach; a look at `stop` crosses the bus, so it is a rare one.
__global__ void relay_kernel(const volatile std::uint8_t* incoming, volatile std::uint8_t* outgoing, std::uint8_t ahead,
                             volatile RelayWords* words) {
  constexpr unsigned kLooks = 4096;
  if (ahead != 0) *outgoing = ahead;
  __threadfence_system();
  words->started = 1;
  for (std::uint8_t number = 1;; ++number) {
    for (unsigned looks = 1; *incoming != number; ++looks) {
      if (looks % kLooks == 0 && words->stop != 0) return;
    }
    *outgoing = static_cast<std::uint8_t>(number + ahead);
    __threadfence_system();
    words->bell = number;
  }
}

dim3 grid_for(const KernelRun& run) {
  const std::uint64_t per_block = static_cast<std::uint64_t>(kThreads) * kUnroll * 16;
  const std::uint64_t rows = run.count < kMaxRows ? run.count : kMaxRows;
  std::uint64_t blocks = (run.size_bytes + per_block - 1) / per_block;
  const std::uint64_t most = rows < kMaxBlocks ? kMaxBlocks / rows : 1;
  if (blocks > most) blocks = most;
  return dim3(static_cast<unsigned>(blocks == 0 ? 1 : blocks), static_cast<unsigned>(rows));
}

}  // namespace

bool kernels_built() { return true; }

cudaError_t load_kernels() {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, fill_kernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, check_kernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, relay_kernel);
  return error;
}

cudaError_t launch_fill(const KernelRun& run, cudaStream_t stream) {
  fill_kernel<<<grid_for(run), kThreads, 0, stream>>>(run);
  return cudaGetLastError();
}

cudaError_t launch_check(const KernelRun& run, KernelVerdict* verdict, unsigned* flags, cudaStream_t stream) {
  check_kernel<<<grid_for(run), kThreads, 0, stream>>>(run, verdict, flags);
  return cudaGetLastError();
}

cudaError_t launch_triad(float* result, const float* data, std::size_t count, float scalar, cudaStream_t stream) {
  const std::size_t blocks = (count / 4 + kThreads - 1) / kThreads;
  triad_kernel<<<static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks), kThreads, 0,
                 stream>>>(result, data, count, scalar);
  return cudaGetLastError();
}

cudaError_t launch_relay(const volatile std::uint8_t* incoming, volatile std::uint8_t* outgoing, std::uint8_t ahead,
                         volatile RelayWords* words, cudaStream_t stream) {
  relay_kernel<<<1, 1, 0, stream>>>(incoming, outgoing, ahead, words);
  return cudaGetLastError();
}

}  // namespace gdrperf::mem::cuda
