#include "host/peers/agent.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gpu/bounce.h"
#include "gpu/memory.h"
#include "memory/own_window.h"
#include "shared/sync/thread.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kMostAgents = 512;

/// Between the memfd and this process' memory, by the kernel: what is not there
/// is an EFAULT, no signal, and a sanitizer does not take it for the program's.
int move_bytes(long call, int fd, std::uint64_t address, std::uint64_t bytes, std::uint64_t offset) noexcept {
  for (int tries = 0; bytes > 0;) {
    const long moved = ::syscall(call, fd, reinterpret_cast<void*>(address), bytes, static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    // Pages on their way to the window may refuse the kernel for a moment.
    if (moved < 0 && errno == EFAULT && ++tries < 20) {
      ::usleep(500);
      continue;
    }
    if (moved <= 0) return moved < 0 ? errno : EIO;
    const auto done = static_cast<std::uint64_t>(moved);
    address += done;
    offset += done;
    bytes -= done;
  }
  return 0;
}

int copy_gpu_memory(const CopyRequest& request, int fd) noexcept {
  void* mapped = raw_mmap(nullptr, kAgentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  // Pageable memory would have the driver wait for the GPU, whose kernel may wait for this message.
  std::uint8_t* const pinned = gpu::bounce();
  if (pinned != nullptr && request.fetch == 0) std::memcpy(pinned, mapped, request.length);
  const Piece piece{pinned != nullptr ? pinned : static_cast<std::uint8_t*>(mapped), request.length, nullptr};
  auto* memory = reinterpret_cast<void*>(request.address);
  const int error = request.fetch != 0 ? gpu::copy_from(memory, nullptr, &piece, 1)
                                       : gpu::copy_to(memory, nullptr, &piece, 1);
  if (pinned != nullptr && error == 0 && request.fetch != 0) std::memcpy(mapped, pinned, request.length);
  raw_munmap(mapped, kAgentBytes);
  return error;
}

}  // namespace

int store_bytes(int fd, std::uint64_t address, std::uint64_t bytes, std::uint64_t offset) noexcept {
  if (bytes <= 8) return move_bytes(SYS_pread64, fd, address, bytes, offset);
  // The last byte last: programs look at it.
  const int error = move_bytes(SYS_pread64, fd, address, bytes - 1, offset);
  std::atomic_thread_fence(std::memory_order_release);
  return error != 0 ? error : move_bytes(SYS_pread64, fd, address + bytes - 1, 1, offset + bytes - 1);
}

int fetch_bytes(int fd, std::uint64_t address, std::uint64_t bytes) noexcept {
  return move_bytes(SYS_pwrite64, fd, address, bytes, 0);
}

void Agents::serve(UniqueFd socket, UniqueFd bounce) {
  if (!is_sealed_memory(bounce.get(), kAgentBytes)) return;
  // Control's are not waited on.
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const Connection connection{socket.get(), bounce.get()};
  const MutexLock guard(mutex_);
  if (connections_.size() >= kMostAgents) return;
  connections_.push_back(connection);
  if (start_thread("softnic-agent", [this, connection] { run(connection); }) != 0) {
    connections_.pop_back();
    return;
  }
  socket.release();
  bounce.release();
}

void Agents::run(Connection connection) {
  WireReply welcome;
  welcome.process_id = process_id_;
  CopyRequest request;
  int fds[2];
  bool good = send_packet(connection.socket, &welcome, sizeof welcome, nullptr, 0);
  while (good && receive_packet(connection.socket, &request, sizeof request, fds)) {
    const UniqueFd unexpected[2] = {UniqueFd(fds[0]), UniqueFd(fds[1])};
    CopyReply reply;
    reply.error = copy(request, connection.bounce);
    good = send_packet(connection.socket, &reply, sizeof reply, nullptr, 0);
  }
  const MutexLock guard(mutex_);
  connections_.erase(std::find_if(connections_.begin(), connections_.end(),
                                  [&](const Connection& other) { return other.socket == connection.socket; }));
  ::close(connection.socket);
  ::close(connection.bounce);
}

/// Only to and from memory that is registered under the key of the request.
int Agents::copy(const CopyRequest& request, int bounce) noexcept {
  if (request.region >= kMaxMrs || request.key == 0 || request.length > kAgentBytes) return EINVAL;
  const std::shared_lock guard(copying_);
  const MrShared& region = regions_.known[request.region];
  // The key first: it is written last. That of a window may have been withdrawn.
  if (region.key.load(std::memory_order_acquire) != request.key ||
      regions_.published[request.region].key.load() != request.key) {
    return EFAULT;
  }
  const std::uint64_t offset = request.address - program_address(region);
  if (offset > region.length || request.length > region.length - offset) return EFAULT;
  if (in_gpu(region)) return copy_gpu_memory(request, bounce);
  const std::uint64_t address = region.addr + offset;
  return request.fetch != 0 ? fetch_bytes(bounce, address, request.length)
                            : store_bytes(bounce, address, request.length, 0);
}

void Agents::settle() noexcept { const std::lock_guard guard(copying_); }

void Agents::abandon() {
  for (const Connection& connection : connections_) {
    ::close(connection.socket);
    ::close(connection.bounce);
  }
}

}  // namespace gdrperf::softnic
