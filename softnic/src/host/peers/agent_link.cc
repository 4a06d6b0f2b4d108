#include "host/peers/agent_link.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "host/process/names.h"
#include "gpu/message.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::chrono::seconds kAgentPatience{4};

CopyRequest request_for(const Regions& regions, const MrShared& region, std::uint64_t address) {
  CopyRequest request;
  request.address = address;
  request.region = regions.index_of(region);
  request.key = region.key.load(std::memory_order_relaxed);
  return request;
}

/// Until `fd` has something to read. False: not in time.
bool wait_readable(int fd) noexcept {
  const auto end = std::chrono::steady_clock::now() + kAgentPatience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

std::unique_ptr<AgentLink> AgentLink::connect(std::uint32_t block, std::uint64_t own_id, std::uint64_t peer_id) {
  std::unique_ptr<AgentLink> link(new AgentLink());
  const UniqueFd memory = sealed_memory("softnic-agent", kAgentBytes);
  if (!memory) return nullptr;
  void* mapped = raw_mmap(nullptr, kAgentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  ::madvise(mapped, kAgentBytes, MADV_DONTFORK);
  link->bounce_ = static_cast<std::uint8_t*>(mapped);
  link->socket_ = connect_to(socket_name(block), is_own_user);
  if (!link->socket_) return nullptr;
  WireRequest request;
  request.process_id = own_id;
  request.kind = WireKind::kAgent;
  const int shared = memory.get();
  WireReply reply;
  int fds[2];
  if (!send_packet(link->socket_.get(), &request, sizeof request, &shared, 1) ||
      !receive_packet(link->socket_.get(), &reply, sizeof reply, fds) || reply.process_id != peer_id) {
    return nullptr;
  }
  return link;
}

AgentLink::~AgentLink() {
  if (bounce_ != nullptr) raw_munmap(bounce_, kAgentBytes);
}

int AgentLink::ask(const CopyRequest& request) noexcept {
  CopyReply reply;
  int fds[2];
  if (send_packet(socket_.get(), &request, sizeof request, nullptr, 0) && wait_readable(socket_.get()) &&
      receive_packet(socket_.get(), &reply, sizeof reply, fds)) {
    return reply.error;
  }
  // An answer that came now would be taken for that of the next request.
  socket_.reset();
  return ESRCH;
}

int AgentLink::copy(CopyRequest request, const Pieces& pieces) noexcept {
  Pieces rest = pieces;
  const MutexLock guard(mutex_);
  while (rest.total > 0) {
    Pieces part;
    split_front(rest, std::min(rest.total, kAgentBytes), part);
    if (!socket_) return ESRCH;
    if (request.fetch == 0 && !copy_out(bounce_, part)) return EIO;
    request.length = part.total;
    if (const int error = ask(request); error != 0) return error;
    if (request.fetch != 0 && !copy_in(bounce_, part)) return EIO;
    request.address += part.total;
  }
  return 0;
}

int AgentLink::copy_to(const Regions& regions, const MrShared& region, std::uint64_t address,
                       const Pieces& from) noexcept {
  return copy(request_for(regions, region, address), from);
}

int AgentLink::copy_from(const Regions& regions, const MrShared& region, std::uint64_t address,
                         const Pieces& to) noexcept {
  CopyRequest request = request_for(regions, region, address);
  request.fetch = 1;
  return copy(request, to);
}

}  // namespace gdrperf::softnic
