#include "transport/ud/ud_groups.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/mutex.h"
#include "gpu/message.h"
#include "remote/address.h"
#include "remote/group_socket.h"
#include "remote/hub.h"
#include "remote/reach.h"
#include "remote/secret.h"
#include "shared/segment/multicast.h"

/// Multicast between hosts: out by UDP, in by the hub's thread. All that comes is taken
/// for an enemy's.
namespace gdrperf::softnic {
namespace {

/// In a row, before others get their turn.
constexpr int kMostGroupDatagrams = 64;

std::uint8_t entry_of(const GidKind& kind) {
  std::uint8_t entry = 0;
  while (entry + 1u < kGidsPerPort && (kGidKinds[entry].type != kind.type || kGidKinds[entry].ipv4 != kind.ipv4))
    ++entry;
  return entry;
}

/// A group's socket of one device of this process.
class GroupArrivals final : public TcpEnd {
 public:
  GroupArrivals(Process& process, const Device& device, const ibv_gid& group, std::string secret, UniqueFd socket)
      : process_(process), secret_(std::move(secret)), socket_(std::move(socket)), targets_(process, nullptr),
        in_(sizeof(GroupHead) + kMostGroupData) {
    route_.from = group;
    route_.to = device.gid(0);
    route_.type = IBV_QPT_UD;
  }

  const TcpRoute& expected() const noexcept override { return route_; }
  bool take(UniqueFd&) noexcept override { return false; }
  int socket() const noexcept override { return socket_.get(); }
  bool polled_within(std::uint64_t) const noexcept override { return false; }
  /// The hub's thread alone.
  Wish serve() noexcept override;

  void add(std::uint32_t qpn) {
    const MutexLock guard(mutex_);
    qpns_.insert(qpn);
  }
  /// True when none is left.
  bool remove(std::uint32_t qpn) {
    const MutexLock guard(mutex_);
    qpns_.erase(qpn);
    return qpns_.empty();
  }

 private:
  void deliver(const GroupHead& head, std::uint8_t* data) noexcept;

