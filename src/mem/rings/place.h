#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gdrperf/mem/rings.h"
#include "mem/rings/run.h"

namespace gdrperf::mem::rings {

/// Threads of a poster.
inline Shape shape_of(const Poster& poster) {
  return {static_cast<std::uint32_t>(poster.blocks), static_cast<std::uint32_t>(poster.threads),
          static_cast<Together>(poster.scope)};
}

/// Where posting threads run: memory for them, and the threads.
class Place {
 public:
  virtual ~Place() = default;
  /// Zeroed memory that is quick for the threads; this address is theirs.
  virtual void* near(std::size_t bytes) = 0;
  /// Zeroed memory of the CPU at an address that the threads know, too.
  virtual void* shared(std::size_t bytes) = 0;
  /// The threads' address of memory of the device's library.
  virtual void* map(void* at, std::size_t bytes) = 0;
  /// Of a register; null: the threads cannot reach it. `kind`: what it is then, as in Rings::doorbells().
  virtual std::uint64_t* map_doorbell(std::uint64_t* at, std::string& kind) = 0;
  /// Starts the threads.
  virtual void launch(const Run& run) = 0;
  /// Waits for their end, which they have been told.
  virtual void join() = 0;
  /// now_ticks() a nanosecond has; 0: what reports say.
  virtual double ticks_per_ns() const { return 0; }
};

std::unique_ptr<Place> make_cpu_place(const Poster& poster);
/// Throws Error(kEnvironment), naming `flag`, where the GPU cannot.
std::unique_ptr<Place> make_gpu_place(const Poster& poster, const std::string& flag);

}  // namespace gdrperf::mem::rings
