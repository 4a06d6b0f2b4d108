#include "host/process/names.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace gdrperf::softnic {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr int kSeqPacket = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct Address {
  explicit Address(const std::string& name) {
    to.sun_family = AF_UNIX;
    const std::size_t size = std::min(name.size(), sizeof to.sun_path - 1);
    std::memcpy(to.sun_path + 1, name.data(), size);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&to); }
  sockaddr_un to{};
  socklen_t length;
};

/// Name that the kernel gives to users that this user namespace does not know.
uid_t overflow_user() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t user = 65534;
  file >> user;
  return user;
}

/// This user namespace knows every user.
bool knows_all_users() {
  std::ifstream file("/proc/self/uid_map");
  std::uint64_t inside = 1;
  std::uint64_t outside = 1;
  std::uint64_t count = 0;
  // Without /proc: nothing is known of a namespace either.
  return !(file >> inside >> outside >> count) || (inside == 0 && outside == 0 && count == 0xffffffffu);
}

enum class Try { kDone, kRefused, kBusy };

Try try_connect(const std::string& name, const std::function<bool(const ucred&)>& admitted, UniqueFd& socket) {
  UniqueFd fresh(::socket(AF_UNIX, kSeqPacket, 0));
  if (!fresh) return Try::kRefused;
  const Address address(name);
  if (::connect(fresh.get(), address.get(), address.length) != 0) return errno == EAGAIN ? Try::kBusy : Try::kRefused;
  ucred credentials{};
  if (!peer_credentials(fresh.get(), credentials) || !admitted(credentials)) return Try::kRefused;
  socket = std::move(fresh);
  return Try::kDone;
}

Try try_all(const std::string& name, const std::function<bool(const ucred&)>& admitted, const std::string& except,
            std::chrono::steady_clock::time_point end, UniqueFd& socket) {
  Try result = Try::kRefused;
  if (name != except) result = try_connect(name, admitted, socket);
  if (result == Try::kDone) return result;
  // Only now: reading that table takes time where there are many sockets.
  for (const std::string& other : names_beginning(name + ".")) {
    if (other == except) continue;
    const Try beside = try_connect(other, admitted, socket);
    if (beside == Try::kDone) return beside;
    if (beside == Try::kBusy) result = beside;
    if (std::chrono::steady_clock::now() > end) break;
  }
  return result;
}

UniqueFd bound_and_listening(const std::string& name, int backlog) {
  UniqueFd socket(::socket(AF_UNIX, kSeqPacket, 0));
  const Address address(name);
  if (!socket || ::bind(socket.get(), address.get(), address.length) != 0 || ::listen(socket.get(), backlog) != 0) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

}  // namespace

bool peer_credentials(int socket, ucred& credentials) noexcept {
  static const uid_t unknown = knows_all_users() ? static_cast<uid_t>(-1) : overflow_user();
  socklen_t length = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 && credentials.uid != unknown;
}

bool is_own_user(const ucred& credentials) noexcept { return credentials.uid == ::geteuid(); }

UniqueFd listen_at(const std::string& name, int backlog) { return bound_and_listening(name, backlog); }

UniqueFd listen_beside(std::string& name, int backlog) {
  std::uint64_t part = 0;
  if (::getrandom(&part, sizeof part, 0) != sizeof part) return {};
  name += fmt::format(".{:016x}", part);
  return bound_and_listening(name, backlog);
}

UniqueFd connect_to(const std::string& name, const std::function<bool(const ucred&)>& admitted) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  UniqueFd socket;
  Try result = try_all(name, admitted, {}, end, socket);
  while (result == Try::kBusy && std::chrono::steady_clock::now() < end) {
    ::usleep(500);
    result = try_all(name, admitted, {}, end, socket);
  }
  if (result != Try::kDone) return {};
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const timeval limit{2, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return socket;
}

std::vector<std::string> names_beginning(const std::string& start) {
  std::vector<std::string> found;
  std::ifstream table("/proc/self/net/unix");
  const std::string wanted = " @" + start;
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(wanted);
    if (at != std::string::npos) found.push_back(line.substr(at + 2));
  }
  return found;
}

bool is_taken(const std::string& name, const std::string& except) {
  UniqueFd socket;
  return try_all(name, is_own_user, except, std::chrono::steady_clock::now() + kPatience, socket) == Try::kDone;
}

}  // namespace gdrperf::softnic
