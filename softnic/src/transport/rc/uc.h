#pragma once

#include "transport/rc/rc.h"

namespace gdrperf::softnic {

/// Unreliable connected: a request is done when it was sent. What the target
/// cannot take (no receive, a wrong key, a QP that is not ready) is dropped
/// there, and nobody is told; a receive that is too small or lies in no region of
/// its domain fails, and with it the QP that posted it.
class UcTransport final : public RcTransport {
 public:
  using RcTransport::RcTransport;

  bool acknowledged() const noexcept override { return false; }
  std::uint32_t opcodes() const noexcept override;
  Outcome execute(const SendOp& op) noexcept override;
  Outcome execute_part(const SendOp& op, const Part& part) noexcept override;

 protected:
  Outcome refuse(ibv_wc_status local_status, std::uint32_t event) noexcept override;
};

}  // namespace gdrperf::softnic
