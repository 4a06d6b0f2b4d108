// What a device, its port and its GIDs allow of what was asked for.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/verbs/driver_qp.h"
#include "gdrperf/verbs/mlx5.h"
#include "engine/setup/demand.h"
#include "engine/setup/limiter.h"
#include "engine/setup/local_end.h"

namespace gdrperf::engine {

OpenDevice open_device(const EndSpec& end, conn::Side side) {
  OpenDevice device{verbs::Context::open(end.device, end_flag<&EndSpec::device>(side)), {}, {}};
  device.port = verbs::choose_port(device.context, end.port);
  device.gids = verbs::gid_table(device.context, device.port.number);
  return device;
}

verbs::GidChoice choose_gid(const OpenDevice& device, const EndSpec& end, conn::Side side,
                            std::span<const std::string> peer_families) {
  try {
    return verbs::choose_gid(device.gids, end.gid_index, peer_families, end_flag<&EndSpec::gid_index>(side));
  } catch (const Error& error) {
    throw error.in(device.context.name());
  }
}

int agree_mtu(int requested_bytes, const verbs::PortInfo& port, int peer_active_bytes) {
  const int active = peer_active_bytes > 0 ? std::min(port.active_mtu_bytes, peer_active_bytes)
                                           : port.active_mtu_bytes;
  if (requested_bytes == 0) return active;
  if (requested_bytes > active) {
    const std::string mtu = flag<&TestSpec::mtu_bytes>();
    throw usage_error(fmt::format("{} {}: above the active MTU of {} bytes (this host {}, the peer {})", mtu,
                                  requested_bytes, active, port.active_mtu_bytes, peer_active_bytes),
                      fmt::format("leave {} out to use the largest that both ports carry", mtu));
  }
  return requested_bytes;
}

void check_datagram(const TestSpec& spec, int mtu_bytes) {
  if (spec.transport != Transport::kUd || spec.size_bytes <= static_cast<std::uint64_t>(mtu_bytes)) return;
  throw usage_error(fmt::format("{} {}: a message over UD is one packet, and the MTU of both ports is {} bytes",
                                flag<&TestSpec::size_bytes>(), format_size(spec.size_bytes), mtu_bytes),
                    fmt::format("give {} {} at most, or {} uc, whose messages are of any size",
                                flag<&TestSpec::size_bytes>(), mtu_bytes, flag<&TestSpec::transport>()));
}

std::string keeps_order(const ResolvedSpec& spec, conn::Side side, ibv_context* device) {
  if (const std::string why = spec.needs_order(); !why.empty()) return why;
  const char* const name = ::ibv_get_device_name(device->device);
  std::string why;
  const std::uint32_t most = verbs::out_of_order_receives(device, qp_type(spec.transport), why);
  if (most == 0) return fmt::format("{} has no QPs that place packets out of order: {}", name, why);
  const int wanted = demand_of(spec, side).recv_wr;
  if (static_cast<std::uint32_t>(wanted) <= most) return {};
  return fmt::format("{} takes {} receives per QP where it places packets out of order, not {} ({})", name, most,
                     wanted, flag<&TestSpec::rx_depth>());
}

}  // namespace gdrperf::engine
