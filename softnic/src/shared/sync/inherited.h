#pragma once

#include <sys/socket.h>

#include <functional>
#include <string_view>
#include <vector>

/// Sockets that a child process has from fork() and that no object of it knows: another thread of the parent had
/// just accepted them, or was connecting them, and they stood on its stack. As long as the child holds one open,
/// the process at the other end does not see that the parent has died.
///
/// Only for the child's side of fork(), where no other thread runs.
namespace gdrperf::softnic {

/// The address of one end of a socket; `length` is 0 where it has none.
struct SocketEnd {
  sockaddr_storage address;
  socklen_t length;

  /// Is this an abstract name of a Unix socket that begins with `start`?
  bool name_begins_with(std::string_view start) const noexcept;
  /// The port of an IPv4 or IPv6 address, in host order; 0 for other families.
  unsigned port() const noexcept;
};

/// Closes every open socket of this process that `is_own` picks by the addresses of its own and of its peer's end.
void close_inherited_sockets(const std::function<bool(const SocketEnd& own, const SocketEnd& peer)>& is_own);

}  // namespace gdrperf::softnic
