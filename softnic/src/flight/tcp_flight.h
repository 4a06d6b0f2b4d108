#pragma once

#include <cstdint>

#include "flight/patience.h"
#include "flight/send_queue.h"
#include "transport/tcp/tcp_stream.h"

namespace gdrperf::softnic {

/// Requests of a QP whose peer is on another host: they lie in the send queue's
/// slots until they are answered. All of it under the send queue's lock.
class TcpFlight final : public TcpRequests {
 public:
  TcpFlight(Requester& qp, SendQueue& queue, Patience& patience, const ibv_qp_attr& attributes, TcpStream& stream,
            bool acknowledged)
      : qp_(qp),
        queue_(queue),
        patience_(patience),
        attributes_(attributes),
        stream_(stream),
        acknowledged_(acknowledged) {}

  /// Takes the request that was counted last.
  void submit(const SendOp& op) noexcept {
    queue_.lock.is_held();
    queue_.keep(op);
  }
  /// Completes what was answered, gives up what has waited too long, and sends.
  void move() noexcept;

  // --- TcpRequests
  const SendOp* next(std::uint32_t ahead) noexcept override;
  void sent() noexcept override { ++sent_; }
  void spoiled(ibv_wc_status status) noexcept override;

 private:
  void complete_answered() noexcept REQUIRES(queue_.lock);
  void complete_oldest(ibv_wc_status status) noexcept REQUIRES(queue_.lock);
  void be_patient() noexcept REQUIRES(queue_.lock);
  bool is_silent() noexcept;

  Requester& qp_;
  SendQueue& queue_;
  Patience& patience_;
  const ibv_qp_attr& attributes_;
  TcpStream& stream_;
  const bool acknowledged_;
  std::uint32_t sent_ = 0;    ///< requests, or passed over as this end's own business
  std::uint32_t spoiled_ = 0; ///< number of one that cannot be sent; 0: none
  ibv_wc_status spoiled_status_ = IBV_WC_SUCCESS;
  std::uint64_t seen_moved_ = 0;
  std::uint64_t silent_since_ns_ = 0;
};

}  // namespace gdrperf::softnic
