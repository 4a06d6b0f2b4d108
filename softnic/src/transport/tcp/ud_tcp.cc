#include "transport/tcp/ud_tcp.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gpu/message.h"
#include "remote/address.h"
#include "remote/reach.h"
#include "shared/segment/completion.h"

namespace gdrperf::softnic {
namespace {

constexpr TcpPatience kReachPatience{1000, 0};
constexpr std::uint64_t kNobodyNs = 1'000'000'000;
/// The other end takes nothing for so long: what is sent is lost.
constexpr int kNoRoomMs = 200;
/// Addresses are looked up again when there are more.
constexpr std::size_t kMostAddresses = 4096;

std::array<std::uint8_t, 16> gid_bytes(const ibv_gid& gid) {
  std::array<std::uint8_t, 16> bytes;
  std::copy_n(gid.raw, bytes.size(), bytes.begin());
  return bytes;
}

}  // namespace

bool UdTcp::is_elsewhere(const ibv_gid& gid) noexcept {
  if (device_.config.shared == SharedPolicy::kNever) return true;
  const Gid key = gid_bytes(gid);
  const auto found = elsewhere_.find(key);
  if (found != elsewhere_.end()) return found->second;
  if (elsewhere_.size() >= kMostAddresses) elsewhere_.clear();
  bool here = is_of_this_host(gid, device_.config.netdev);
  for (const auto& device : devices()) {
    for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) here = here || gid_bytes(device->gid(entry)) == key;
  }
  return elsewhere_[key] = !here;
}

bool UdTcp::connect(Link& link, const Datagram& datagram, std::uint32_t qpn) noexcept {
  if (link.absent_until_ns != 0 && monotonic_ns() < link.absent_until_ns) return false;
  const TcpRoute route{datagram.route.from, datagram.route.to, datagram.from_qpn, qpn, IBV_QPT_UD};
  TcpReached reached = reach_over_tcp(route, device_.config, kReachPatience);
  link.absent_until_ns = reached.socket ? 0 : monotonic_ns() + kNobodyNs;
  // An absent destination is no error for a datagram.
  if (!reached.socket && reached.answered && reached.refusal != TcpRefusal::kNobody) say_not_reached(route, reached);
  link.socket = std::move(reached.socket);
  return static_cast<bool>(link.socket);
}

void UdTcp::send(const Datagram& datagram, std::uint32_t qpn, Pieces& message, const Part& part) noexcept {
  if (links_.size() >= kMostAddresses) links_.clear();
  Link& link = links_[{{gid_bytes(datagram.route.from), gid_bytes(datagram.route.to)}, qpn_block(qpn)}];
  if (!link.socket && !connect(link, datagram, qpn)) return;
  Frame frame{};
  frame.kind = FrameKind::kDatagram;
  frame.opcode = datagram.opcode;
  frame.solicited = datagram.solicited ? 1 : 0;
  frame.count = qpn;
  frame.imm = datagram.imm;
  frame.rkey = datagram.qkey;
  frame.address = datagram.from_qpn;
  frame.total = static_cast<std::uint32_t>(message.total);
  part.apply(message);
  frame.bytes = message.total;
  if (in_gpu(message)) {
    bounce_.resize(message.total);
    if (!copy_out(bounce_.data(), message)) return;
    message.items[0] = {bounce_.data(), bounce_.size(), nullptr};
    message.count = 1;
  }
  if (!write(link, frame, message)) link.socket.reset();
}

/// False: the connection is of no use any more.
bool UdTcp::write(Link& link, const Frame& frame, const Pieces& message) noexcept {
  iovec vectors[kMaxSge + 2];
  unsigned count = 0;
  vectors[count++] = {const_cast<Frame*>(&frame), sizeof frame};
  for (unsigned i = 0; i < message.count; ++i) vectors[count++] = {message.items[i].address, message.items[i].length};
  iovec* next = vectors;
  std::uint64_t left = sizeof frame + message.total;
  while (true) {
    msghdr header{};
    header.msg_iov = next;
    header.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(link.socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (sent < 0) {
      pollfd entry{link.socket.get(), POLLOUT, 0};
      if (::poll(&entry, 1, kNoRoomMs) > 0) continue;
      // Whole ones are lost; half a one would be the end of the connection.
      return left == sizeof frame + message.total;
    }
    auto done = static_cast<std::uint64_t>(sent);
    left -= done;
    if (left == 0) return true;
    for (; count > 0 && done >= next->iov_len; --count) done -= (next++)->iov_len;
    next->iov_base = static_cast<std::uint8_t*>(next->iov_base) + done;
    next->iov_len -= done;
  }
}

}  // namespace gdrperf::softnic
