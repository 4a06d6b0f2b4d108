#include "host/peers/stranger.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/process/local.h"
#include "host/process/names.h"
#include "shared/sync/thread.h"
#include "host/process/wire.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

/// The two ends of a connection between users: sending and receiving requests.
namespace gdrperf::softnic {
namespace {

constexpr int kPatienceMs = 5000;
constexpr int kMostServed = 64;
/// Gives back the memfd's memory that a larger message took.
constexpr std::uint64_t kKeepBytes = 8u << 20;

bool comes_in_time(int fd) noexcept {
  pollfd entry{fd, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&entry, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

void close_both(int (&fds)[2]) {
  for (const int fd : fds) {
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

bool admits(const ucred& credentials) {
  if (is_own_user(credentials)) return true;
  return std::any_of(devices().begin(), devices().end(),
                     [&](const auto& device) { return device->config.peers.admits(credentials.uid); });
}

std::unique_ptr<StrangerLink> StrangerLink::greet(int socket, std::uint64_t own_id, std::uint64_t& peer_id) {
  std::unique_ptr<StrangerLink> link(new StrangerLink());
  link->socket_ = socket;
  link->shared_ = sealed_memory("softnic-stranger", kStrangerBytes);
  if (!link->shared_) return nullptr;
  void* mapped =
      raw_mmap(nullptr, kStrangerBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, link->shared_.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  link->memory_ = static_cast<std::uint8_t*>(mapped);
  ::madvise(mapped, kStrangerBytes, MADV_DONTFORK);
  ::madvise(mapped, kStrangerBytes, MADV_DONTDUMP);
  WireRequest request;
  request.process_id = own_id;
  request.kind = WireKind::kStranger;
  const int shared = link->shared_.get();
  WireReply reply;
  int fds[2];
  if (!send_packet(socket, &request, sizeof request, &shared, 1) ||
      !receive_packet(socket, &reply, sizeof reply, fds)) {
    return nullptr;
  }
  close_both(fds);
  peer_id = reply.process_id;
  return reply.error == 0 ? std::move(link) : nullptr;
}

StrangerLink::~StrangerLink() {
  if (memory_ != nullptr) raw_munmap(memory_, kStrangerBytes);
}

bool StrangerLink::ask(const StrangerRequest& request, StrangerReply& reply) noexcept {
  int fds[2] = {-1, -1};
  broken_ = broken_ || !send_packet(socket_, &request, sizeof request, nullptr, 0) || !comes_in_time(socket_) ||
            !receive_packet(socket_, &reply, sizeof reply, fds);
  // A late answer would be taken for that of the next request.
  if (broken_) return false;
  close_both(fds);
  if (request.total > kKeepBytes && request.opcode != IBV_WR_RDMA_READ) {
    ::fallocate(shared_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kKeepBytes),
                static_cast<off_t>(kStrangerBytes - kKeepBytes));
  }
  return true;
}

void Strangers::serve(UniqueFd socket, std::uint32_t user) {
  if (served_.fetch_add(1) >= kMostServed) {
    --served_;
    return;
  }
  const int fd = socket.get();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  if (start_thread("softnic-user", [this, fd, user] { run(fd, user); }) == 0) {
    socket.release();
  } else {
    --served_;
  }
}

void Strangers::run(int socket, std::uint32_t user) {
  const UniqueFd owned(socket);
  WireRequest greeting;
  int fds[2] = {-1, -1};
  const bool greeted = comes_in_time(socket) && receive_packet(socket, &greeting, sizeof greeting, fds);
  const UniqueFd memory(fds[0]);
  const UniqueFd unexpected(fds[1]);
  if (greeted && greeting.kind == WireKind::kStranger && is_sealed_memory(memory.get(), kStrangerBytes)) {
    WireReply welcome;
    welcome.process_id = process_id_;
    StrangerRequest request;
    bool good = send_packet(socket, &welcome, sizeof welcome, nullptr, 0);
    while (good && receive_packet(socket, &request, sizeof request, fds)) {
      close_both(fds);
      const StrangerReply reply = execute(request, memory.get(), user);
      good = send_packet(socket, &reply, sizeof reply, nullptr, 0);
    }
  }
  --served_;
}

StrangerReply Strangers::execute(const StrangerRequest& request, int memory, std::uint32_t user) {
  StrangerReply reply;
  reply.kind = static_cast<std::uint32_t>(Outcome::Kind::kUnreachable);
  const MutexLock guard(mutex_);
  const auto found = qps_.find(qpn_index(request.to_qpn));
  if (found == qps_.end()) return reply;
  LocalQp& qp = *found->second;
  if (qp.qp_number() != request.to_qpn || !qp.device().config.peers.admits(user)) return reply;
  const Outcome outcome = qp.serve_stranger(request, memory);
  reply.kind = static_cast<std::uint32_t>(outcome.kind);
  reply.status = static_cast<std::uint32_t>(outcome.status);
  reply.min_rnr_timer = qp.rnr_timer();
  return reply;
}

void Strangers::enroll(LocalQp& qp, std::uint32_t index) {
  const MutexLock guard(mutex_);
  qps_[index] = &qp;
}

void Strangers::strike(std::uint32_t index) {
  const MutexLock guard(mutex_);
  qps_.erase(index);
}

}  // namespace gdrperf::softnic
