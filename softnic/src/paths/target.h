#pragma once

#include <atomic>
#include <cstdint>

#include "host/peers/peer.h"
#include "shared/segment/layout.h"
#include "shared/segment/regions.h"
#include "shared/sync/ring.h"

namespace gdrperf::softnic {

inline constexpr std::atomic<bool> kUnconnected{true};

/// The peer of a connected QP, as the executor needs it. What stands below
/// `epoch` was read from the peer's QpShared when it had that epoch.
struct Target {
  Segment* segment = nullptr;  ///< null: not connected
  Regions regions;
  QpShared* qp = nullptr;
  const std::atomic<bool>* dead = &kUnconnected;  ///< its process; so is one of which nothing is mapped here
  Peer* peer = nullptr;  ///< null: this process itself
  StrangerLink* stranger = nullptr;  ///< another user's process; without a segment then
  std::uint64_t stranger_id = 0;  ///< and that process
  std::uint8_t* window = nullptr;
  int pid = 0;
  bool light_barrier = false;
  bool ask_kernel = true;  ///< it may copy between the processes
  std::uint64_t turn = 0;

  std::uint64_t epoch = ~0ull;  ///< none that a QP ever has, but what its process may have written there
  RecvRing recv_ring = RecvRing::nothing();
  CqShared* recv_cq = nullptr;
  std::uint64_t recv_tag = 0;
  std::uint32_t pd = 0;
  std::uint32_t recv_pd = 0;
  std::uint32_t access = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t max_rd_atomic = 0;
  bool uses_srq = false;
};

/// Address in this process of [address, address + length) of the target; null
/// when only the kernel can get there safely, or only a GPU's driver.
[[gnu::always_inline]] inline std::uint8_t* reach(const Target& target, const MrShared& region, std::uint64_t address,
                    std::uint64_t length) noexcept {
  if (needs_care(region)) [[unlikely]] {
    if (in_gpu(region) || target.peer == nullptr) return nullptr;
  }
  if (target.peer == nullptr) return reinterpret_cast<std::uint8_t*>(address);
  if (target.window == nullptr || address < region.moved_begin ||
      address + length > region.moved_end) {
    return nullptr;
  }
  return target.window + (address & (kWindowBytes - 1));
}

}  // namespace gdrperf::softnic
