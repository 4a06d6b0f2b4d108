// Kernels that post: the loops of loop.h and bounce.h with a GPU's threads.
#include "mem/rings/kernels.h"

namespace gdrperf::mem::rings {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// A warp, whose lanes write a request each.
struct WarpGroup {
  __device__ unsigned rank() const { return threadIdx.x % kWarp; }
  __device__ unsigned size() const { return kWarp; }
  __device__ void sync() const { __syncwarp(); }
  __device__ Share from_first(Share share) const {
    share.first = __shfl_sync(kAllLanes, static_cast<unsigned long long>(share.first), 0);
    share.base = __shfl_sync(kAllLanes, static_cast<unsigned long long>(share.base), 0);
    share.end = __shfl_sync(kAllLanes, static_cast<unsigned long long>(share.end), 0);
    share.messages = __shfl_sync(kAllLanes, share.messages, 0);
    share.over = __shfl_sync(kAllLanes, share.over, 0);
    return share;
  }
};

/// A block, whose threads write a request each.
struct BlockGroup {
  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ unsigned size() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ Share from_first(Share share) const {
    __shared__ unsigned long long words[3];
    __shared__ unsigned counts[2];
    if (threadIdx.x == 0) {
      words[0] = share.first;
      words[1] = share.base;
      words[2] = share.end;
      counts[0] = share.messages;
      counts[1] = share.over;
    }
    __syncthreads();
    share.first = words[0];
    share.base = words[1];
    share.end = words[2];
    share.messages = counts[0];
    share.over = counts[1];
    __syncthreads();
    return share;
  }
};

template <class Group>
__device__ unsigned group_number() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
template <>
__device__ unsigned group_number<WarpGroup>() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
}
template <>
__device__ unsigned group_number<BlockGroup>() {
  return blockIdx.x;
}

/// Threads of a block that begin together, so that none of a warp runs ahead of its first one.
template <bool kShared, class Group>
__global__ void stream_kernel(Run run, unsigned groups) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if (first) {
    for (unsigned q = 0; q < run.queue_count; ++q) run.queues[q] = run.given[q];
    fence_near();
    store(run.copied, std::uint64_t{1});
    store(&run.meeting->started, std::uint64_t{1});
    meet(run.meeting, 0);
  }
  while (load(run.copied) == 0) {
  }
  fence_near();
  __syncthreads();
  const unsigned group = group_number<Group>();
  stream<kShared>(Group(), run.queues, run.orders, run.reports, duty_of(group, groups, run.queue_count));
  if (first) meet(run.meeting, kMeetings);
}

__global__ void bounce_kernel(Run run) {
  // In registers.
  Queue queue = run.given[0];
  const Bounce bounce = *run.bounce;
  store(&run.meeting->started, std::uint64_t{1});
  Bouncer bouncer(queue, bounce, run.orders, run.reports);
  bouncer.begin();
  if (!meet(run.meeting, 0)) return;
  bouncer.run();
  meet(run.meeting, kMeetings);
}

using StreamKernel = void (*)(Run, unsigned);

template <bool kShared>
StreamKernel kernel_of(Together together) {
  switch (together) {
    case Together::kWarp: return stream_kernel<kShared, WarpGroup>;
    case Together::kBlock: return stream_kernel<kShared, BlockGroup>;
    case Together::kOne: break;
  }
  return stream_kernel<kShared, OneThread>;
}
StreamKernel kernel_of(Together together, bool shared) {
  return shared ? kernel_of<true>(together) : kernel_of<false>(together);
}

}  // namespace

cudaError_t resident_blocks(const Shape& shape, bool shared, bool bounce, int& blocks) {
  int device = 0;
  int processors = 0;
  int each = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) {
    error = bounce ? cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, bounce_kernel, 1, 0)
                   : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel_of(shape.together, shared),
                                                                   static_cast<int>(shape.threads), 0);
  }
  blocks = each * processors;
  return error;
}

cudaError_t launch_posting(const Shape& shape, const Run& run, cudaStream_t stream) {
  if (run.bounce != nullptr) {
    bounce_kernel<<<1, 1, 0, stream>>>(run);
    return cudaGetLastError();
  }
  const unsigned groups = groups_of(shape);
  const StreamKernel kernel = kernel_of(shape.together, shares(groups, run.queue_count));
  kernel<<<shape.blocks, shape.threads, 0, stream>>>(run, groups);
  return cudaGetLastError();
}

}  // namespace gdrperf::mem::rings
