#include "cm/wire/claim.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "cm/wire/message.h"
#include "device/device.h"
#include "host/process/names.h"

namespace gdrperf::softnic {
namespace {

constexpr int kPortBacklog = 1024;

std::string port_prefix(std::uint16_t port_space, std::uint16_t port) {
  return fmt::format("{}{}.{:x}.{}.", kCmNameStart, kCmVersion, port_space, port);
}

/// Of one family, as a name has it. Whoever has both is "any".
const char* any_of(sa_family_t family) { return family == AF_INET6 ? "any6" : "any4"; }

std::string claim_text(const CmAddress& address, CmFamilies families) {
  return !address.any() || families == CmFamilies::kBoth ? address.text() : any_of(address.family);
}

/// Written as in names: an address of the one is meant by the other, whose it is not.
bool means(const std::string& any, const std::string& address) {
  if (any == "any") return true;
  constexpr std::size_t kIpv4Digits = 8;
  const bool ipv4 = address == "any4" || address.size() == kIpv4Digits;
  return any == (ipv4 ? "any4" : "any6");
}

/// Users that any of the devices has to do with.
bool admits_user(const ucred& credentials) {
  if (is_own_user(credentials)) return true;
  return std::any_of(devices().begin(), devices().end(),
                     [&](const auto& device) { return device->config.peers.admits(credentials.uid); });
}

/// Somebody of this user has that port with an address that collides. 0, or what to say.
int port_collision(const std::string& prefix, const std::string& address) {
  for (const std::string& name : names_beginning(prefix)) {
    const std::string other = name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size());
    const bool any = other.starts_with("any") || address.starts_with("any");
    const bool same = other == address || address == "any" || means(other, address) || means(address, other);
    if (same && is_taken(prefix + other)) return any ? EADDRNOTAVAIL : EADDRINUSE;
  }
  return 0;
}

}  // namespace

UniqueFd claim_port(std::uint16_t port_space, const CmAddress& address, CmFamilies families) {
  const std::string prefix = port_prefix(port_space, address.port);
  const std::string text = claim_text(address, families);
  if (const int error = port_collision(prefix, text); error != 0) {
    errno = error;
    return {};
  }
  std::string name = prefix + text;
  UniqueFd socket = listen_at(name, kPortBacklog);
  // A stranger has the name: beside it.
  if (!socket && errno == EADDRINUSE && !is_taken(name)) socket = listen_beside(name, kPortBacklog);
  return socket;
}

UniqueFd claim_any_port(std::uint16_t port_space, CmAddress& address, CmFamilies families) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    address.port = next_free_port();
    UniqueFd socket = claim_port(port_space, address, families);
    if (socket || (errno != EADDRINUSE && errno != EADDRNOTAVAIL)) return socket;
  }
  return {};
}

UniqueFd connect_port(std::uint16_t port_space, const CmAddress& address) {
  const std::string prefix = port_prefix(port_space, address.port);
  UniqueFd socket = connect_to(prefix + address.text(), admits_user);
  if (!socket) socket = connect_to(prefix + any_of(address.family), admits_user);
  if (!socket) socket = connect_to(prefix + "any", admits_user);
  return socket;
}

bool admits_process(int socket) {
  ucred credentials{};
  return peer_credentials(socket, credentials) && admits_user(credentials);
}

std::uint16_t next_free_port() {
  constexpr std::uint32_t kFirst = 32768, kCount = 28232;
  static std::atomic<std::uint32_t> next = [] {
    std::uint32_t start = 0;
    return ::getrandom(&start, sizeof start, 0) == sizeof start ? start : 0;
  }();
  return static_cast<std::uint16_t>(kFirst + next.fetch_add(1) % kCount);
}

}  // namespace gdrperf::softnic
