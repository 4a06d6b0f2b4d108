#pragma once

// What posting threads are started with. For nvcc, too, which may have C++17 alone.

#include <cstdint>

#include "mem/rings/bounce.h"
#include "mem/rings/loop.h"

namespace gdrperf::mem::rings {

/// All in memory that the threads reach.
struct Run {
  Queue* queues = nullptr;       ///< near to the threads, which copy `given` there
  const Queue* given = nullptr;
  std::uint64_t* copied = nullptr;  ///< near, too: they have
  const Orders* orders = nullptr;
  Report* reports = nullptr;
  Meeting* meeting = nullptr;
  std::uint32_t queue_count = 0;
  const Bounce* bounce = nullptr;  ///< null: bandwidth
};

/// Threads that write a list of messages together.
enum class Together { kOne, kWarp, kBlock };

/// A kernel's threads.
struct Shape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  ///< of a block
  Together together = Together::kOne;
};

GDRPERF_BOTH std::uint32_t groups_of(const Shape& shape) {
  if (shape.together == Together::kBlock) return shape.blocks;
  return shape.blocks * (shape.together == Together::kWarp ? shape.threads / 32 : shape.threads);
}

/// Queues of group `group` of `groups`: several of one's own, or one of a neighbourhood's.
GDRPERF_BOTH Duty duty_of(std::uint32_t group, std::uint32_t groups, std::uint32_t queues) {
  if (groups <= queues) return {group, groups, queues};
  return {static_cast<std::uint32_t>(std::uint64_t{group} * queues / groups), queues, queues};
}
/// Whether groups share a queue.
GDRPERF_BOTH bool shares(std::uint32_t groups, std::uint32_t queues) { return groups > queues; }

}  // namespace gdrperf::mem::rings
