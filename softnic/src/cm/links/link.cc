#include "cm/links/link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/wire/message.h"
#include "cm/links/tcp_ports.h"

namespace gdrperf::softnic {
namespace {

/// Descriptors that came with a message; more than one are none of ours, and the kernel has closed those.
UniqueFd descriptor_in(msghdr& message) {
  UniqueFd carried;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(sizeof(int)))
      continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
    carried.reset(fd);
  }
  return carried;
}

}  // namespace

std::shared_ptr<CmLink> CmUnixLink::start(UniqueFd socket, CmLoop& loop, CmReceiver& receiver) {
  auto link = std::make_shared<CmUnixLink>(std::move(socket), loop, receiver);
  const MutexLock guard(link->mutex_);
  link->token_ = loop.watch(link->socket_.get(), EPOLLIN, [weak = std::weak_ptr(link)](std::uint32_t events) {
    if (const auto alive = weak.lock()) alive->handle(events);
  });
  return link;
}

CmUnixLink::CmUnixLink(UniqueFd socket, CmLoop& loop, CmReceiver& receiver)
    : loop_(loop), receiver_(receiver), socket_(std::move(socket)) {}

bool CmUnixLink::try_send(const std::vector<std::uint8_t>& message) {
  ssize_t sent;
  do {
    sent = ::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS);  // gone: its hang-up tells
}

void CmUnixLink::send(const std::vector<std::uint8_t>& message) {
  const MutexLock guard(mutex_);
  if (!socket_) return;
  if (unsent_.empty() && try_send(message)) return;
  if (unsent_.size() >= kMaxUnsent) {
    ::shutdown(socket_.get(), SHUT_RDWR);
    return;
  }
  unsent_.push_back(message);
  loop_.change(token_, socket_.get(), EPOLLIN | EPOLLOUT);
}

void CmUnixLink::flush() {
  const MutexLock guard(mutex_);
  while (!unsent_.empty() && socket_ && try_send(unsent_.front())) unsent_.pop_front();
  if (unsent_.empty() && socket_) loop_.change(token_, socket_.get(), EPOLLIN);
}

bool CmUnixLink::receive_one() {
  std::array<std::uint8_t, kMaxCmBytes + 1> bytes;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  {
    const MutexLock guard(mutex_);
    if (!socket_) return false;
    do {
      got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) return false;
  }
  const auto self = shared_from_this();
  UniqueFd carried = descriptor_in(message);
  if (got > 0 && carried) {
    if (is_cm_handover(bytes.data(), static_cast<std::size_t>(got))) receiver_.handed_over(std::move(carried));
    return true;
  }
  if (got > 0) {
    receiver_.received(self, {bytes.data(), static_cast<std::size_t>(got)});
    return true;
  }
  close();
  receiver_.lost(self);
  return false;
}

void CmUnixLink::handle(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  // Others have their turn as well.
  for (int i = 0; i < kBatch && receive_one(); ++i) {
  }
}

void CmUnixLink::close() {
  const MutexLock guard(mutex_);
  if (!socket_) return;
  loop_.forget(token_, socket_.get());
  socket_.reset();
}

}  // namespace gdrperf::softnic
