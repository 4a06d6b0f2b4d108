#include "host/process/ports.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "host/process/names.h"
#include "host/process/wire.h"
#include "shared/sync/limited.h"
#include "shared/segment/sealed.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kPortBytes = (sizeof(PortShared) + 4095) & ~std::size_t{4095};

std::string socket_name(const std::string& device) {
  return fmt::format("{}{}.{}.{}", kPortNameStart, kLayoutVersion, ::geteuid(), device);
}

UniqueFd new_memory() {
  UniqueFd memory = sealed_memory("softnic-port", kPortBytes);
  if (!memory) throw CallFailure("memfd_create", errno);
  return memory;
}

UniqueFd connect_to_owner(const std::string& port) {
  return connect_to(socket_name(port), is_own_user);
}

/// The memfd that the owner sends; an empty one when it is none of ours.
UniqueFd receive_memory(int socket) {
  std::uint64_t magic = 0;
  int fds[2];
  if (!receive_packet(socket, &magic, sizeof magic, fds)) return {};
  UniqueFd memory(fds[0]);
  const UniqueFd other(fds[1]);
  if (magic != kPortMagic || !is_sealed_memory(memory.get(), kPortBytes)) return {};
  return memory;
}

}  // namespace

PortShared& Ports::get(const std::string& name) {
  const MutexLock opening(opening_);
  {
    const MutexLock guard(mutex_);
    for (Port& port : ports_) {
      if (port.name == name) return *port.shared;
    }
  }
  Port port;
  port.name = name;
  join(port);
  const MutexLock guard(mutex_);
  ports_.push_back(std::move(port));
  Port& kept = ports_.back();
  if (kept.listener) watch_.watch_fd(kept.listener.get());
  if (kept.owner) watch_.watch_fd(kept.owner.get());
  return *kept.shared;
}

void Ports::join(Port& port) {
  for (int tries = 0; tries < 10; ++tries) {
    UniqueFd socket = connect_to_owner(port.name);
    if (!socket) {
      map(port, new_memory());
      if (found(port)) return;
      continue;
    }
    UniqueFd memory = receive_memory(socket.get());
    if (!memory) continue;
    map(port, std::move(memory));
    port.owner = std::move(socket);
    return;
  }
  if (port.shared == nullptr) map(port, new_memory());
}

bool Ports::found(Port& port) {
  std::string name = socket_name(port.name);
  port.listener = listen_at(name, 64);
  if (port.listener || errno != EADDRINUSE) return static_cast<bool>(port.listener);
  // One of this user's that was quicker, or another user who has no business there.
  if (is_taken(name)) return false;
  UniqueFd beside = listen_beside(name, 64);
  if (!beside) return false;
  if (!is_taken(socket_name(port.name), name)) {
    port.listener = std::move(beside);
    return true;
  }
  // Two at once: neither, and again after a while that is not the same for both.
  beside.reset();
  std::uint16_t wait_us = 0;
  [[maybe_unused]] const auto got = ::getrandom(&wait_us, sizeof wait_us, 0);
  ::usleep(wait_us);
  return false;
}

/// The address stays when another memfd takes the place.
void Ports::map(Port& port, UniqueFd memory) {
  const int fixed = port.shared != nullptr ? MAP_FIXED : 0;
  void* mapped = raw_mmap(port.shared, kPortBytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, memory.get(), 0);
  if (mapped == MAP_FAILED) throw CallFailure("mmap of a port", errno);
  ::madvise(mapped, kPortBytes, MADV_DONTFORK);
  auto* fresh = static_cast<PortShared*>(mapped);
  fresh->magic.store(kPortMagic);
  port.shared = fresh;
  port.memory = std::move(memory);
}

/// The owner is gone. Its successor keeps the memory; a newcomer that was
/// quicker has begun with new memory, which is then everybody's.
void Ports::take_over(Port& port) {
  port.owner.reset();
  if (found(port)) {
    watch_.watch_fd(port.listener.get());
    return;
  }
  // Answered later: the successor's thread may be in here as well.
  port.owner = connect_to_owner(port.name);
  if (port.owner) watch_.watch_fd(port.owner.get());
}

void Ports::accept_client(Port& port) {
  UniqueFd client(::accept4(port.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client) return;
  ucred credentials{};
  const int memory = port.memory.get();
  if (!peer_credentials(client.get(), credentials) || !is_own_user(credentials) ||
      !send_packet(client.get(), &kPortMagic, sizeof kPortMagic, &memory, 1)) {
    return;
  }
  watch_.watch_fd(client.get());
  port.clients.push_back(std::move(client));
}

bool Ports::handle(int fd) {
  const MutexLock guard(mutex_);
  for (Port& port : ports_) {
    if (port.listener.get() == fd) {
      accept_client(port);
      return true;
    }
    if (port.owner.get() == fd) {
      if (UniqueFd memory = receive_memory(fd)) {
        map(port, std::move(memory));
      } else {
        take_over(port);
      }
      return true;
    }
    const auto client = std::find_if(port.clients.begin(), port.clients.end(),
                                     [fd](const UniqueFd& one) { return one.get() == fd; });
    if (client != port.clients.end()) {
      port.clients.erase(client);  // it only ever hangs up
      return true;
    }
  }
  return false;
}

void Ports::abandon() {
  for (Port& port : ports_) {
    port.memory.reset();
    port.listener.reset();
    port.owner.reset();
    port.clients.clear();
  }
}

}  // namespace gdrperf::softnic
