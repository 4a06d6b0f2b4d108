#include "transport/tcp/tcp_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/rc/target_in.h"

namespace gdrperf::softnic {
namespace {

/// Data that nobody acknowledges: the other host is gone.
constexpr int kSilentMs = 10'000;
/// While the other end's request waits for a receive, or this QP for its state.
constexpr std::uint64_t kParkedNs = 1'000'000;
/// The send queue was in use.
constexpr std::uint64_t kBusyNs = 20'000;
/// Time that execute() waits.
constexpr std::uint64_t kExecuteNs = 100'000'000;
/// Of these, awake.
constexpr std::uint64_t kSpinNs = 300'000;
/// A peer that answers within this time is filled by kNearBytes of send buffer (the kernel doubles it).
constexpr std::uint32_t kNearUs = 200;
constexpr int kNearBytes = 256 << 10;

/// What the kernel lets pile up in the socket of a peer on this host leaves the cache before it is read: half the rate.
/// For others it finds out by itself how much is under way.
void limit_send_buffer(int fd) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || info.tcpi_rtt > kNearUs) return;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kNearBytes, sizeof kNearBytes);
}

/// The one request of TcpStream::execute.
class OneRequest final : public TcpRequests {
 public:
  OneRequest(const SendOp& op, const Part& part, std::uint32_t& sent_count)
      : op_(op), part_(part), sent_count_(sent_count) {}
  const SendOp* next(std::uint32_t ahead) noexcept override { return is_sent() || ahead > 0 ? nullptr : &op_; }
  Part part() const noexcept override { return part_; }
  void sent() noexcept override { sent_count_ = op_.sq_count; }
  void spoiled(ibv_wc_status status) noexcept override { failure = status; }
  bool is_sent() const noexcept { return sent_count_ == op_.sq_count; }
  ibv_wc_status failure = IBV_WC_SUCCESS;

 private:
  const SendOp& op_;
  const Part part_;
  std::uint32_t& sent_count_;
};

}  // namespace

TcpStream::TcpStream(const Initiator& own, const TcpRoute& expected, std::uint32_t opcodes, bool lossy, TcpOwner& owner,
                     Hub& hub)
    : own_(own), expected_(expected), opcodes_(opcodes), lossy_(lossy), owner_(owner), hub_(hub) {
  const MutexLock guard(in_mutex_);
  target_ = target_in(own.process, nullptr, KernelPolicy::kNever);
  target_.qp = &own.shared;
  target_.recv_tag = claim_tag(qpn_index(own.number), Side::kReceive);
  const std::uint64_t turn = target_.qp->turns.load();
  target_.turn = turn + (turn & 1);
}

TcpStream::~TcpStream() {
  if (const int fd = socket(); fd >= 0) ::close(fd);
}

bool TcpStream::take(UniqueFd& socket) noexcept {
  const int fd = socket.get();
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilentMs, sizeof kSilentMs);
  limit_send_buffer(fd);
  int none = -1;
  if (!fd_.compare_exchange_strong(none, fd)) return false;
  socket.release();
  return true;
}

TcpEnd::Wish TcpStream::serve() noexcept {
  const MutexLock guard(in_mutex_);
  visited_.store(false);
  if (stopped_ || socket() < 0) return {};
  drive();
  const bool moved = owner_.move_on();
  const std::uint64_t owed = settle_acks();
  if (!lost()) wait_for_much();
  if (lost()) return moved ? Wish{} : Wish{0, kBusyNs};
  Wish wish;
  if (!parked_) wish.events |= EPOLLIN;
  if (blocked_.load(std::memory_order_relaxed)) wish.events |= EPOLLOUT;
  wish.again_ns = !moved ? kBusyNs : parked_ ? kParkedNs : owed;
  return wish;
}

bool TcpStream::polled_within(std::uint64_t ns) const noexcept {
  const std::uint64_t last = polled_ns_.load(std::memory_order_relaxed);
  return last != 0 && monotonic_ns() - last < ns;
}

void TcpStream::poll() noexcept {
  polled_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  if (!in_mutex_.try_lock()) return;
  if (!stopped_ && socket() >= 0 && !lost()) {
    drive();
    settle_or_leave();
  }
  in_mutex_.unlock();
}

void TcpStream::settle_or_leave() noexcept {
  if (settle_acks() != 0 && !visited_.exchange(true)) hub_.visit_soon(*this);
}

void TcpStream::lose() noexcept {
  lost_.store(true, std::memory_order_release);
  if (const int fd = socket(); fd >= 0) ::shutdown(fd, SHUT_RDWR);
}

void TcpStream::cut() noexcept { lose(); }

void TcpStream::stop() noexcept {
  hub_.remove(*this);
  const MutexLock guard(in_mutex_);
  if (stopped_) return;
  stopped_ = true;
  // Whoever has seen a message may stop before it was acknowledged.
  {
    const MutexLock out(out_mutex_);
    answers_soon_ = 0;
  }
  if (open()) {
    settle_acks();
    note(FrameKind::kLeft, 0, 0);
  }
  const MutexLock out(out_mutex_);
  const int fd = fd_.exchange(-1);
  lost_.store(true, std::memory_order_release);
  if (fd >= 0) ::close(fd);
}

void TcpStream::settle() noexcept {
  { const MutexLock guard(in_mutex_); }
  const MutexLock guard(out_mutex_);
}

Outcome TcpStream::execute(const SendOp& op, const Part& part) noexcept {
  OneRequest one(op, part, sync_sent_);
  const std::uint64_t begin = monotonic_ns();
  while (true) {
    const bool gone = lost();  // before what was answered is looked at: that was stored first
    if (failure() != IBV_WC_SUCCESS) return Outcome::failed(failure());
    if (static_cast<std::int32_t>(answered() - op.sq_count) >= 0 && one.is_sent()) break;
    if (gone && left() && !lossy_) return {Outcome::Kind::kUnreachable};
    if (gone) return lossy_ ? Outcome{} : Outcome::failed(IBV_WC_RETRY_EXC_ERR);
    if (!open()) return lossy_ ? Outcome{} : Outcome{Outcome::Kind::kUnreachable};
    if (!one.is_sent()) pump(one);
    if (one.failure != IBV_WC_SUCCESS) return Outcome::failed(one.failure);
    if (lossy_ && one.is_sent()) break;
    if (waits() != Outcome::Kind::kDone) return {waits()};
    if (in_mutex_.try_lock()) {
      if (!stopped_) {
        drive();
        settle_or_leave();
      }
      in_mutex_.unlock();
    }
    const std::uint64_t waited = monotonic_ns() - begin;
    if (waited > kExecuteNs) return {Outcome::Kind::kUnreachable};
    if (waited > kSpinNs) {
      pollfd entry{socket(), static_cast<short>(one.is_sent() ? POLLIN : POLLIN | POLLOUT), 0};
      ::poll(&entry, 1, 1);
    } else {
      ::sched_yield();
    }
  }
  std::uint32_t bytes = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) bytes += op.sges[i].length;
  return {Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes};
}

}  // namespace gdrperf::softnic
