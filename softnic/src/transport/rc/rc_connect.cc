#include <cstdint>
#include <utility>

#include "paths/ways.h"
#include "transport/rc/rc.h"
#include "transport/rc/target_in.h"

/// The two ends of a connection, and what is moved ahead of a message's arrival.
namespace gdrperf::softnic {

void RcTransport::connect(std::shared_ptr<Peer> other, KernelPolicy kernel) {
  Peer* const peer = other.get();
  Process& process = own_.process;
  const std::uint32_t destination = own_.attributes.dest_qp_num;
  Target target;
  std::uint64_t peer_id = 0;
  if (qpn_block(destination) == process.block()) {
    target = target_in(process, nullptr, kernel);
    peer_id = process.id();
  } else if (peer != nullptr && peer->stranger() != nullptr) {
    target.stranger = peer->stranger();
    target.stranger_id = peer_id = peer->id();
  } else if (peer != nullptr) {
    target = target_in(process, peer, kernel);
    peer_id = peer->id();
  }
  own_.shared.dest_process = peer_id;
  own_.shared.dest_qpn = destination;
  if (target.segment != nullptr) {
    target.qp = &target.segment->qps[qpn_index(destination)];
    const std::uint64_t turn = target.qp->turns.load();
    target.turn = turn + (turn & 1);
  }
  target_ = target;
  peer_ = std::move(other);
}

void RcTransport::connect_over(std::shared_ptr<TcpStream> stream) {
  target_ = Target{};
  peer_.reset();
  stream_ = std::move(stream);
  own_.shared.dest_qpn = own_.attributes.dest_qp_num;
  // No process of this host is the peer.
  own_.shared.dest_process = ~std::uint64_t{0};
}

void RcTransport::disconnect() noexcept {
  stream_.reset();
  target_ = Target{};
  peer_.reset();
  own_.shared.dest_qpn = 0;
  own_.shared.dest_process = 0;
}

void RcTransport::show_arrival(const SendOp&, Instant due) noexcept {
  if (target_.qp != nullptr) target_.qp->arrival_due.store(due, std::memory_order_relaxed);
}

bool RcTransport::move_ahead(const SendOp& op, AheadMove& move) noexcept {
  if (!reachable() || !enter()) return false;
  const bool moved = move_inside(op, move);
  leave();
  return moved;
}

bool RcTransport::move_inside(const SendOp& op, AheadMove& move) noexcept {
  const bool read = op.opcode == IBV_WR_RDMA_READ;
  const bool send = is_send(op.opcode);
  Pieces pieces;
  if (!gather(own_.process.regions(), own_.pd, op, read ? IBV_ACCESS_LOCAL_WRITE : 0, pieces)) return false;
  const unsigned right = read ? IBV_ACCESS_REMOTE_READ : send ? 0 : IBV_ACCESS_REMOTE_WRITE;
  const MrShared* region = nullptr;
  std::uint64_t to = op.remote_addr;
  if (send) {
    // The same receive as for the piece before, or none.
    const RecvCell* cell = target_.uses_srq ? nullptr : target_.recv_ring.peek(move.sends_before);
    if (cell == nullptr || (move.done > 0 && cell != move.peeked)) return false;
    const TakenReceive receive(target_.recv_ring, *cell);
    if (receive.num_sge == 0 || receive.sges[0].length < pieces.total) return false;
    move.peeked = cell;
    to = receive.sges[0].addr;
    region = find_region(target_.regions, receive.sges[0].lkey, target_.recv_pd, IBV_ACCESS_LOCAL_WRITE, to,
                         pieces.total);
  } else if ((target_.access & right) == right) {
    region = find_region(target_.regions, op.rkey, target_.pd, right, to, pieces.total);
  }
  if (region == nullptr) return false;
  Part{move.done, move.done + move.length, nullptr}.apply(pieces);
  const ibv_wc_status status = read ? get(target_, *region, to + move.done, pieces)
                                    : put(target_, *region, to + move.done, pieces);
  return status == IBV_WC_SUCCESS;
}

std::uint64_t RcTransport::neighbour(const SendOp& op, std::uint64_t total) noexcept {
  if (!reachable() || !enter()) return op.remote_addr;
  std::uint64_t place = op.remote_addr;
  for (const std::uint64_t candidate : {op.remote_addr + total, op.remote_addr - total}) {
    if (find_region(target_.regions, op.rkey, target_.pd, 0, candidate, total) != nullptr) {
      place = candidate;
      break;
    }
  }
  leave();
  return place;
}

}  // namespace gdrperf::softnic
