#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "gdrperf/verbs/resources.h"

// QPs of a kind that only a maker's own library makes, and that take requests by ibv_wr_*(3) alone: DC of mlx5
// (mlx5dv_create_qp) and SRD of EFA (efadv_create_qp_ex). The libraries are looked for when the program runs.
namespace gdrperf::verbs {

enum class DriverKind { kDc, kSrd };

/// Throws Error(kEnvironment) that names what is missing: such a device, the library, or a function of it.
void require_driver_qps(ibv_context* context, DriverKind kind);

/// Whether the kernel has a device of this maker. No library is loaded.
bool device_at_hand(DriverKind kind);

/// Bit of IBV_QP_EX_WITH_* for requests of this kind.
std::uint64_t send_ops_of(ibv_wr_opcode opcode);

/// A DC initiator, or an SRD QP, for requests of `send_ops`. Throws Error.
Qp make_driver_qp(ibv_pd* pd, ibv_qp_init_attr& attr, DriverKind kind, std::uint64_t send_ops, Inlining inlining);
/// RESET -> INIT and INIT -> RTR -> RTS of it. Throw Error.
void driver_qp_to_init(ibv_qp* qp, DriverKind kind, int port, int pkey_index);
void driver_qp_to_rts(ibv_qp* qp, DriverKind kind, const QpPath& path);

/// A DC target, whose messages take receives of `srq`. It has its number, which the peer needs, after answer_dc().
Qp make_dc_target(ibv_pd* pd, ibv_cq* cq, ibv_srq* srq);
/// RESET -> INIT -> RTR; `own_path`: its own port and GID.
void answer_dc(ibv_qp* target, const QpPath& own_path, int access, int pkey_index);

/// Bytes of the largest RDMA request of an SRD QP; 0: the device has none for `opcode`, or does not tell.
std::uint64_t most_srd_bytes(ibv_context* context, ibv_wr_opcode opcode);

/// Where the requests go that ibv_post_send() is given for one of these QPs: from then on it makes them by ibv_wr_*. No
/// other QP of the context may send. Outlives the QP's last request.
class DriverRoute {
 public:
  /// Throws Error. `number` of the DC target or of the SRD QP.
  DriverRoute(ibv_qp* qp, DriverKind kind, ibv_ah* handle, std::uint32_t number);
  ~DriverRoute();
  DriverRoute(const DriverRoute&) = delete;
  DriverRoute& operator=(const DriverRoute&) = delete;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gdrperf::verbs
