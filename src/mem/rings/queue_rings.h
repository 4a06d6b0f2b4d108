#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace gdrperf::mem::rings {

/// Completions as an mlx5 device writes them.
struct CompletionRing {
  std::uint8_t* entries = nullptr;
  std::uint32_t count = 0;        ///< a power of two
  std::uint32_t entry_bytes = 64;
  std::uint32_t* record = nullptr;  ///< doorbell record
};

/// Requests as an mlx5 device reads them, and what tells it of them.
struct QueueRings {
  std::uint32_t qpn = 0;
  std::uint8_t* send = nullptr;
  std::uint32_t send_blocks = 0;    ///< of 64 bytes; a power of two
  std::uint8_t* receive = nullptr;
  std::uint32_t receives = 0;       ///< a power of two
  std::uint32_t receive_bytes = 0;  ///< of one
  std::uint32_t* records = nullptr;  ///< doorbell records: of receives, of requests
  std::uint64_t* doorbell = nullptr;  ///< register in the UAR
  CompletionRing sent;
  CompletionRing received;
};

/// The rings of a QP and its CQs (mlx5dv_init_obj). From then on nothing may be posted to them or polled by verbs.
/// Throws Error(kEnvironment), naming `flag`, where they cannot be had.
QueueRings rings_of(ibv_qp* qp, ibv_cq* send_cq, ibv_cq* recv_cq, const std::string& flag);

}  // namespace gdrperf::mem::rings