  Process& process_;
  TcpRoute route_;
  const std::string secret_;
  const UniqueFd socket_;
  UdTargets targets_;
  std::vector<std::uint8_t> in_;
  Mutex mutex_;
  std::set<std::uint32_t> qpns_ GUARDED_BY(mutex_);
};

TcpEnd::Wish GroupArrivals::serve() noexcept {
  for (int taken = 0; taken < kMostGroupDatagrams; ++taken) {
    const ssize_t got = ::recv(socket_.get(), in_.data(), in_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0) break;
    if (static_cast<std::size_t>(got) > in_.size()) continue;
    GroupHead head;
    const Sealed worth = check_seal({in_.data(), static_cast<std::size_t>(got)}, secret_, head);
    if (worth == Sealed::kOtherSecret || worth == Sealed::kOtherVersion) {
      say_once(fmt::format("datagrams to the group {} are lost: their sender has another {}", text_of(route_.from),
                           worth == Sealed::kOtherVersion ? "version of the software device"
                                                          : "token= in SOFTNIC, or is another user without one"));
    }
    if (worth == Sealed::kGood && std::memcmp(&head.to, &route_.from, sizeof head.to) == 0)
      deliver(head, in_.data() + sizeof head);
  }
  return {EPOLLIN, 0, false};
}

/// To each member that has the key and a receive.
void GroupArrivals::deliver(const GroupHead& head, std::uint8_t* data) noexcept {
  const Frame& frame = head.frame;
  if (frame.status >= kGidsPerPort) return;
  Datagram datagram;
  datagram.route = {head.from, head.to, kGidKinds[frame.status]};
  datagram.from_qpn = static_cast<std::uint32_t>(frame.address) & 0xffffff;
  datagram.imm = frame.imm;
  datagram.opcode = frame.opcode;
  datagram.solicited = frame.solicited != 0;
  const MutexLock guard(mutex_);
  for (const std::uint32_t qpn : qpns_) {
    UdTargets::Known* const known = targets_.find(qpn);
    if (known == nullptr || !targets_.enter(*known)) continue;
    Pieces message;
    if (frame.bytes > 0) message.items[message.count++] = {data, frame.bytes, nullptr};
    message.total = frame.bytes;
    const bool has_key = known->target.qp->qkey.load(std::memory_order_relaxed) == frame.rkey;
    if (has_key) deliver_datagram(known->target, process_, datagram, message, {});
    targets_.leave(*known);
  }
}

/// Of this process, by device and group.
struct GroupSockets {
  using Key = std::pair<const Device*, std::array<std::uint8_t, 16>>;
  static Key key_of(const Device& device, const ibv_gid& group) {
    Key key{&device, {}};
    std::copy_n(group.raw, key.second.size(), key.second.begin());
    return key;
  }
  Mutex mutex;
  std::map<Key, std::shared_ptr<GroupArrivals>> all GUARDED_BY(mutex);
};

/// Never destroyed: the hub's thread goes on while a program ends.
GroupSockets& group_sockets() {
  static auto& all = *new GroupSockets();
  return all;
}

}  // namespace

void UdGroups::send(const Datagram& datagram, const Pieces& message, const Part& part) noexcept {
  if (device_.config.tcp_port == 0 || message.total > kMostGroupData) return;
  const Route& route = datagram.route;
  UniqueFd& socket = sockets_[is_mapped_ipv4(route.to)];
  if (!socket) {
    std::string obstacle;
    secret_ = secret_of(device_.config, obstacle);
    socket = group_sender(route.to, device_.config.netdev);
  }
  if (!socket || secret_.empty()) return;
  Pieces data = message;
  part.apply(data);
  out_.resize(sizeof(GroupHead) + data.total);
  if (!copy_out(out_.data() + sizeof(GroupHead), data)) return;
  GroupHead head{};
  head.from = route.from;
  head.to = route.to;
  head.frame.kind = FrameKind::kDatagram;
  head.frame.opcode = datagram.opcode;
  head.frame.solicited = datagram.solicited ? 1 : 0;
  head.frame.status = entry_of(route.kind);
  head.frame.imm = datagram.imm;
  head.frame.rkey = datagram.qkey;
  head.frame.address = datagram.from_qpn;
  head.frame.total = static_cast<std::uint32_t>(message.total);
  head.frame.bytes = data.total;
  seal(head, {out_.data() + sizeof head, data.total}, secret_);
  std::memcpy(out_.data(), &head, sizeof head);
  const SocketAddress to = address_of(route.to, device_.config.tcp_port, device_.config.netdev);
  [[maybe_unused]] const auto sent =
      ::sendto(socket.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.length);
}

void take_group(Process& process, const Device& device, const ibv_gid& group, std::uint32_t qpn) {
  if (device.config.tcp_port == 0) return;
  GroupSockets& here = group_sockets();
  const MutexLock guard(here.mutex);
  const auto found = here.all.find(GroupSockets::key_of(device, group));
  if (found != here.all.end()) {
    found->second->add(qpn);
    return;
  }
  std::string obstacle;
  std::string secret = secret_of(device.config, obstacle);
  UniqueFd socket = group_receiver(group, device.config.tcp_port, device.config.netdev);
  if (!socket)
    obstacle = fmt::format("UDP port {} on {}: {}", device.config.tcp_port, device.config.netdev, std::strerror(errno));
  if (!socket || secret.empty()) {
    say_once(fmt::format("the group {} has the members of this host alone: {}", text_of(group), obstacle));
    return;
  }
  const auto end = std::make_shared<GroupArrivals>(process, device, group, std::move(secret), std::move(socket));
  end->add(qpn);
  here.all.emplace(GroupSockets::key_of(device, group), end);
  process.hub().add(end);
}

void leave_group(Process& process, const Device& device, const ibv_gid& group, std::uint32_t qpn) {
  GroupSockets& here = group_sockets();
  const MutexLock guard(here.mutex);
  const auto found = here.all.find(GroupSockets::key_of(device, group));
  if (found == here.all.end() || !found->second->remove(qpn)) return;
  process.hub().remove(*found->second);
  here.all.erase(found);
}

}  // namespace gdrperf::softnic
