#include "cm/links/tcp_ports.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "cm/wire/claim.h"
#include "gdrperf/base/error.h"
#include "host/process/names.h"
#include "host/process/process.h"
#include "host/process/wire.h"
#include "remote/reach.h"

namespace gdrperf::softnic {
namespace {

constexpr std::string_view kHandover = "softnic rdma_cm over tcp\n";
constexpr int kReachCmMs = 4000;
// A request is sent again before nobody is there, as by the kernel's CM: whoever begins to listen, or has many
// connections to look at, closes some.
constexpr int kNobodyMs = 1000;
constexpr int kUntilListenMs = 3000;
constexpr int kLookMs = 10;

std::atomic<CmTcpReceiver*> g_receiver{nullptr};

/// The IPv4 or IPv6 address that a hello is for.
CmAddress address_in(const TcpHello& hello) {
  CmAddress address;
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool ipv4 = std::memcmp(hello.to.raw, kMapped, sizeof kMapped) == 0;
  address.family = ipv4 ? AF_INET : AF_INET6;
  std::copy_n(hello.to.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16, address.bytes.begin());
  address.port = static_cast<std::uint16_t>(hello.to_qpn);
  return address;
}

std::uint16_t port_space_in(const TcpHello& hello) { return static_cast<std::uint16_t>(hello.to_qpn >> 16); }

class CmService final : public TcpService {
 public:
  bool is_own(const TcpHello& hello) override {
    CmTcpReceiver* const receiver = g_receiver.load();
    if (receiver == nullptr) return false;
    // Some programs tell their port before they listen.
    auto state = receiver->port(port_space_in(hello), address_in(hello));
    for (int waited_ms = 0; state == CmTcpReceiver::Port::kBound && waited_ms < kUntilListenMs; waited_ms += kLookMs) {
      ::usleep(kLookMs * 1000);
      state = receiver->port(port_space_in(hello), address_in(hello));
    }
    return state != CmTcpReceiver::Port::kNobodys;
  }
  /// To a process of this user.
  bool hand_over(const TcpHello& hello, int socket) override {
    const UniqueFd link = connect_port(port_space_in(hello), address_in(hello));
    ucred credentials{};
    return link && peer_credentials(link.get(), credentials) && is_own_user(credentials) &&
           send_packet(link.get(), kHandover.data(), kHandover.size(), &socket, 1);
  }
  void arrived(const TcpHello&, UniqueFd socket) override {
    if (CmTcpReceiver* const receiver = g_receiver.load()) receiver->connected(std::move(socket));
  }
};

}  // namespace

void set_cm_tcp_receiver(CmTcpReceiver* receiver) noexcept { g_receiver.store(receiver); }

void pass_on_cm(Hub& hub) {
  static CmService service;
  hub.serve(kTcpRdmaCm, service);
}

void open_cm_to_hosts() {
  for (const auto& device : devices()) {
    if (device->config.tcp_port == 0) continue;
    Hub& hub = Process::get().hub();
    pass_on_cm(hub);
    hub.open(device->config.tcp_port);
  }
}

void greet_cm(UniqueFd socket) {
  try {
    Process::get().hub().greet(std::move(socket), Hub::Origin::kHandedOver);
  } catch (const Error&) {
    // No process of the device's is to be had: the connection is closed.
  }
}

bool is_cm_handover(const void* bytes, std::size_t size) noexcept {
  return size == kHandover.size() && std::memcmp(bytes, kHandover.data(), size) == 0;
}

CmReach reach_cm_over_tcp(const Device& device, std::uint16_t port_space, const CmAddress& source,
                          const CmAddress& destination) {
  TcpRoute route;
  route.from = source.gid();
  route.to = destination.gid();
  route.to_qpn = static_cast<std::uint32_t>(port_space) << 16 | destination.port;
  route.type = kTcpRdmaCm;
  TcpReached reached = reach_over_tcp(route, device.config, {kReachCmMs, kNobodyMs});
  // The program is told that nobody listens: handling that is its own business.
  if (!reached.socket && (reached.refusal != TcpRefusal::kNobody || !reached.answered)) say_not_reached(route, reached);
  return {std::move(reached.socket), !reached.answered};
}

}  // namespace gdrperf::softnic
