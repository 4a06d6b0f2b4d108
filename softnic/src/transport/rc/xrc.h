#pragma once

#include <memory>

#include "transport/rc/rc.h"

namespace gdrperf::softnic {

/// Extended reliable connected, from the initiator's side: each request names the
/// SRQ that it is for, in whose domain its receives and keys are.
class XrcTransport final : public RcTransport {
 public:
  explicit XrcTransport(const Initiator& own) noexcept : RcTransport(own) { aims_ = true; }

  Outcome execute(const SendOp& op) noexcept override;
  Outcome execute_part(const SendOp& op, const Part& part) noexcept override;
  void connect(std::shared_ptr<Peer> peer, KernelPolicy kernel) override;
  bool move_ahead(const SendOp&, AheadMove&) noexcept override { return false; }
  std::uint64_t neighbour(const SendOp& op, std::uint64_t) noexcept override { return op.remote_addr; }

 private:
  void fetch_channel(const SendOp& op) noexcept;
  bool aim(const SendOp& op) noexcept override;
  ibv_qp_type peer_type() const noexcept override { return IBV_QPT_XRC_RECV; }
};

}  // namespace gdrperf::softnic
