#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/figures/measure.h"

namespace gdrperf::engine {

/// Messages or round trips between two looks at the peer: some 2 ms' worth.
class Chunk {
 public:
  explicit Chunk(std::uint64_t first) : messages_(first), last_ns_(now_ns()) {}
  std::uint64_t messages() const { return messages_; }
  /// After one; the time now.
  double done() {
    constexpr double kNs = 2e6;
    constexpr std::uint64_t kMost = 1u << 20;
    const double now = now_ns();
    if (now - last_ns_ < kNs / 2) messages_ = std::min(messages_ * 2, kMost);
    if (now - last_ns_ > kNs * 2) messages_ = std::max<std::uint64_t>(1, messages_ / 2);
    last_ns_ = now;
    return now;
  }

 private:
  std::uint64_t messages_;
  double last_ns_;
};

}  // namespace gdrperf::engine
