#include "transport/ud/ud.h"

#include <cstring>

#include "paths/ways.h"
#include "shared/segment/completion.h"
#include "shared/segment/multicast.h"
#include "transport/rc/grh.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kOwnKeyBit = 1u << 31;

}  // namespace

void Destination::put_into(SendOp& op) const noexcept {
  static_assert(sizeof gid == sizeof op.compare_add + sizeof op.swap);
  op.remote_addr = static_cast<std::uint64_t>(sgid_index) << 32 | qpn;
  op.rkey = qkey;
  std::memcpy(&op.compare_add, gid.raw, 8);
  std::memcpy(&op.swap, gid.raw + 8, 8);
}

Destination Destination::of(const SendOp& op) noexcept {
  Destination to;
  to.qpn = static_cast<std::uint32_t>(op.remote_addr) & 0xffffff;
  to.sgid_index = static_cast<std::uint8_t>(op.remote_addr >> 32);
  to.qkey = op.rkey;
  std::memcpy(to.gid.raw, &op.compare_add, 8);
  std::memcpy(to.gid.raw + 8, &op.swap, 8);
  return to;
}

UdTransport::~UdTransport() = default;

void UdTransport::disconnect() noexcept {
  targets_.clear();
  tcp_.clear();
  groups_.clear();
}

void UdTransport::look_again() noexcept { targets_.look_again(); }

void UdTransport::forget_gone_peers() noexcept { targets_.forget_gone_peers(); }

/// The address has to be one of the port's that the QP is on, of the same type as
/// the sender's own; and its key the QP's.
bool UdTransport::accepts(const Target& target, const Destination& to, std::uint32_t key) const noexcept {
  if (key != target.qp->qkey.load(std::memory_order_relaxed) || to.sgid_index >= kGidsPerPort) return false;
  const std::uint16_t device = target.qp->device.load(std::memory_order_relaxed);
  return device < kMaxDevicesShared &&
         std::memcmp(&target.segment->header.gids[device][to.sgid_index], &to.gid, sizeof to.gid) == 0;
}

/// To each of its QPs of this host, as a datagram of its own; and to other hosts.
void UdTransport::send_to_group(const Datagram& datagram, const Pieces& message, const Part& part) noexcept {
  targets_.find_members(datagram.route.to, members_);
  for (const std::uint32_t qpn : members_) {
    if (qpn == own_.number && own_multicast_ == OwnMulticast::kBlocked) continue;
    UdTargets::Known* const known = targets_.find(qpn);
    if (known == nullptr || !targets_.enter(*known)) continue;
    Pieces copy = message;
    const bool has_key = known->target.qp->qkey.load(std::memory_order_relaxed) == datagram.qkey;
    if (has_key) deliver_datagram(known->target, own_.process, datagram, copy, part);
    targets_.leave(*known);
  }
  groups_.send(datagram, message, part);
}

Outcome UdTransport::execute_part(const SendOp& op, const Part& part) noexcept {
  Pieces message;
  if (!gather(own_.process.regions(), own_.pd, op, 0, message)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  const auto bytes = static_cast<std::uint32_t>(message.total);
  const Outcome sent{Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes};
  // Specification C10-93.1.1: what is larger than the port's MTU is not sent, and that is no error.
  if (message.total > port_->mtu_bytes() || own_.shared.port_up == 0) return sent;
  const Destination to = Destination::of(op);
  if (to.sgid_index >= kGidsPerPort) return sent;
  Datagram datagram;
  datagram.route = {port_->gid(to.sgid_index), to.gid, kGidKinds[to.sgid_index]};
  datagram.from_qpn = own_.number;
  datagram.qkey = (to.qkey & kOwnKeyBit) != 0 ? own_.shared.qkey.load(std::memory_order_relaxed) : to.qkey;
  datagram.imm = op.imm;
  datagram.opcode = op.opcode;
  datagram.solicited = (op.flags & IBV_SEND_SOLICITED) != 0;
  if (is_multicast(to.gid)) {
    send_to_group(datagram, message, part);
    return sent;
  }
  if (tcp_.is_for(to.gid)) {
    tcp_.send(datagram, to.qpn, message, part);
    return sent;
  }
  UdTargets::Known* const known = targets_.find(to.qpn);
  if (known == nullptr || !targets_.enter(*known)) return sent;
  if (accepts(known->target, to, datagram.qkey)) deliver_datagram(known->target, own_.process, datagram, message, part);
  targets_.leave(*known);
  return sent;
}

void UdTransport::show_arrival(const SendOp& op, Instant due) noexcept {
  const Destination to = Destination::of(op);
  if (is_multicast(to.gid)) {
    targets_.find_members(to.gid, members_);
    for (const std::uint32_t qpn : members_) {
      if (UdTargets::Known* const known = targets_.find(qpn))
        known->target.qp->arrival_due.store(due, std::memory_order_relaxed);
    }
    return;
  }
  if (tcp_.is_for(to.gid)) return;
  if (UdTargets::Known* const known = targets_.find(to.qpn)) {
    known->target.qp->arrival_due.store(due, std::memory_order_relaxed);
  }
}

}  // namespace gdrperf::softnic
