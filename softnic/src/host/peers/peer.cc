#include "host/peers/peer.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>

#include <fmt/format.h>

#include "device/device.h"
#include "gpu/driver.h"
#include "gpu/memory.h"
#include "host/process/names.h"
#include "host/process/wire.h"
#include "memory/copy.h"
#include "shared/segment/completion.h"
#include "shared/sync/limited.h"
#include "shared/segment/huge_pages.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

/// No message is longer.
constexpr std::uint64_t kWindowWrap = kMaxMessageBytes;

void* map_shared(int fd, std::uint64_t bytes) {
  void* mapped =
      raw_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) return nullptr;
  ::madvise(mapped, bytes, MADV_DONTFORK);
  ::madvise(mapped, bytes, MADV_DONTDUMP);
  return mapped;
}

constexpr uid_t kNobody = static_cast<uid_t>(-1);

/// Once for each user: a program may try often.
void say_refused(uid_t stranger, const char* by) {
  static Mutex mutex;
  static auto& said = *new std::set<uid_t>();  // never destroyed: threads outlive main()
  const MutexLock guard(mutex);
  if (!said.insert(stranger).second) return;
  say(fmt::format("peer refused: it is a process of user {0}, this one is user {1}'s; refused {2}: both would have to "
                  "allow it, with peers={1} there and peers={0} here in SOFTNIC", stranger, ::geteuid(), by));
}

/// The socket's name has the version, so that one of another is not found by it. Said once; and looked for once a
/// second at most, since the kernel's list is of all sockets, and a process that starts first misses many peers.
void say_other_version(std::uint32_t block) {
  constexpr std::uint64_t kBetweenNs = 1'000'000'000;
  static std::atomic<std::uint64_t> next_ns{0};
  std::uint64_t due = next_ns.load();
  const std::uint64_t now = monotonic_ns();
  if (now < due || !next_ns.compare_exchange_strong(due, now + kBetweenNs)) return;
  for (const std::string& name : names_beginning(kSocketNameStart)) {
    const auto version = version_of_socket(name, block);
    if (!version || *version == kLayoutVersion) continue;
    next_ns.store(~std::uint64_t{0});
    say(fmt::format("no peer: the process of that QP number has another version of the software device (its memory's "
                    "layout is {}, here it is {}): use the same build at both ends", *version, kLayoutVersion));
    return;
  }
}

/// Writing to anything else might wait, or do something.
bool is_eventfd(int fd) {
  char link[64] = {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return fd >= 0 && ::readlink(path.c_str(), link, sizeof link - 1) > 0 &&
         std::strcmp(link, "anon_inode:[eventfd]") == 0;
}

/// The peer's tables may hold any value. Behind the window comes its
/// beginning once more, so that a message that begins in it ends in it.
std::uint8_t* map_window(int fd) {
  void* place = reserve_for_memfd(kWindowBytes + kWindowWrap);
  if (place == nullptr) return nullptr;
  auto* const begin = static_cast<std::uint8_t*>(place);
  constexpr int kFlags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  if (raw_mmap(begin, kWindowBytes, PROT_READ | PROT_WRITE, kFlags, fd, 0) == MAP_FAILED ||
      raw_mmap(begin + kWindowBytes, kWindowWrap, PROT_READ | PROT_WRITE, kFlags, fd, 0) == MAP_FAILED) {
    raw_munmap(begin, kWindowBytes + kWindowWrap);
    return nullptr;
  }
  ::madvise(begin, kWindowBytes + kWindowWrap, MADV_DONTFORK);
  ::madvise(begin, kWindowBytes + kWindowWrap, MADV_DONTDUMP);
  return begin;
}

}  // namespace

