#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "device/config.h"
#include "host/process.h"
#include "memory/pieces.h"
#include "paths/target.h"
#include "shared/completion.h"
#include "shared/request.h"

namespace gdrperf::softnic {

/// What of a message is left to be moved when it arrives, where the link model
/// or a fault has a say in it.
struct Part {
  std::uint64_t skip = 0;      ///< bytes in front that are there already
  std::uint64_t keep = ~0ull;  ///< what stands behind these bytes never arrives
  const RecvCell* peeked = nullptr;  ///< the receive that has the skipped bytes

  void apply(Pieces& pieces) const noexcept {
    if (keep < pieces.total) pieces.drop_back(pieces.total - keep);
    if (skip > 0) pieces.drop_front(skip < pieces.total ? skip : pieces.total);
  }
};

/// Bytes of a message that are moved ahead of its arrival.
struct AheadMove {
  std::uint64_t done;          ///< bytes in front that are there already
  std::uint64_t length;        ///< and so many more
  const RecvCell* peeked;      ///< SEND: the receive that has them; set by the first
  std::uint32_t sends_before;  ///< that will take receives before it
};

/// Reliable connected, from the initiator's side: executes requests straight
/// into the peer's memory and queues, on the thread that calls. Not
/// thread-safe: under the lock of the QP's send queue. It changes nothing of
/// its own QP; what the peer is told of a fault is told here.
class RcTransport {
 public:
  /// What of its QP it needs; all of it outlives it.
  struct Own {
    Process& process;
    QpShared& shared;
    const ibv_qp_attr& attributes;  ///< change under the lock
    std::uint32_t number;
    std::uint32_t pd;
  };
  explicit RcTransport(const Own& own) noexcept : own_(own) {}

  /// At RTR. `peer`: the process of the destination where that is not this one,
  /// or null when there is none; it outlives the connection.
  void connect(Peer* peer, KernelPolicy kernel);
  void disconnect() noexcept { target_ = Target{}; }
  /// Looks at the peer anew with the next request.
  void look_again() noexcept { target_.epoch = ~0ull; }
  /// There is a link model: receivers look for messages all the time.
  void expect_link() noexcept { link_ = true; }

  /// Executes a request that goes to the peer.
  Outcome execute(const SendOp& op) noexcept;
  /// The same of a part of its data.
  Outcome execute_part(const SendOp& op, const Part& part) noexcept;
  /// The plain write, of one registered SGE to memory that is mapped here. False:
  /// nothing was done, execute() finds out why.
  bool write_plain(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey) noexcept;
  /// Moves bytes of a message that has not arrived yet. False: that is not to be
  /// had, for a reason that its arrival will find.
  bool move_ahead(const SendOp& op, AheadMove& move) noexcept;
  /// Where the data of a misplaced message goes: to the slot behind, or before;
  /// the right place when the region has neither.
  std::uint64_t neighbour(const SendOp& op, std::uint64_t total) noexcept;

  std::uint32_t peer_qpn() const noexcept {
    return target_.qp != nullptr ? target_.qp->qpn.load(std::memory_order_relaxed) : 0;
  }
  std::uint8_t peer_rnr_timer() const noexcept { return target_.min_rnr_timer & 31; }
  /// Of another user's process that it is connected to, or 0.
  std::uint64_t stranger_id() const noexcept { return target_.stranger_id; }
  /// Null: none, or another user's.
  Segment* peer_segment() const noexcept { return target_.segment; }
  QpShared* peer_qp() const noexcept { return target_.qp; }

 private:
  bool reachable() const noexcept {
    return target_.segment != nullptr && !target_.dead->load(std::memory_order_relaxed);
  }
  template <bool kPart>
  Outcome begin(const SendOp& op, const Part& part) noexcept;
  template <bool kPart>
  Outcome run(const SendOp& op, const Part& part) noexcept;
  template <bool kPart>
  Outcome write(const SendOp& op, const Part& part) noexcept;
  template <bool kPart>
  Outcome read(const SendOp& op, const Part& part) noexcept;
  template <bool kPart>
  Outcome send(const SendOp& op, const Part& part) noexcept;
  Outcome send_with_invalidate(const SendOp& op, Pieces& pieces, RecvCell* receive) noexcept;
  Outcome refuse_send(ibv_wc_status received, ibv_wc_status copy_error) noexcept;
  Outcome atomic(const SendOp& op) noexcept;
  Outcome deliver(RecvCell* receive, const Completion& completion, bool solicited) noexcept;
  Outcome refuse(ibv_wc_status local_status, std::uint32_t event) noexcept;
  Outcome ask_stranger(const SendOp& op) noexcept;
  void notify_peer_cq() noexcept;
  bool move_inside(const SendOp& op, AheadMove& move) noexcept;
  /// Between the two the peer frees and changes nothing that the target names.
  bool enter() noexcept;
  bool try_enter() noexcept;
  bool enter_anew() noexcept;
  void leave() noexcept;
  bool refresh_target() noexcept;

  const Own own_;
  Target target_;
  bool link_ = false;
};

}  // namespace gdrperf::softnic
