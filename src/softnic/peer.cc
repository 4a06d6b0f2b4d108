#include "peer.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "copy.h"
#include "segment.h"

namespace gdrperf::softnic {
namespace {

void set_timeouts(int socket) {
  const timeval limit{2, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void* map_shared(int fd, std::uint64_t bytes) {
  void* mapped =
      raw_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) return nullptr;
  ::madvise(mapped, bytes, MADV_DONTFORK);
  ::madvise(mapped, bytes, MADV_DONTDUMP);
  return mapped;
}

}  // namespace

UniqueFd connect_to(std::uint32_t block) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  set_timeouts(socket.get());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = socket_name(block);
  std::memcpy(address.sun_path, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return {};
  return socket;
}

std::shared_ptr<Peer> Peer::connect(std::uint32_t block, std::uint64_t own_process_id) {
  std::shared_ptr<Peer> peer(new Peer());
  peer->block_ = block;
  peer->own_process_id_ = own_process_id;
  peer->socket_ = connect_to(block);
  if (!peer->socket_) return nullptr;

  WireRequest request;
  request.process_id = own_process_id;
  WireReply reply;
  int fds[2];
  if (!send_packet(peer->socket(), &request, sizeof request, nullptr, 0) ||
      !receive_packet(peer->socket(), &reply, sizeof reply, fds)) {
    return nullptr;
  }
  const UniqueFd segment_fd(fds[0]);
  const UniqueFd window_fd(fds[1]);
  if (reply.error != 0 || !segment_fd) return nullptr;

  peer->segment_ = static_cast<Segment*>(map_shared(segment_fd.get(), kSegmentBytes));
  if (peer->segment_ == nullptr) return nullptr;
  const SegmentHeader& header = peer->segment_->header;
  if (header.magic.load(std::memory_order_acquire) != kSegmentMagic ||
      header.process_id != reply.process_id) {
    return nullptr;
  }
  // A peer whose window cannot be mapped is reached by the kernel's copy.
  if (window_fd && reply.window_bytes != 0) {
    peer->window_ = static_cast<std::uint8_t*>(map_shared(window_fd.get(), reply.window_bytes));
    peer->window_bytes_ = reply.window_bytes;
  }
  ucred credentials{};
  socklen_t length = sizeof credentials;
  ::getsockopt(peer->socket(), SOL_SOCKET, SO_PEERCRED, &credentials, &length);
  peer->pid_ = credentials.pid;
  return peer;
}

Peer::~Peer() {
  if (segment_ != nullptr) raw_munmap(segment_, kSegmentBytes);
  if (window_ != nullptr) raw_munmap(window_, window_bytes_);
}

bool Peer::gone() noexcept {
  if (dead()) return true;
  pollfd entry{socket(), POLLRDHUP, 0};
  if (::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    mark_dead();
  }
  return dead();
}

void Peer::find_way(bool may_ask) {
  if (may_ask && !kernel_refuses()) {
    if (kernel_refusal(pid_) == 0) return;
    kernel_refuses_.store(true, std::memory_order_relaxed);
  }
  const std::lock_guard guard(agent_mutex_);
  if (agent() != nullptr && !agent()->broken()) return;
  auto link = AgentLink::connect(block_, own_process_id_, segment_->header.process_id);
  if (!link) return;
  agent_.store(link.get(), std::memory_order_release);
  agents_.push_back(std::move(link));
}

void Peer::abandon() {
  ::close(socket());
  for (const auto& agent : agents_) agent->abandon();
}

void Peer::fetch_channel(std::uint32_t number) {
  {
    const std::lock_guard guard(channel_mutex_);
    if (channels_.count(number) != 0) return;
  }
  WireRequest request;
  request.process_id = own_process_id_;
  request.kind = WireKind::kChannel;
  request.number = number;
  WireReply reply;
  int fds[2] = {-1, -1};
  {
    const std::lock_guard guard(request_mutex_);
    if (!send_packet(socket(), &request, sizeof request, nullptr, 0) ||
        !receive_packet(socket(), &reply, sizeof reply, fds)) {
      return;
    }
  }
  UniqueFd channel(fds[0]);
  if (!channel) return;
  const std::lock_guard guard(channel_mutex_);
  channels_[number] = std::move(channel);
}

void Peer::raise(std::uint32_t number) {
  {
    const std::lock_guard guard(channel_mutex_);
    const auto found = channels_.find(number);
    if (found != channels_.end()) {
      const std::uint64_t one = 1;
      if (::write(found->second.get(), &one, sizeof one) == sizeof one) return;
    }
  }
  tell(WireKind::kRaise, number, 0);
}

void Peer::tell(WireKind kind, std::uint32_t number, std::uint32_t event) {
  WireRequest request;
  request.process_id = own_process_id_;
  request.kind = kind;
  request.number = number;
  request.event = event;
  send_packet(socket(), &request, sizeof request, nullptr, 0);
}

}  // namespace gdrperf::softnic
