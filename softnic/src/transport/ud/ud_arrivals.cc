#include "transport/ud/ud_arrivals.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "remote/hub.h"
#include "shared/segment/completion.h"
#include "transport/ud/ud_targets.h"

/// Datagrams of other hosts. All that they say is taken for an enemy's.
namespace gdrperf::softnic {
namespace {

constexpr std::size_t kDatagramInBytes = 64u << 10;
constexpr std::uint32_t kLargestDatagram = 4096;
/// In a row, before the program gets its turn to post receives.
constexpr int kMostAtOnce = 64;
/// A program that has posted receives before is waited for so long.
constexpr std::uint64_t kReceiveWaitNs = 20'000'000;
constexpr std::uint64_t kLookAgainNs = 100'000;

/// One connection, which another host's UD QP sends on.
class UdArrivals final : public TcpEnd {
 public:
  UdArrivals(Process& process, const TcpHello& hello, UniqueFd socket)
      : process_(process),
        route_{hello.from, hello.to, hello.from_qpn, hello.to_qpn, hello.type},
        socket_(std::move(socket)),
        targets_(process, nullptr),
        in_(kDatagramInBytes) {}

  const TcpRoute& expected() const noexcept override { return route_; }
  bool take(UniqueFd&) noexcept override { return false; }
  int socket() const noexcept override { return socket_.get(); }
  bool polled_within(std::uint64_t) const noexcept override { return false; }
  /// The hub's thread alone.
  Wish serve() noexcept override;

 private:
  enum class Next { kMore, kWaits, kNonsense };
  Next take_one() noexcept;
  bool deliver(const Frame& frame, const std::uint8_t* data) noexcept;
  bool read_more() noexcept;

  Process& process_;
  const TcpRoute route_;
  const UniqueFd socket_;
  UdTargets targets_;
  std::vector<std::uint8_t> in_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
  std::uint64_t waits_since_ns_ = 0;
  /// QPs that found no receive when they were last looked at, and lost something.
  std::unordered_map<std::uint32_t, bool> without_;
};

TcpEnd::Wish UdArrivals::serve() noexcept {
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    const Next next = take_one();
    if (next == Next::kNonsense) return {0, 0, true};
    if (next == Next::kWaits) return {0, kLookAgainNs, false};
    if (begin_ != end_ && end_ - begin_ >= sizeof(Frame)) {
      Frame frame;
      std::memcpy(&frame, in_.data() + begin_, sizeof frame);
      if (end_ - begin_ >= sizeof frame + frame.bytes) continue;
    }
    if (!read_more()) return ended_ ? Wish{0, 0, true} : Wish{EPOLLIN, 0, false};
  }
  return {EPOLLIN, 1, false};
}

/// False: nothing is there, or nothing will come any more.
bool UdArrivals::read_more() noexcept {
  std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ssize_t got;
  do {
    got = ::recv(socket_.get(), in_.data() + end_, in_.size() - end_, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) end_ += static_cast<std::size_t>(got);
  ended_ = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  return got > 0;
}

UdArrivals::Next UdArrivals::take_one() noexcept {
  if (end_ - begin_ < sizeof(Frame)) return Next::kMore;
  Frame frame;
  std::memcpy(&frame, in_.data() + begin_, sizeof frame);
  const bool known =
      frame.kind == FrameKind::kDatagram && (frame.opcode == IBV_WR_SEND || frame.opcode == IBV_WR_SEND_WITH_IMM);
  if (!known || frame.total > kLargestDatagram || frame.bytes > frame.total) return Next::kNonsense;
  if (end_ - begin_ < sizeof frame + frame.bytes) return Next::kMore;
  if (!deliver(frame, in_.data() + begin_ + sizeof frame)) {
    const std::uint64_t now = monotonic_ns();
    if (waits_since_ns_ == 0) waits_since_ns_ = now;
    bool& without = without_[frame.count & 0xffffff];
    if (!without && now - waits_since_ns_ < kReceiveWaitNs) return Next::kWaits;
    // Lost. Those behind it are not waited for until there is a receive again.
    without = true;
  } else if (!without_.empty()) {
    without_.erase(frame.count & 0xffffff);
  }
  waits_since_ns_ = 0;
  begin_ += sizeof frame + frame.bytes;
  return Next::kMore;
}

/// False: no receive is posted. What is not for that QP is lost, and that is no reason to wait.
bool UdArrivals::deliver(const Frame& frame, const std::uint8_t* data) noexcept {
  const std::uint32_t qpn = frame.count & 0xffffff;
  UdTargets::Known* const known = targets_.find(qpn);
  if (known == nullptr || !targets_.enter(*known)) return true;
  const Target& target = known->target;
  const std::uint32_t entry = gid_index_of(target, route_.to);
  bool delivered = true;
  if (entry < kGidsPerPort && frame.rkey == target.qp->qkey.load(std::memory_order_relaxed)) {
    Datagram datagram;
    datagram.route = {route_.from, route_.to, kGidKinds[entry]};
    datagram.from_qpn = static_cast<std::uint32_t>(frame.address) & 0xffffff;
    datagram.imm = frame.imm;
    datagram.opcode = frame.opcode;
    datagram.solicited = frame.solicited != 0;
    Pieces message;
    if (frame.bytes > 0) message.items[message.count++] = {const_cast<std::uint8_t*>(data), frame.bytes, nullptr};
    message.total = frame.bytes;
    delivered = deliver_datagram(target, process_, datagram, message, {});
  }
  targets_.leave(*known);
  return delivered;
}

class UdService final : public TcpService {
 public:
  explicit UdService(Process& process) : process_(process) {}
  bool is_own(const TcpHello& hello) override { return qpn_block(hello.to_qpn) == process_.block(); }
  bool hand_over(const TcpHello& hello, int socket) override { return process_.hand_over(hello.to_qpn, socket); }
  void arrived(const TcpHello& hello, UniqueFd socket) override {
    process_.hub().add(std::make_shared<UdArrivals>(process_, hello, std::move(socket)));
  }

 private:
  Process& process_;
};

}  // namespace

void take_datagrams(Process& process) {
  static Mutex mutex;
  // A forked child has a process of its own. Never destroyed: greetings go on while a program ends.
  static auto& services = *new std::map<Process*, std::unique_ptr<UdService>>();
  const MutexLock guard(mutex);
  std::unique_ptr<UdService>& service = services[&process];
  if (service == nullptr) service = std::make_unique<UdService>(process);
  process.hub().serve(IBV_QPT_UD, *service);
}

}  // namespace gdrperf::softnic
