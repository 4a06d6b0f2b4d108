#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "mlx5/rings.h"
#include "shared/segment/layout.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic::mlx5 {

/// The rings of this process' QPs, by their index: whose completions carry places of WQEs in wr_id, and what
/// the program gave for it.
class RingTable {
 public:
  static RingTable& get() noexcept;

  /// `receives`: its own rings or the SRQ's.
  struct Entry {
    WorkQueues* sends = nullptr;
    WorkQueues* receives = nullptr;
    bool of_srq = false;
  };
  void put(std::uint32_t index, const Entry& entry) noexcept;
  void remove(std::uint32_t index) noexcept { put(index, {}); }
  bool has_sends(std::uint32_t qpn) const noexcept { return sends_[qpn_index(qpn)].load(std::memory_order_relaxed); }

  /// The program's wr_id of a completion that ibv_poll_cq found. A receive of an SRQ is free then.
  std::uint64_t program_id(std::uint32_t qpn, bool receive, std::uint64_t wr_id) noexcept;

 private:
  Spin lock_;
  std::array<Entry, kMaxQps> entries_ GUARDED_BY(lock_){};
  std::array<std::atomic<bool>, kMaxQps> sends_{};
};

}  // namespace gdrperf::softnic::mlx5
