#include "remote/greeting.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "remote/address.h"
#include "remote/secret.h"

namespace gdrperf::softnic {
namespace {

bool send_whole(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool receive_whole(int socket, void* bytes, std::size_t size, int flags = 0) {
  ssize_t got;
  do {
    got = ::recv(socket, bytes, size, MSG_WAITALL | flags);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(size);
}

template <typename T>
bool has_magic(const T& message) {
  return std::memcmp(message.magic, kTcpMagic, sizeof kTcpMagic) == 0;
}

TcpAnswer an_answer(TcpRefusal refusal) {
  TcpAnswer answer{};
  std::memcpy(answer.magic, kTcpMagic, sizeof kTcpMagic);
  answer.version = kTcpVersion;
  answer.refusal = static_cast<std::uint32_t>(refusal);
  return answer;
}

std::string words_of(const TcpAnswer& answer, const TcpRoute& route) {
  switch (static_cast<TcpRefusal>(answer.refusal)) {
    case TcpRefusal::kVersion:
      return fmt::format(
          "it has another version of the software device (its TCP protocol is {}, here it is {}): use the same "
          "build at both ends",
          answer.version, kTcpVersion);
    case TcpRefusal::kNobody:
      if (route.type == kTcpRdmaCm)
        return fmt::format("nobody there listens at port {} of rdma_cm", route.to_qpn & 0xffff);
      return fmt::format("no process there has QP number {:#x}, or it is another user's", route.to_qpn);
    case TcpRefusal::kGid:
      return "no device there has that address and tcp= in SOFTNIC";
    case TcpRefusal::kSecret:
      return "the two ends share no secret: give both the same token=FILE in SOFTNIC (without it, only processes of "
             "one user "
             "on one host may connect)";
    case TcpRefusal::kNoSecret:
      return "it has no secret: give both ends the same token=FILE in SOFTNIC";
    default:
      return "it refused";
  }
}

UniqueFd connected_socket(const SocketAddress& address, int patience_ms) {
  UniqueFd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (::connect(socket.get(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS) return {};
    pollfd entry{socket.get(), POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    if (::poll(&entry, 1, patience_ms) <= 0 || ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 ||
        error != 0) {
      return {};
    }
  }
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  return socket;
}

}  // namespace

void limit_waits(int socket, int milliseconds) {
  const timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

UniqueFd connect_over_tcp(const TcpRoute& route, std::uint16_t port, const std::string& netdev,
                          const std::string& secret, int patience_ms, TcpRefusal& refusal, std::string& why) {
  refusal = TcpRefusal::kNobody;
  UniqueFd socket = connected_socket(address_of(route.to, port, netdev), patience_ms);
  if (!socket) return {};
  limit_waits(socket.get(), std::max(patience_ms, 100));
  TcpHello hello{};
  std::memcpy(hello.magic, kTcpMagic, sizeof kTcpMagic);
  hello.version = kTcpVersion;
  hello.bytes = sizeof hello;
  hello.from_qpn = route.from_qpn;
  hello.to_qpn = route.to_qpn;
  hello.from = route.from;
  hello.to = route.to;
  hello.type = route.type;
  TcpAnswer answer{};
  if (::getrandom(hello.nonce, sizeof hello.nonce, 0) != sizeof hello.nonce ||
      !send_whole(socket.get(), &hello, sizeof hello) || !receive_whole(socket.get(), &answer, sizeof answer)) {
    return {};
  }
  if (!has_magic(answer)) {
    refusal = TcpRefusal::kVersion;
    why = fmt::format("what listens on port {} there is no software device", port);
    return {};
  }
  TcpProof proof;
  if (answer.refusal == 0) {
    prove(ProofOf::kConnector, secret, hello, answer.nonce, proof.proof);
    std::uint8_t expected[kProofBytes];
    prove(ProofOf::kListener, secret, hello, answer.nonce, expected);
    if (!send_whole(socket.get(), &proof, sizeof proof) || !receive_whole(socket.get(), &answer, sizeof answer))
      return {};
    if (answer.refusal == 0 && !same_proof(answer.proof, expected)) {
      answer.refusal = static_cast<std::uint32_t>(TcpRefusal::kSecret);
    }
  }
  refusal = static_cast<TcpRefusal>(answer.refusal);
  if (answer.refusal != 0) {
    why = words_of(answer, route);
    return {};
  }
  return socket;
}

void refuse_hello(int socket, TcpRefusal refusal) {
  const TcpAnswer answer = an_answer(refusal);
  send_whole(socket, &answer, sizeof answer);
}

bool receive_hello(int socket, TcpHello& hello, HelloRead how) {
  // Common head of all versions.
  if (!receive_whole(socket, &hello, offsetof(TcpHello, from_qpn), MSG_PEEK) || !has_magic(hello)) return false;
  if (hello.version != kTcpVersion || hello.bytes != sizeof hello) {
    refuse_hello(socket, TcpRefusal::kVersion);
    return false;
  }
  return receive_whole(socket, &hello, sizeof hello, how == HelloRead::kPeek ? MSG_PEEK : 0);
}

bool welcome(int socket, const TcpHello& hello, const std::string& secret) {
  if (secret.empty()) {
    refuse_hello(socket, TcpRefusal::kNoSecret);
    return false;
  }
  TcpAnswer answer = an_answer(TcpRefusal::kNone);
  TcpProof proof;
  if (::getrandom(answer.nonce, sizeof answer.nonce, 0) != sizeof answer.nonce ||
      !send_whole(socket, &answer, sizeof answer) || !receive_whole(socket, &proof, sizeof proof)) {
    return false;
  }
  std::uint8_t expected[kProofBytes];
  prove(ProofOf::kConnector, secret, hello, answer.nonce, expected);
  if (!same_proof(proof.proof, expected)) {
    refuse_hello(socket, TcpRefusal::kSecret);
    return false;
  }
  prove(ProofOf::kListener, secret, hello, answer.nonce, answer.proof);
  return send_whole(socket, &answer, sizeof answer);
}

}  // namespace gdrperf::softnic
