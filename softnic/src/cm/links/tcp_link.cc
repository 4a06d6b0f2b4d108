#include "cm/links/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "cm/wire/message.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kLengthBytes = 2;
/// A host that is gone takes its connections with it after this.
constexpr int kGoneMs = 10'000;

/// Keepalive, so that a host that just vanished is noticed where nothing is said.
void watch_over(int socket) {
  const int on = 1;
  const int seconds = 5;
  const int tries = 2;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kGoneMs, sizeof kGoneMs);
}

}  // namespace

std::shared_ptr<CmLink> CmTcpLink::start(UniqueFd socket, CmLoop& loop, CmReceiver& receiver) {
  watch_over(socket.get());
  auto link = std::make_shared<CmTcpLink>(std::move(socket), loop, receiver);
  const MutexLock guard(link->mutex_);
  link->token_ = loop.watch(link->socket_.get(), EPOLLIN, [weak = std::weak_ptr(link)](std::uint32_t events) {
    if (const auto alive = weak.lock()) alive->handle(events);
  });
  return link;
}

CmTcpLink::CmTcpLink(UniqueFd socket, CmLoop& loop, CmReceiver& receiver)
    : loop_(loop), receiver_(receiver), socket_(std::move(socket)) {}

void CmTcpLink::send(const std::vector<std::uint8_t>& message) {
  const MutexLock guard(mutex_);
  if (!socket_ || message.size() > kMaxCmBytes) return;
  if (unsent_.size() > kMaxUnsent) {
    ::shutdown(socket_.get(), SHUT_RDWR);
    return;
  }
  unsent_ += static_cast<char>(message.size() & 0xff);
  unsent_ += static_cast<char>(message.size() >> 8);
  unsent_.append(reinterpret_cast<const char*>(message.data()), message.size());
  flush();
}

void CmTcpLink::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) unsent_.clear();  // gone: its hang-up tells
    if (sent < 0) break;
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  loop_.change(token_, socket_.get(), unsent_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

/// True: something came.
bool CmTcpLink::receive() {
  std::array<std::uint8_t, 4096> bytes;
  ssize_t got;
  {
    const MutexLock guard(mutex_);
    if (!socket_) return false;
    do {
      got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) return false;
  }
  if (got > 0) in_.insert(in_.end(), bytes.data(), bytes.data() + got);
  if (got > 0 && take_messages()) return true;
  close();
  receiver_.lost(shared_from_this());
  return false;
}

/// False: what comes is no message.
bool CmTcpLink::take_messages() {
  const auto self = shared_from_this();
  std::size_t begin = 0;
  while (in_.size() - begin >= kLengthBytes) {
    const std::size_t length = in_[begin] | static_cast<std::size_t>(in_[begin + 1]) << 8;
    if (length == 0 || length > kMaxCmBytes) return false;
    if (in_.size() - begin < kLengthBytes + length) break;
    receiver_.received(self, std::span(in_).subspan(begin + kLengthBytes, length));
    begin += kLengthBytes + length;
  }
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(begin));
  return true;
}

void CmTcpLink::handle(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    const MutexLock guard(mutex_);
    if (socket_) flush();
  }
  // Others have their turn as well.
  receive();
}

void CmTcpLink::close() {
  const MutexLock guard(mutex_);
  if (!socket_) return;
  loop_.forget(token_, socket_.get());
  socket_.reset();
}

}  // namespace gdrperf::softnic
