#include "cm/state/ports.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <utility>

#include "cm/wire/claim.h"
#include "cm/links/tcp_ports.h"
#include "shared/segment/multicast.h"

namespace gdrperf::softnic {
namespace {

CmAddress loopback_of(const CmAddress& any) {
  CmAddress address = any;
  if (any.family == AF_INET) {
    address.bytes = {127, 0, 0, 1};
  } else {
    address.bytes[15] = 1;
  }
  return address;
}

/// What the kernel's rdma_cm takes when nobody has set RDMA_OPTION_ID_AFONLY.
bool is_family_only(const CmId& id) {
  if (id.asked_family_only) return *id.asked_family_only;
  if (id.source.family != AF_INET6) return true;
  std::ifstream file("/proc/sys/net/ipv6/bindv6only");
  return file.get() == '1';
}

/// Any address of IPv6 is one of IPv4 as well.
CmFamilies families_of(const CmId& id) {
  return id.source.family == AF_INET6 && !id.family_only ? CmFamilies::kBoth : CmFamilies::kOwn;
}

}  // namespace

int CmPorts::take(CmId& id, UniqueFd claim) {
  if (!claim) return -errno;
  id.claim = std::make_shared<CmClaim>();
  id.claim->socket = std::move(claim);
  loop_.after(kUntilListen, [this, weak = std::weak_ptr(id.claim)] {
    if (const auto alive = weak.lock()) open(alive);
  });
  return 0;
}

void CmPorts::open(const std::shared_ptr<CmClaim>& claim) {
  const MutexLock guard(claim->mutex);
  if (claim->token != 0 || claim->released) return;
  claim->token = loop_.watch(claim->socket.get(), EPOLLIN, [this, weak = std::weak_ptr(claim)](std::uint32_t) {
    const auto alive = weak.lock();
    if (!alive) return;
    UniqueFd connection(::accept4(alive->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection && admits_process(connection.get())) accepted_(std::move(connection));
  });
}

void CmPorts::release(CmId& id) {
  const std::shared_ptr<CmClaim> claim = std::move(id.claim);
  if (!claim) return;
  const MutexLock guard(claim->mutex);
  claim->released = true;
  if (claim->token != 0) loop_.forget(claim->token, claim->socket.get());
  // Nobody accepts from it any more, though the loop may hold the claim for a moment yet.
  ::shutdown(claim->socket.get(), SHUT_RDWR);
}

int CmPorts::bind(CmId& id, const CmAddress& address) {
  if (id.state != CmState::kIdle) return -EINVAL;
  if (address.family == kIbFamily) {
    // librdmacm asks whether the kernel knows such addresses; no device here has one.
    if (!address.any()) return -ENODEV;
    id.source = address;
    id.state = CmState::kBound;
    return 0;
  }
  Device* device = nullptr;
  if (!address.any()) {
    if (!is_own_address(address)) return -EADDRNOTAVAIL;
    device = device_at(address);
    if (device == nullptr) return -ENODEV;
  }
  id.source = address;
  id.family_only = is_family_only(id);
  id.any_port = address.port == 0;
  int error = 0;
  if (id.any_port) {
    error = take(id, claim_any_port(id.port_space, id.source, families_of(id)));
  } else if (!id.reuse_address) {
    error = take(id, claim_port(id.port_space, id.source, families_of(id)));
  }
  if (error != 0) return error;
  id.device = device;
  id.state = CmState::kBound;
  return 0;
}

int CmPorts::resolve_address(CmId& id, const std::optional<CmAddress>& source, const CmAddress& destination) {
  if (destination.family == kIbFamily) return -ENODEV;
  const CmAddress target = destination.any() ? loopback_of(destination) : destination;
  if (id.state == CmState::kIdle && source && (!source->any() || source->port != 0)) {
    if (const int error = bind(id, *source); error != 0) return error;
  }
  if (id.state != CmState::kIdle && id.state != CmState::kBound) return -EINVAL;
  const bool group = is_multicast(target.gid());
  CmAddress from = id.source;
  if (from.any()) {
    // A group needs no route: it is of this host.
    const auto found = source_towards(target);
    if (!found && !group) return -errno;
    from.family = target.family;
    from = found ? *found : loopback_of(from);
    from.port = id.source.port;
  }
  if (from.family != target.family) return -EINVAL;
  Device* device = device_at(from);
  // Addresses of this host are within reach; all others are reached over TCP.
  const bool here = group || is_own_address(target);
  if (device == nullptr || (!here && !device->has_own_address())) {
    id.state = CmState::kBound;
    report(id, kAddrError, -ENODEV);
    return 0;
  }
  if (from.port == 0) from.port = next_free_port();
  if (id.any_port) release(id);
  id.source = from;
  id.destination = target;
  id.device = device;
  id.remote = !here;
  const Device* behind = device_at(target);
  id.connection.remote_gid = here && !group ? behind->gid(gid_index_at(*behind, target)) : target.gid();
  id.state = CmState::kAddressResolved;
  report(id, kAddrResolved);
  return 0;
}

int CmPorts::resolve_route(CmId& id) {
  if (id.state != CmState::kAddressResolved) return -EINVAL;
  id.state = CmState::kRouteResolved;
  report(id, kRouteResolved);
  return 0;
}

int CmPorts::listen(CmId& id, std::uint32_t backlog) {
  if (id.state == CmState::kIdle) {
    CmAddress any;
    any.family = AF_INET;
    if (const int error = bind(id, any); error != 0) return error;
  }
  if (id.state != CmState::kBound) return -EINVAL;
  if (id.source.family == kIbFamily) return -ENODEV;
  if (!id.claim) {
    if (const int error = take(id, claim_port(id.port_space, id.source, families_of(id))); error != 0) return error;
  }
  id.backlog = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  id.state = CmState::kListening;
  open_cm_to_hosts();
  open(id.claim);
  return 0;
}

}  // namespace gdrperf::softnic
