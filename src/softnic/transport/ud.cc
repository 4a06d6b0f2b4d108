#include "transport/ud.h"

#include <cstring>
#include <utility>

#include "paths/ways.h"
#include "shared/completion.h"
#include "transport/grh.h"
#include "transport/receiver.h"
#include "transport/target_in.h"

namespace gdrperf::softnic {
namespace {

/// After nobody answered for a block it is not asked again for so long.
constexpr std::uint64_t kAbsentNs = 100'000'000;
/// Other QPs are looked up again when there are more.
constexpr std::size_t kMostKnown = 4096;
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
  last_ = nullptr;
  known_.clear();
  hosts_.clear();
  absent_.clear();
}

void UdTransport::look_again() noexcept {
  for (auto& [qpn, known] : known_) known.target.epoch = ~0ull;
}

void UdTransport::forget(std::uint32_t block) noexcept {
  last_ = nullptr;
  std::erase_if(known_, [block](const auto& it) { return qpn_block(it.first) == block; });
  hosts_.erase(block);
}

void UdTransport::forget_gone_peers() noexcept {
  for (auto it = hosts_.begin(); it != hosts_.end();) {
    const std::uint32_t block = it->first;
    const bool gone = it->second->peer != nullptr && it->second->peer->gone();
    ++it;
    if (gone) forget(block);
  }
}

/// Null: nobody answers, or another user's process.
std::unique_ptr<UdTransport::Host> UdTransport::reach_host(std::uint32_t block) {
  Process& process = own_.process;
  auto host = std::make_unique<Host>();
  if (block != process.block()) {
    host->peer = process.peer(block, device_.config.peers);
    Peer* const peer = host->peer.get();
    if (peer == nullptr || peer->stranger() != nullptr) return nullptr;
    peer->find_way(device_.config.kernel == KernelPolicy::kAuto);
  }
  Target& target = host->target;
  target = target_in(process, host->peer.get(), device_.config.kernel);
  if (!host->lane.take(*target.segment, process.id(), target.light_barrier)) return nullptr;
  target.recv_tag = host->lane.tag();
  return host;
}

UdTransport::Host* UdTransport::host(std::uint32_t block) noexcept {
  if (const auto found = hosts_.find(block); found != hosts_.end()) {
    if (!found->second->target.dead->load(std::memory_order_relaxed)) return found->second.get();
    forget(block);
  }
  const auto absent = absent_.find(block);
  if (absent != absent_.end() && monotonic_ns() < absent->second) return nullptr;
  auto reached = reach_host(block);
  if (reached == nullptr) {
    absent_[block] = monotonic_ns() + kAbsentNs;
    return nullptr;
  }
  absent_.erase(block);
  return (hosts_[block] = std::move(reached)).get();
}

UdTransport::Known* UdTransport::find(std::uint32_t qpn) noexcept {
  if (last_ != nullptr && last_qpn_ == qpn && !last_->target.dead->load(std::memory_order_relaxed)) [[likely]] return last_;
  Host* const there = host(qpn_block(qpn));
  if (there == nullptr) return nullptr;
  auto found = known_.find(qpn);
  if (found == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear();
    found = known_.emplace(qpn, Known{there, there->target}).first;
    found->second.target.qp = &there->target.segment->qps[qpn_index(qpn)];
  }
  last_ = &found->second;
  last_qpn_ = qpn;
  return last_;
}

bool UdTransport::refresh(Known& known) noexcept {
  Target& target = known.target;
  std::uint64_t epoch = 0;
  if (!begin_look(target, epoch)) return false;
  if (target.qp->type != IBV_QPT_UD || target.qp->qpn != last_qpn_ || target.qp->device >= kMaxDevicesShared) return false;
  if (target.peer != nullptr && target.recv_cq->has_channel.load() != 0) target.peer->fetch_channel(target.recv_cq->channel);
  return finish_look(target, epoch);
}

bool UdTransport::enter(Known& known) noexcept {
  Target& target = known.target;
  // One that changes its mind without end is not there.
  for (int tries = 0; tries < 1000; ++tries) {
    if (target.qp->epoch.load(std::memory_order_acquire) != target.epoch && !refresh(known)) return false;
    if (known.host->lane.enter(*target.qp, qpn_index(last_qpn_), target.epoch)) return true;
  }
  return false;
}

/// The address has to be one of the port's that the QP is on, of the same type as
/// the sender's own; and its key the QP's.
bool UdTransport::accepts(const Target& target, const Destination& to) const noexcept {
  const std::uint32_t key = (to.qkey & kOwnKeyBit) != 0 ? own_.shared.qkey.load(std::memory_order_relaxed) : to.qkey;
  if (key != target.qp->qkey.load(std::memory_order_relaxed)) return false;
  if (to.sgid_index >= kGidsPerPort) return false;
  const std::uint16_t device = target.qp->device.load(std::memory_order_relaxed);
  return device < kMaxDevicesShared &&
         std::memcmp(&target.segment->header.gids[device][to.sgid_index], &to.gid, sizeof to.gid) == 0;
}

Outcome UdTransport::execute_part(const SendOp& op, const Part& part) noexcept {
  Pieces message;
  if (!gather(own_.process.regions(), own_.pd, op, 0, message)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  const auto bytes = static_cast<std::uint32_t>(message.total);
  const Outcome sent{Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes};
  // Specification C10-93.1.1: what is larger than the port's MTU is not sent, and that is no error.
  if (message.total > device_.mtu_bytes() || own_.shared.port_up == 0) return sent;
  const Destination to = Destination::of(op);
  Known* const known = find(to.qpn);
  if (known == nullptr || !enter(*known)) return sent;
  if (accepts(known->target, to)) deliver_to(known->target, op, to, message, part);
  known->host->lane.leave();
  return sent;
}

void UdTransport::deliver_to(const Target& target, const SendOp& op, const Destination& to, Pieces& message,
                             const Part& part) noexcept {
  RecvCell* const receive = target.recv_ring.take(target.recv_tag);
  if (receive == nullptr) return;
  const auto bytes = static_cast<std::uint32_t>(message.total);
  part.apply(message);
  std::uint8_t grh[kGrhBytes];
  write_grh({device_.gid(to.sgid_index), to.gid, kGidKinds[to.sgid_index]}, bytes, grh);
  message.put_in_front({grh, sizeof grh, nullptr});
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = bytes + kGrhBytes;
  completion.flags = IBV_WC_GRH | header_flags(kGidKinds[to.sgid_index]);
  completion.src_qpn = own_.number;
  if (op.opcode == IBV_WR_SEND_WITH_IMM) {
    completion.flags |= IBV_WC_WITH_IMM;
    completion.imm = op.imm;
  }
  ibv_wc_status copy_error = IBV_WC_SUCCESS;
  completion.status = scatter(target, TakenReceive(target.recv_ring, *receive), message, copy_error, completion.byte_len, 0);
  const bool failed = completion.status != IBV_WC_SUCCESS;
  if (!deliver(target, own_.process, completion, *receive, (op.flags & IBV_SEND_SOLICITED) != 0)) {
    fail_target(target, own_.process, IBV_EVENT_CQ_ERR);
  } else if (failed) {
    fail_target(target, own_.process, IBV_EVENT_QP_FATAL);
  }
}

void UdTransport::show_arrival(const SendOp& op, Instant due) noexcept {
  if (Known* const known = find(Destination::of(op).qpn)) {
    known->target.qp->arrival_due.store(due, std::memory_order_relaxed);
  }
}

}  // namespace gdrperf::softnic
