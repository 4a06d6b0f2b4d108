#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gdrperf/engine/resolve.h"
#include "engine/setup/streams.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"
#include "engine/transfer/transfer.h"

namespace gdrperf::engine {

/// Objects that the work requests of one end refer to.
struct PlanInput {
  const ResolvedSpec& spec;
  std::span<ibv_qp* const> qps;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  std::byte* initiator_area = nullptr;  ///< what we send from, or read into; null: we don't initiate
  std::byte* target_area = nullptr;     ///< what the peer reaches; null: it doesn't initiate
  std::vector<std::uint32_t> lkeys;     ///< of the QPs, round-robin
  int inline_bytes = 0;
  const proto::Endpoint& remote;
  ibv_ah* address_handle = nullptr;     ///< of datagrams
  std::vector<ibv_srq*> srqs = {};      ///< of the QPs, round-robin; empty: each has receives of its own
};

/// All work requests of one end, built before the run; owns them and the state
/// of the kernels. Not movable: kernels hold pointers into it.
class Plan {
 public:
  explicit Plan(const PlanInput& input);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Posts all receives; throws Error. Before the peer may send.
  void post_receives();

  /// Atomics: each is to find `word` of its slot, and to leave it `step` larger. While none is posted.
  void arm_atomics(const WordOf& word, std::uint64_t step);

  bool sends() const { return send.queue_count != 0; }
  bool receives() const { return recv.queue_count != 0; }
  /// Messages posted by QP i so far; lists that were cut counted as what they had.
  std::vector<std::uint64_t> posted_messages() const;
  /// True when every queue has all its credit: nothing is in flight.
  bool idle() const;

  SendStream send;
  RecvStream recv;
  PingPong pingpong;
  stats::Histogram histogram;
  /// By QP: requests that lists posted were short of (ExactSend).
  std::vector<std::uint64_t> cut_messages;

 private:
  void build_sends(const PlanInput& input, const Layout& layout);
  void build_receives(const PlanInput& input, const Layout& layout);
  void build_pingpong(const PlanInput& input);
  void build_signals(const PlanInput& input);
  void build_lanes(const PlanInput& input);

  std::size_t slots_ = 1;
  std::vector<ibv_send_wr> send_requests_;
  std::vector<ibv_sge> send_pieces_;
  std::vector<SendQueue> send_queues_;
  std::vector<ibv_recv_wr> recv_requests_;
  std::vector<ibv_sge> recv_pieces_;
  std::vector<RecvQueue> recv_queues_;
  std::vector<ibv_send_wr> signal_requests_;  ///< behind each request of a latency test with a signal
  std::vector<ibv_sge> signal_pieces_;
  std::uint8_t unsent_ = 0;  ///< where the kernel puts numbers that an atomic makes
  std::vector<PingPongLane> lanes_;
};

/// Work requests of one QP's ring: a multiple of cq_mod, so that signalling fits into
/// it, with every slot used.
std::size_t send_ring_length(const ResolvedSpec& resolved);

/// Depth of the receive queues and how many receives are posted at once.
struct ReceiveShape {
  int depth = 1;
  int batch = 1;
};
ReceiveShape receive_shape(const ResolvedSpec& resolved);

}  // namespace gdrperf::engine
