#include "transport/ud/ud_targets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/message.h"
#include "paths/ways.h"
#include "transport/rc/receiver.h"
#include "transport/rc/target_in.h"

namespace gdrperf::softnic {
namespace {

/// After nobody answered for a block it is not asked again for so long.
constexpr std::uint64_t kAbsentNs = 100'000'000;
/// Other QPs are looked up again when there are more.
constexpr std::size_t kMostKnown = 4096;

}  // namespace

UdTargets::~UdTargets() = default;

void UdTargets::clear() noexcept {
  last_ = nullptr;
  known_.clear();
  hosts_.clear();
  absent_.clear();
}

void UdTargets::look_again() noexcept {
  for (auto& [qpn, known] : known_) known.target.epoch = ~0ull;
}

void UdTargets::forget(std::uint32_t block) noexcept {
  last_ = nullptr;
  std::erase_if(known_, [block](const auto& it) { return qpn_block(it.first) == block; });
  hosts_.erase(block);
}

void UdTargets::forget_gone_peers() noexcept {
  for (auto it = hosts_.begin(); it != hosts_.end();) {
    const std::uint32_t block = it->first;
    const bool gone = it->second->peer != nullptr && it->second->peer->gone();
    ++it;
    if (gone) forget(block);
  }
}

/// Null: nobody answers, or another user's process.
std::unique_ptr<UdTargets::Host> UdTargets::reach_host(std::uint32_t block) {
  auto host = std::make_unique<Host>();
  if (block != process_.block()) {
    if (device_ == nullptr) return nullptr;
    host->peer = process_.peer(block, device_->peers);
    Peer* const peer = host->peer.get();
    if (peer == nullptr || peer->stranger() != nullptr) return nullptr;
    peer->find_way(device_->kernel == KernelPolicy::kAuto);
  }
  Target& target = host->target;
  target = target_in(process_, host->peer.get(), device_ != nullptr ? device_->kernel : KernelPolicy::kNever);
  if (!host->lane.take(*target.segment, process_.id(), target.light_barrier)) return nullptr;
  target.recv_tag = host->lane.tag();
  return host;
}

UdTargets::Host* UdTargets::host(std::uint32_t block) noexcept {
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

UdTargets::Known* UdTargets::find(std::uint32_t qpn) noexcept {
  if (last_ != nullptr && last_qpn_ == qpn && !last_->target.dead->load(std::memory_order_relaxed)) [[likely]]
    return last_;
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

void UdTargets::find_members(const ibv_gid& group, std::vector<std::uint32_t>& qpns) noexcept {
  qpns.clear();
  for (const std::uint32_t block : process_.groups().blocks(group)) {
    Host* const there = host(block);
    if (there == nullptr) continue;
    const Segment& segment = *there->target.segment;
    const std::uint32_t used = std::min(segment.header.members_used.load(), kMaxMemberships);
    for (std::uint32_t i = 0; i < used; ++i) {
      const std::uint32_t index = member_of(segment.members[i], group);
      if (index != 0) qpns.push_back(make_qpn(block, index));
    }
  }
}

bool UdTargets::refresh(Known& known) noexcept {
  Target& target = known.target;
  std::uint64_t epoch = 0;
  if (!begin_look(target, epoch)) return false;
  if (target.qp->type != IBV_QPT_UD || target.qp->qpn != last_qpn_ || target.qp->device >= kMaxDevicesShared)
    return false;
  if (target.peer != nullptr && target.recv_cq->has_channel.load() != 0)
    target.peer->fetch_channel(target.recv_cq->channel);
  return finish_look(target, epoch);
}

bool UdTargets::enter(Known& known) noexcept {
  Target& target = known.target;
  // One that changes its mind without end is not there.
  for (int tries = 0; tries < 1000; ++tries) {
    if (target.qp->epoch.load(std::memory_order_acquire) != target.epoch && !refresh(known)) return false;
    if (known.host->lane.enter(*target.qp, qpn_index(last_qpn_), target.epoch)) return true;
  }
  return false;
}

std::uint32_t gid_index_of(const Target& target, const ibv_gid& gid) noexcept {
  const std::uint16_t device = target.qp->device.load(std::memory_order_relaxed);
  if (device >= kMaxDevicesShared) return kGidsPerPort;
  std::uint32_t entry = 0;
  while (entry < kGidsPerPort && std::memcmp(&target.segment->header.gids[device][entry], &gid, sizeof gid) != 0)
    ++entry;
  return entry;
}

bool deliver_datagram(const Target& target, Process& process, const Datagram& datagram, Pieces& message,
                      const Part& part) noexcept {
  RecvCell* const receive = target.recv_ring.take(target.recv_tag);
  if (receive == nullptr) return false;
  const auto bytes = static_cast<std::uint32_t>(message.total);
  part.apply(message);
  std::uint8_t grh[kGrhBytes];
  write_grh(datagram.route, bytes, grh);
  message.put_in_front({grh, sizeof grh, nullptr});
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = bytes + kGrhBytes;
  completion.flags = IBV_WC_GRH | header_flags(datagram.route.kind);
  completion.src_qpn = datagram.from_qpn;
  if (datagram.opcode == IBV_WR_SEND_WITH_IMM) {
    completion.flags |= IBV_WC_WITH_IMM;
    completion.imm = datagram.imm;
  }
  ibv_wc_status copy_error = IBV_WC_SUCCESS;
  completion.status =
      scatter(target, TakenReceive(target.recv_ring, *receive), message, copy_error, completion.byte_len, 0);
  const bool failed = completion.status != IBV_WC_SUCCESS;
  if (!deliver(target, process, completion, *receive, datagram.solicited)) {
    fail_target(target, process, IBV_EVENT_CQ_ERR);
  } else if (failed) {
    fail_target(target, process, IBV_EVENT_QP_FATAL);
  }
  return true;
}

}  // namespace gdrperf::softnic
