#pragma once

#include <cstdint>

namespace gdrperf::mem {

/// Messages that a kernel on the GPU waits for and answers. Message n (1, 2, ... modulo 256) is there when its last
/// byte is n.
struct RelayRun {
  std::uint64_t incoming_last = 0;  ///< offset of the last byte of what arrives
  std::uint64_t outgoing_last = 0;  ///< offset of the last byte of what leaves
  /// Message n of the other end is answered by number n + ahead: 1 at the end that begins, 0 at the other.
  std::uint8_t ahead = 0;
};

/// A kernel that runs until this is destroyed: it sees a message's last byte in GPU memory, writes its answer's there,
/// and rings a bell in host memory, on which a CPU thread posts the answer. It keeps one thread of one multiprocessor
/// busy, and nothing that waits for the whole GPU (cudaFree) returns meanwhile.
class Relay {
 public:
  virtual ~Relay() = default;
  /// Number of the last message that arrived; its answer may be posted. Read by the CPU.
  virtual const std::uint8_t* bell() const = 0;
};

}  // namespace gdrperf::mem
