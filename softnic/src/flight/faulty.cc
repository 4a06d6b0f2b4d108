#include <cstring>
#include <memory>

#include "flight/flight.h"
#include "flight/moments.h"
#include "gpu/message.h"
#include "host/process/process.h"

/// Executing a request that a link model or a fault has a say in.
namespace gdrperf::softnic {
namespace {

void flip_bit(const Pieces& pieces, std::uint64_t random) noexcept {
  std::uint64_t bit = random % (pieces.total * 8);
  for (unsigned i = 0; i < pieces.count; ++i) {
    const Piece& piece = pieces.items[i];
    if (bit < piece.length * 8) {
      Pieces byte;
      byte.items[byte.count++] = {piece.address + bit / 8, 1, piece.region};
      byte.total = 1;
      std::uint8_t value = 0;
      if (!copy_out(&value, byte)) return;
      value ^= static_cast<std::uint8_t>(1u << (bit & 7));
      copy_in(&value, byte);
      return;
    }
    bit -= piece.length * 8;
  }
}

/// The message's data in a buffer of its own, for what changes it on its way.
std::unique_ptr<std::uint8_t[]> copy_of(const Pieces& pieces) {
  std::unique_ptr<std::uint8_t[]> data(new std::uint8_t[pieces.total]);
  copy_out(data.get(), pieces);
  return data;
}

/// The same request with other data; its key does not matter.
SendOp with_data(const SendOp& op, const std::uint8_t* data, std::uint64_t total, ibv_sge& sge) noexcept {
  sge = {reinterpret_cast<std::uint64_t>(data), static_cast<std::uint32_t>(total), 0};
  SendOp changed = op;
  changed.sges = &sge;
  changed.num_sge = 1;
  changed.flags |= IBV_SEND_INLINE;
  return changed;
}

}  // namespace

Outcome Flight::execute_changed(const Stamp& s, const SendOp& op) noexcept {
  const bool read = op.opcode >= IBV_WR_RDMA_READ;
  if (s.fault.kind == FaultKind::kMisplace) {
    SendOp moved = op;
    moved.remote_addr = transport_.neighbour(op, s.total);
    if (!is_send(op.opcode) && moved.remote_addr != op.remote_addr) return qp_.execute(moved);
    if (read) return execute_part(op, {0, 0, nullptr});  // nowhere else to read from
  }
  Pieces pieces;
  if (s.total == 0 || !gather(process_.regions(), pd_, op, read ? IBV_ACCESS_LOCAL_WRITE : 0, pieces)) {
    return qp_.execute(op);
  }
  if (read) {
    const Outcome outcome = qp_.execute(op);
    if (outcome.kind == Outcome::Kind::kDone) flip_bit(pieces, s.fault.random);
    return outcome;
  }
  const auto data = copy_of(pieces);
  if (s.fault.kind == FaultKind::kFlip) {
    const std::uint64_t bit = s.fault.random % (s.total * 8);
    data[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit & 7));
  } else {
    const std::uint64_t half = s.total / 2;
    const auto original = copy_of(pieces);
    std::memcpy(data.get(), original.get() + half, s.total - half);
    std::memcpy(data.get() + (s.total - half), original.get(), half);
  }
  ibv_sge sge;
  return qp_.execute(with_data(op, data.get(), s.total, sge));
}

Outcome Flight::execute_part(const SendOp& op, const Part& part) noexcept {
  return is_local(op.opcode) ? qp_.execute(op) : transport_.execute_part(op, part);
}

Outcome Flight::execute_stamped(const Stamp& s, const SendOp& op) noexcept {
  const Part part{s.copied, ~0ull, s.peeked};
  const bool atomic = op.opcode > IBV_WR_RDMA_READ;
  switch (s.fault.kind) {
    case FaultKind::kDrop:
      return {};
    case FaultKind::kStale:
      return atomic ? Outcome{} : execute_part(op, {0, 0, nullptr});
    case FaultKind::kTruncate:
      return execute_part(op, {0, s.total / 2, nullptr});
    case FaultKind::kMisplace:
      return atomic ? qp_.execute(op) : execute_changed(s, op);
    case FaultKind::kFlip:
      return execute_changed(s, op);
    case FaultKind::kRnr: {
      if (takes_receive(op.opcode) && !transport_.acknowledged()) return {};  // lost
      if (takes_receive(op.opcode) && instant() < s.arrival + s.fault.time) return {Outcome::Kind::kNoReceive};
      return execute_part(op, part);
    }
    case FaultKind::kLoss:
      if (!transport_.acknowledged()) return {};
      break;
    case FaultKind::kNone:
    case FaultKind::kDelay:
    case FaultKind::kStall:
      break;
  }
  return s.copied == 0 ? qp_.execute(op) : execute_part(op, part);
}

}  // namespace gdrperf::softnic
