#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gdrperf/base/unique_fd.h"
#include "remote/frame.h"

/// Start of a TCP connection: each end proves to the other that it has the secret.
namespace gdrperf::softnic {

/// QP that a connection is for, and its owner.
struct TcpRoute {
  ibv_gid from{};
  ibv_gid to{};
  std::uint32_t from_qpn = 0;
  std::uint32_t to_qpn = 0;
  std::uint8_t type = 0;
};

/// Connects, greets and proves. Blocks up to `patience_ms`. Empty: refused, and `why`
/// says what for; `refusal` is kNobody where it may be worth to come again.
UniqueFd connect_over_tcp(const TcpRoute& route, std::uint16_t port, const std::string& netdev,
                          const std::string& secret, int patience_ms, TcpRefusal& refusal, std::string& why);

/// The hello of a connection that was accepted: read, or only looked at, so that it can
/// still be read by the process that it is for. False: none came, or it is none;
/// one of another version was told so.
enum class HelloRead { kTake, kPeek };
bool receive_hello(int socket, TcpHello& hello, HelloRead how);
void refuse_hello(int socket, TcpRefusal refusal);
/// Lets the other end prove, and proves. False: it could not.
bool welcome(int socket, const TcpHello& hello, const std::string& secret);

/// In seconds, for sockets that are served by a thread of their own.
void limit_waits(int socket, int milliseconds);

}  // namespace gdrperf::softnic
