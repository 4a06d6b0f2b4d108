#pragma once

#include <cstddef>
#include <cstdint>

namespace gdrperf::mem {

/// Work of one GPU in order: copies to and from pinned host memory, and the
/// kernel of --consume. Nothing waits but finish(). Throws Error with the call
/// and the device. One thread.
class Copier {
 public:
  virtual ~Copier() = default;

  virtual void to_host(std::byte* host, const std::byte* gpu, std::size_t bytes) = 0;
  virtual void to_gpu(std::byte* gpu, const std::byte* host, std::size_t bytes) = 0;
  /// A pass over `bytes` of data as a stream triad makes it (result = data +
  /// scalar * result, as floats), its result copied to the host.
  virtual void consume(const std::byte* data, std::size_t bytes) = 0;

  /// Ends what was queued since the last mark as one piece of work.
  virtual void mark() = 0;
  /// How many of all marks so far have been reached: without waiting.
  virtual std::uint64_t reached() = 0;
  virtual void finish() = 0;
};

}  // namespace gdrperf::mem