std::shared_ptr<Peer> Peer::connect(std::uint32_t block, std::uint64_t own_process_id, const PeerPolicy& policy) {
  std::shared_ptr<Peer> peer(new Peer());
  peer->block_ = block;
  peer->own_process_id_ = own_process_id;
  uid_t refused = kNobody;
  ucred credentials{};
  peer->socket_ = connect_to(socket_name(block), [&](const ucred& found) {
    const bool admitted = is_own_user(found) || policy.admits(found.uid);
    if (admitted) credentials = found;
    if (!admitted) refused = found.uid;
    return admitted;
  });
  if (!peer->socket_ && refused != kNobody) say_refused(refused, "by this one");
  if (!peer->socket_ && refused == kNobody) say_other_version(block);
  if (!peer->socket_) return nullptr;
  peer->pid_ = credentials.pid;
  peer->user_ = credentials.uid;
  if (!is_own_user(credentials)) {
    peer->stranger_ = StrangerLink::greet(peer->socket(), own_process_id, peer->id_);
    if (peer->stranger_ == nullptr) say_refused(credentials.uid, "by the peer");
    return peer->stranger_ != nullptr ? peer : nullptr;
  }

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
  if (reply.error != 0 || !is_sealed_memory(segment_fd.get(), kSegmentBytes)) return nullptr;

  peer->segment_ = static_cast<Segment*>(map_shared(segment_fd.get(), kSegmentBytes));
  if (peer->segment_ == nullptr) {
    say(limited("mmap of a peer's segment", errno));
    return nullptr;
  }
  const SegmentHeader& header = peer->segment_->header;
  if (header.magic.load(std::memory_order_acquire) != kSegmentMagic ||
      header.process_id != reply.process_id) {
    return nullptr;
  }
  peer->id_ = reply.process_id;
  // A peer whose window cannot be mapped is reached by the kernel's copy.
  if (reply.window_bytes == kWindowBytes && is_sealed_memory(window_fd.get(), kWindowBytes)) {
    peer->window_ = map_window(window_fd.get());
  }
  return peer;
}

Peer::~Peer() {
  gpu::close_all_of(this);
  if (segment_ != nullptr) raw_munmap(segment_, kSegmentBytes);
  if (window_ != nullptr) raw_munmap(window_, kWindowBytes + kWindowWrap);
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
  if (stranger_ != nullptr) return;
  if (may_ask && !kernel_refuses()) {
    const bool copies = kernel_refusal(pid_) == 0 || (ask_consent() && kernel_refusal(pid_) == 0);
    const GpuMemory there = segment_->header.gpu_memory.load(std::memory_order_acquire);
    const bool for_gpu = there == GpuMemory::kOwn || (there != GpuMemory::kNone && gpu::driver() == nullptr);
    if (copies && !for_gpu) return;
    if (!copies) kernel_refuses_.store(true, std::memory_order_relaxed);
  }
  const MutexLock guard(agent_mutex_);
  if (agent() != nullptr && !agent()->broken()) return;
  auto link = AgentLink::connect(block_, own_process_id_, id_);
  if (!link) return;
  agent_.store(link.get(), std::memory_order_release);
  agents_.push_back(std::move(link));
}

/// Perhaps the peer has only to say that it is all right.
bool Peer::ask_consent() {
  WireRequest request;
  request.process_id = own_process_id_;
  request.kind = WireKind::kMayCopy;
  WireReply reply;
  int fds[2] = {-1, -1};
  const MutexLock guard(request_mutex_);
  const bool answered = send_packet(socket(), &request, sizeof request, nullptr, 0) &&
                        receive_packet(socket(), &reply, sizeof reply, fds);
  const UniqueFd unexpected[2] = {UniqueFd(fds[0]), UniqueFd(fds[1])};
  return answered;
}

void Peer::abandon() {
  ::close(socket());
  for (const auto& agent : agents_) agent->abandon();
}

void Peer::fetch_channel(std::uint32_t number) {
  if (stranger_ != nullptr) return;
  {
    const MutexLock guard(channel_mutex_);
    if (channels_.count(number) != 0) return;
  }
  WireRequest request;
  request.process_id = own_process_id_;
  request.kind = WireKind::kChannel;
  request.number = number;
  WireReply reply;
  int fds[2] = {-1, -1};
  {
    const MutexLock guard(request_mutex_);
    if (!send_packet(socket(), &request, sizeof request, nullptr, 0) ||
        !receive_packet(socket(), &reply, sizeof reply, fds)) {
      return;
    }
  }
  UniqueFd channel(fds[0]);
  const UniqueFd unexpected(fds[1]);
  if (!is_eventfd(channel.get())) return;
  const MutexLock guard(channel_mutex_);
  channels_[number] = std::move(channel);
}

void Peer::raise(std::uint32_t number) {
  {
    const MutexLock guard(channel_mutex_);
    const auto found = channels_.find(number);
    if (found != channels_.end() && raise_event(found->second.get())) return;
  }
  tell(WireKind::kRaise, number, 0);
}

void Peer::tell(WireKind kind, std::uint32_t number, std::uint32_t event) {
  WireRequest request;
  request.process_id = own_process_id_;
  request.kind = kind;
  request.number = number;
  request.event = event;
  if (stranger_ != nullptr) return;
  // One that does not listen holds up its peers once, for two seconds.
  if (mute_.load(std::memory_order_relaxed)) return;
  if (!send_packet(socket(), &request, sizeof request, nullptr, 0) && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    mute_.store(true, std::memory_order_relaxed);
  }
}

}  // namespace gdrperf::softnic
