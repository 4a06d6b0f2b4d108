#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/device.h"
#include "mlx5/format.h"
#include "shared/segment/request.h"

namespace gdrperf::softnic::mlx5 {

/// A send WQE as a request of the device.
struct SendWqe {
  enum class Kind : std::uint8_t {
    kRequest,  ///< `op`, of which wr_id is completion_word()
    kNothing,  ///< NOP and DUMP: only its completion
    kOwn,      ///< the driver's own, which has no WQE of its own format: found by its place
    kBad,      ///< `status` says why
  };
  Kind kind;
  ibv_wc_status status;
  std::uint32_t blocks;  ///< in the ring; 0: not to be told
  SendOp op;
  ibv_sge sges[kMaxSge];
  alignas(16) std::uint8_t bytes[kMaxWqeBytes];  ///< what was in the ring; inline data stays there
};

/// SendOp::wr_id, and so ibv_wc::wr_id inside the device, of what was posted by a ring:
/// the place of its WQE and its opcode.
constexpr std::uint64_t completion_word(std::uint16_t index, std::uint8_t opcode) {
  return std::uint64_t{opcode} << 16 | index;
}

/// Reads the WQE at `index` of a ring with `blocks` blocks, of which `posted` are the program's to
/// write. Each byte is read once, and none beyond the ring: nothing in it is believed.
void read_send_wqe(const std::uint8_t* ring, std::uint32_t blocks, std::uint16_t index, std::uint32_t posted,
                   std::uint32_t qpn, SendWqe& wqe) noexcept;

/// Blocks of the WQE of a request.
std::uint32_t blocks_of(const SendOp& op) noexcept;
/// Writes that WQE. `always`: completes also where the request is not signalled.
void write_send_wqe(std::uint8_t* ring, std::uint32_t blocks, std::uint16_t index, std::uint32_t qpn, const SendOp& op,
                    bool always) noexcept;

}  // namespace gdrperf::softnic::mlx5
