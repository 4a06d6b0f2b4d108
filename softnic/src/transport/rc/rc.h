#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "memory/copy.h"
#include "paths/target.h"
#include "shared/segment/completion.h"
#include "transport/tcp/tcp_stream.h"
#include "transport/rc/transport.h"

namespace gdrperf::softnic {

/// Reliable connected, from the initiator's side.
class RcTransport : public Transport {
 public:
  explicit RcTransport(const Initiator& own) noexcept : own_(own) {}

  bool acknowledged() const noexcept override { return true; }
  std::uint32_t opcodes() const noexcept override { return kOpcodes; }
  Outcome execute(const SendOp& op) noexcept override;
  Outcome execute_part(const SendOp& op, const Part& part) noexcept override;
  bool move_ahead(const SendOp& op, AheadMove& move) noexcept override;
  std::uint64_t neighbour(const SendOp& op, std::uint64_t total) noexcept override;
  void show_arrival(const SendOp& op, Instant due) noexcept override;
  void connect(std::shared_ptr<Peer> peer, KernelPolicy kernel) override;
  /// To a QP on another host.
  void connect_over(std::shared_ptr<TcpStream> stream);
  void disconnect() noexcept override;
  void look_again() noexcept override { target_.epoch = ~0ull; }
  void expect_link() noexcept override { link_ = true; }

  std::uint32_t peer_qpn() const noexcept override {
    if (target_.qp != nullptr) [[likely]] return target_.qp->qpn.load(std::memory_order_relaxed);
    return stream_ != nullptr ? stream_->expected().from_qpn : 0;
  }
  std::uint8_t peer_rnr_timer() const noexcept override {
    return stream_ != nullptr ? stream_->rnr_timer() : target_.min_rnr_timer & 31;
  }
  std::uint64_t stranger_id() const noexcept override { return target_.stranger_id; }
  Segment* peer_segment() const noexcept override { return target_.segment; }
  const QpShared* peer_qp() const noexcept override { return target_.qp; }
  std::shared_ptr<Peer> peer() const override { return peer_; }

  /// The plain write, of one registered SGE to memory that is mapped here. False:
  /// nothing was done, execute() finds out why.
  bool write_plain(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey) noexcept;

 protected:
  /// In a turn, before a request is executed, where each names what it is for.
  /// False: it names nothing there.
  virtual bool aim(const SendOp&) noexcept { return true; }
  /// The type that the peer's QP has to have.
  virtual ibv_qp_type peer_type() const noexcept {
    return static_cast<ibv_qp_type>(own_.shared.type.load(std::memory_order_relaxed));
  }
  /// The target finds a fault: it goes into the error state and its process is
  /// told, so that it flushes and reports; this end's request fails.
  virtual Outcome refuse(ibv_wc_status local_status, std::uint32_t event) noexcept;
  /// The same where the target's receive has failed.
  Outcome fail_receiver(ibv_wc_status local_status, std::uint32_t event) noexcept;

  const Initiator own_;
  Target target_;
  bool aims_ = false;  ///< aim() has a say

 private:
  bool reachable() const noexcept { return !target_.dead->load(std::memory_order_relaxed); }
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
  Outcome deliver(RecvCell* receive, Completion& completion, bool solicited) noexcept;
  Outcome execute_elsewhere(const SendOp& op, const Part& part) noexcept;
  Outcome ask_stranger(const SendOp& op) noexcept;
  bool move_inside(const SendOp& op, AheadMove& move) noexcept;
  /// Between the two the peer frees and changes nothing that the target names.
  bool enter() noexcept;
  bool try_enter(QpShared& peer) noexcept;
  bool enter_anew() noexcept;
  void leave() noexcept;
  bool refresh_target() noexcept;

  static constexpr std::uint32_t kOpcodes = (2u << IBV_WR_SEND_WITH_INV) - 1;

  std::shared_ptr<Peer> peer_;  ///< what the target points into
  std::shared_ptr<TcpStream> stream_;  ///< not null: the peer is on another host
  bool link_ = false;
};

inline void RcTransport::leave() noexcept {
  target_.qp->turns.store(++target_.turn, std::memory_order_release);
}

/// In a turn at once, where the peer's QP is as it was. `peer` is the target's, which the compiler would otherwise
/// read anew behind each store.
[[gnu::always_inline]] inline bool RcTransport::try_enter(QpShared& peer) noexcept {
  Target& target = target_;
  // Release: whoever sees this turn sees all of the one before.
  peer.turns.store(++target.turn, std::memory_order_release);
  // The owner changes the epoch, then looks at `turns`; here it is the other
  // way round. One of the two must see the other; the owner's membarrier
  // makes a compiler barrier enough on this side.
  if (target.light_barrier) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (peer.epoch.load(std::memory_order_acquire) == target.epoch) [[likely]] return true;
  leave();
  return false;
}

[[gnu::always_inline]] inline bool RcTransport::enter() noexcept {
  QpShared& peer = *target_.qp;
  return peer.epoch.load(std::memory_order_acquire) == target_.epoch && try_enter(peer) ? true : enter_anew();
}

[[gnu::always_inline]] inline bool RcTransport::write_plain(const ibv_sge& sge, std::uint64_t remote_addr,
                                                            std::uint32_t rkey) noexcept {
  if (!reachable()) return false;
  const auto [local_addr, length, lkey] = sge;
  const MrShared* from = find_region(own_.process.regions(), lkey, own_.pd, 0, local_addr, length);
  if (from == nullptr || needs_care(*from) || length - 1u >= kMaxMessageBytes || !enter()) return false;
  const MrShared* to = find_region(target_.regions, rkey, target_.pd, IBV_ACCESS_REMOTE_WRITE, remote_addr, length);
  std::uint8_t* direct = nullptr;
  if (to != nullptr && (target_.access & IBV_ACCESS_REMOTE_WRITE) != 0) {
    direct = reach(target_, *to, to->addr + (remote_addr - to->iova), length);
  }
  if (direct != nullptr) {
    copy_last_byte_last(direct, reinterpret_cast<const std::uint8_t*>(from->addr + (local_addr - from->iova)), length);
  }
  leave();
  return direct != nullptr;
}

}  // namespace gdrperf::softnic
