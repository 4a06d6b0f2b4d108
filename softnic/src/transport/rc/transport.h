#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "host/peers/peer.h"
#include "host/process/process.h"
#include "memory/pieces.h"
#include "model/link.h"
#include "shared/segment/layout.h"
#include "shared/segment/request.h"
#include "shared/sync/ring.h"

namespace gdrperf::softnic {

/// Part of a message that is left to be moved when it arrives, where the link model
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

/// Parts of its QP that a transport needs; all of them outlive the transport.
struct Initiator {
  Process& process;
  QpShared& shared;
  const ibv_qp_attr& attributes;  ///< change under the send queue's lock
  std::uint32_t number;
  std::uint32_t pd;
};

/// Executes requests straight into the memory and queues of those they are for,
/// on the thread that calls. Not thread-safe: under the lock of the QP's send
/// queue. It changes nothing of its own QP; what a target is told of a fault is
/// told here.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Sends and reads go to the other end and are answered; where not, a request
  /// is done when it was sent, and nobody learns what was lost.
  virtual bool acknowledged() const noexcept = 0;
  /// The opcodes that it has, a bit each.
  virtual std::uint32_t opcodes() const noexcept = 0;

  /// Executes a request that goes to another QP.
  virtual Outcome execute(const SendOp& op) noexcept = 0;
  /// The same of a part of its data.
  virtual Outcome execute_part(const SendOp& op, const Part& part) noexcept = 0;
  /// Moves bytes of a message that has not arrived yet. False: that is not to be
  /// had, for a reason that its arrival will find.
  virtual bool move_ahead(const SendOp& op, AheadMove& move) noexcept = 0;
  /// Destination of a misplaced message's data: the slot behind, or before;
  /// the right place when the region has neither.
  virtual std::uint64_t neighbour(const SendOp& op, std::uint64_t total) noexcept = 0;
  /// Link model: the receiver's process learns when the message was due.
  virtual void show_arrival(const SendOp& op, Instant due) noexcept = 0;

  /// In INIT: the port that its QP is on, of two.
  virtual void use_port(const Device&) noexcept {}
  /// At RTR. `peer`: the process of the destination where there is one
  /// destination and it is not in this process, or null when there is none.
  virtual void connect(std::shared_ptr<Peer> peer, KernelPolicy kernel) = 0;
  virtual void disconnect() noexcept = 0;
  /// Looks at the other ends anew with the next request.
  virtual void look_again() noexcept = 0;
  /// Peers whose processes have ended are not held any longer.
  virtual void forget_gone_peers() noexcept {}
  /// There is a link model: receivers look for messages all the time.
  virtual void expect_link() noexcept {}

  /// Of the one QP that it is connected to; 0, null or false where there is none.
  virtual std::uint32_t peer_qpn() const noexcept { return 0; }
  virtual std::uint8_t peer_rnr_timer() const noexcept { return 0; }
  virtual std::uint64_t stranger_id() const noexcept { return 0; }
  virtual Segment* peer_segment() const noexcept { return nullptr; }
  virtual const QpShared* peer_qp() const noexcept { return nullptr; }
  virtual std::shared_ptr<Peer> peer() const { return nullptr; }
};

constexpr std::uint32_t opcode_bit(unsigned opcode) { return 1u << opcode; }

}  // namespace gdrperf::softnic
