#include "transport/rc/xrc.h"

#include <utility>

namespace gdrperf::softnic {

/// Processes of other users are asked for what a QP has, and these have nothing.
void XrcTransport::connect(std::shared_ptr<Peer> other, KernelPolicy kernel) {
  if (other != nullptr && other->stranger() != nullptr) other.reset();
  RcTransport::connect(std::move(other), kernel);
}

/// Looked up for each request: the owner of an SRQ waits for this turn before it is freed.
bool XrcTransport::aim(const SendOp& op) noexcept {
  const std::uint32_t number = srq_number(op);
  const XrcSrqShared& srq = target_.segment->xrc_srqs[number % kMaxXrcSrqs];
  if (number == 0 || srq.number.load(std::memory_order_acquire) != number) return false;
  const std::uint32_t domain = target_.qp->xrcd;
  const std::uint32_t queue = srq.recv_cq;
  const RecvRing ring = RecvRing::at(*target_.segment, srq.ring);
  if (domain == 0 || srq.xrcd != domain || queue >= kMaxCqs || ring.memory == nullptr) return false;
  target_.recv_ring = ring;
  target_.recv_cq = &target_.segment->cqs[queue];
  target_.pd = target_.recv_pd = srq.pd;
  return true;
}

/// Its SRQ's, if it has one; in no turn, because the peer's thread answers.
void XrcTransport::fetch_channel(const SendOp& op) noexcept {
  if (target_.peer == nullptr) return;
  const XrcSrqShared& srq = target_.segment->xrc_srqs[srq_number(op) % kMaxXrcSrqs];
  const CqShared& queue = target_.segment->cqs[srq.recv_cq % kMaxCqs];
  if (queue.has_channel.load() != 0) target_.peer->fetch_channel(queue.channel);
}

Outcome XrcTransport::execute(const SendOp& op) noexcept {
  fetch_channel(op);
  return RcTransport::execute(op);
}

Outcome XrcTransport::execute_part(const SendOp& op, const Part& part) noexcept {
  fetch_channel(op);
  return RcTransport::execute_part(op, part);
}

}  // namespace gdrperf::softnic
