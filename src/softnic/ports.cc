#include "ports.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "control.h"
#include "gdrperf/base/error.h"
#include "segment.h"
#include "wire.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kPortBytes = (sizeof(PortShared) + 4095) & ~std::size_t{4095};

struct PortAddress {
  sockaddr_un name{};
  socklen_t length;

  explicit PortAddress(const std::string& device) {
    name.sun_family = AF_UNIX;
    const std::string text =
        std::string(1, '\0') + fmt::format("gdrperf-softnic-port.{}.{}.{}", kLayoutVersion, ::geteuid(), device);
    std::memcpy(name.sun_path, text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

UniqueFd new_memory() {
  UniqueFd memory(::memfd_create("softnic-port", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(kPortBytes)) != 0) {
    throw call_error("memfd_create", errno, "softnic");
  }
  return memory;
}

UniqueFd connect_to_owner(const PortAddress& address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  const timeval limit{2, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), address.get(), address.length) != 0) return {};
  return socket;
}

/// The memfd that the owner sends; an empty one when it is none of ours.
UniqueFd receive_memory(int socket) {
  std::uint64_t magic = 0;
  int fds[2];
  if (!receive_packet(socket, &magic, sizeof magic, fds)) return {};
  UniqueFd memory(fds[0]);
  const UniqueFd other(fds[1]);
  struct stat status;
  if (magic != kPortMagic || !memory || ::fstat(memory.get(), &status) != 0 ||
      status.st_size < static_cast<off_t>(kPortBytes)) {
    return {};
  }
  return memory;
}

}  // namespace

PortShared& Ports::get(const std::string& name) {
  const std::lock_guard opening(opening_);
  {
    const std::lock_guard guard(mutex_);
    for (Port& port : ports_) {
      if (port.name == name) return *port.shared;
    }
  }
  Port port;
  port.name = name;
  join(port);
  const std::lock_guard guard(mutex_);
  ports_.push_back(std::move(port));
  Port& kept = ports_.back();
  if (kept.listener) control_.watch_fd(kept.listener.get());
  if (kept.owner) control_.watch_fd(kept.owner.get());
  return *kept.shared;
}

void Ports::join(Port& port) {
  const PortAddress address(port.name);
  for (int tries = 0; tries < 10; ++tries) {
    UniqueFd socket = connect_to_owner(address);
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
  const PortAddress address(port.name);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::bind(socket.get(), address.get(), address.length) != 0 || ::listen(socket.get(), 64) != 0) {
    return false;
  }
  port.listener = std::move(socket);
  return true;
}

/// The address stays when another memfd takes the place.
void Ports::map(Port& port, UniqueFd memory) {
  const int fixed = port.shared != nullptr ? MAP_FIXED : 0;
  void* mapped = raw_mmap(port.shared, kPortBytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, memory.get(), 0);
  if (mapped == MAP_FAILED) throw call_error("mmap of a port", errno, "softnic");
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
    control_.watch_fd(port.listener.get());
    return;
  }
  // Answered later: the successor's thread may be in here as well.
  port.owner = connect_to_owner(PortAddress(port.name));
  if (port.owner) control_.watch_fd(port.owner.get());
}

void Ports::accept_client(Port& port) {
  UniqueFd client(::accept4(port.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client) return;
  ucred credentials{};
  socklen_t length = sizeof credentials;
  ::getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length);
  const int memory = port.memory.get();
  if (credentials.uid != ::geteuid() || !send_packet(client.get(), &kPortMagic, sizeof kPortMagic, &memory, 1)) {
    return;
  }
  control_.watch_fd(client.get());
  port.clients.push_back(std::move(client));
}

bool Ports::handle(int fd) {
  const std::lock_guard guard(mutex_);
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
