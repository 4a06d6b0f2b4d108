#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "shared/segment/request.h"

namespace gdrperf::softnic {

/// Time that the oldest request of a send queue waits for its peer, and how often
/// it is tried: what the QP's attributes say.
class Patience {
 public:
  explicit Patience(const ibv_qp_attr& attributes) noexcept : attributes_(attributes) {}

  /// It begins to wait for this reason; `rnr_timer` is the peer's.
  void start(Outcome::Kind reason, std::uint8_t rnr_timer) noexcept;
  /// True when it has waited long enough.
  bool ends(Outcome::Kind reason, std::uint8_t rnr_timer) noexcept;
  /// The request waits no more.
  void forget() noexcept { reason_ = Outcome::Kind::kDone; }
  /// No try but the first for want of a receive.
  bool none_for(Outcome::Kind reason) const noexcept {
    return reason == Outcome::Kind::kNoReceive && attributes_.rnr_retry == 0;
  }

  static constexpr ibv_wc_status status_of(Outcome::Kind reason) noexcept {
    return reason == Outcome::Kind::kNoReceive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
  }

 private:
  const ibv_qp_attr& attributes_;
  Outcome::Kind reason_ = Outcome::Kind::kDone;
  std::uint64_t until_ns_ = 0;
  unsigned rnr_left_ = 0;
};

}  // namespace gdrperf::softnic
