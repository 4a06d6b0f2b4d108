// Ports: do they carry data, with addresses that are routed, in packets as
// large as they could be?

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"

namespace gdrperf::doctor {
namespace {

// The kernel takes the largest InfiniBand MTU that fits the interface's with
// room for the RoCE headers: 1500 gives 1024, from 4200 on it is 4096.
constexpr int kNetdevMtuFor4096 = 4200;

/// As a word of a command.
std::string netdev_or(const Port& port, const char* otherwise) {
  return port.netdev.empty() ? otherwise : shell_word(port.netdev);
}

std::string describe(const Port& port) {
  std::string text = port.state.empty() ? "state unknown" : port.state;
  if (!port.phys_state.empty()) text += ", " + port.phys_state;
  if (!port.link_layer.empty()) text += ", " + port.link_layer;
  if (!port.netdev.empty()) text += ", " + printable(port.netdev);
  if (port.rate_gbps > 0) text += fmt::format(", {:g} Gb/s", port.rate_gbps);
  return text;
}

std::string cure_of_down(const Port& port) {
  if (port.link_layer == "InfiniBand") {
    return port.state == "INIT" || port.state == "ARMED"
               ? "sudo systemctl start opensm  # on one machine of the fabric: it has no subnet "
                 "manager"
               : "ibstat  # after plugging in the cable; the peer's port must be up, too";
  }
  const std::string netdev = netdev_or(port, "NETDEV");
  if (!port.netdev_up.value_or(false)) return fmt::format("sudo ip link set {} up", netdev);
  if (!port.netdev_carrier.value_or(true) || port.phys_state == "Polling") {
    return fmt::format("sudo ethtool {}  # shows more; plug in the cable, check the peer's port",
                       netdev);
  }
  return fmt::format("sudo ip link set {0} down && sudo ip link set {0} up  # it is up already",
                     netdev);
}

bool is_ethernet(const Port& port) { return port.link_layer == "Ethernet"; }

}  // namespace

void check_port_states(std::span<const Port> ports, const Platform&, Findings& findings) {
  const Check check(findings, "port-state", "only an ACTIVE port carries data");
  if (ports.empty()) check.skip("", "no port");
  const bool any_active =
      std::any_of(ports.begin(), ports.end(), [](const Port& port) { return port.active(); });
  for (const Port& port : ports) {
    const bool spare = !port.active() && port.state != "INIT" && port.state != "ARMED" &&
                       std::any_of(ports.begin(), ports.end(), [&](const Port& other) {
                         return other.active() && (other.device == port.device ||
                                                   (!port.adapter.empty() && other.adapter == port.adapter));
                       });
    if (port.active()) {
      check.ok(port.subject(), describe(port));
    } else if (port.state.empty()) {
      check.skip(port.subject(), "its state cannot be read");
    } else if (spare) {
      check.skip(port.subject(), describe(port) + "; another port of this adapter is ACTIVE");
    } else {
      // With another port to use, one without a cable is nobody's fault.
      check.add(any_active ? Verdict::kWarn : Verdict::kFail, port.subject(), describe(port),
                cure_of_down(port));
    }
  }
}

void check_gids(std::span<const Port> ports, const Platform& platform, Findings& findings) {
  const Check check(findings, "gid",
                    "RoCE v2 needs an IP address on the interface; link-local ones are not routed");
  if (ports.empty()) check.skip("", "no port");
  for (const Port& port : ports) {
    if (!is_ethernet(port)) {
      check.skip(port.subject(),
                 fmt::format("not RoCE: link layer {}",
                             port.link_layer.empty() ? "unknown" : port.link_layer));
      continue;
    }
    if (!port.gids) {
      check.skip(port.subject(), "the device could not be opened");
      continue;
    }
    const verbs::Gid* best = nullptr;
    bool v2 = false;
    for (const verbs::Gid& gid : *port.gids) {
      if (gid.type != verbs::GidType::kRoceV2) continue;
      v2 = true;
      if (gid.link_local) continue;
      if (best == nullptr || (gid.ipv4 && !best->ipv4)) best = &gid;
    }
    // In a container the address is the host's to give, or in another namespace.
    const std::string give_address =
        platform.container() ? container_network(platform)
                             : fmt::format("sudo ip address add ADDRESS/24 dev {}", netdev_or(port, "NETDEV"));
    if (best != nullptr) {
      check.ok(port.subject(), fmt::format("index {}: RoCE v2, {}", best->index, best->address));
    } else if (v2) {
      check.warn(port.subject(), "RoCE v2 with a link-local address only", give_address);
    } else {
      check.fail(
          port.subject(),
          port.gids->empty() ? "the GID table is empty" : "no RoCE v2 entry in the GID table",
          port.active() ? give_address
                        : fmt::format("sudo ip link set {} up", netdev_or(port, "NETDEV")));
    }
  }
}

void check_mtu(std::span<const Port> ports, const Platform& platform, Findings& findings) {
  const Check check(
      findings, "mtu",
      "packets of 1024 bytes spend 7 % of the wire on headers, of 4096 bytes 2 %, and "
      "cost the NIC four times the packets");
  if (ports.empty()) check.skip("", "no port");
  for (const Port& port : ports) {
    if (port.active_mtu == 0) {
      check.skip(port.subject(), "the active MTU cannot be read");
      continue;
    }
    const std::string found = fmt::format(
        "active MTU {} of {}{}", port.active_mtu, port.max_mtu,
        port.netdev_mtu > 0 ? fmt::format(", {} has {}{}", printable(port.netdev), port.netdev_mtu,
                                          port.mtu_estimated ? " (from which the former follows)" : "")
                            : "");
    if (!is_ethernet(port) || port.active_mtu >= port.max_mtu) {
      check.ok(port.subject(), found);
    } else if (!port.active()) {
      check.skip(port.subject(), found + "; the port is not active");
    } else if (port.netdev_mtu >= kNetdevMtuFor4096) {
      check.warn(port.subject(), found + ": the device has not adopted it",
                 fmt::format("sudo ip link set {0} down && sudo ip link set {0} up", shell_word(port.netdev)));
    } else {
      const Cure cure = set_mtu(platform, port.netdev.empty() ? Outside("NETDEV") : port.netdev, 9000, port.netdev_mtu);
      check.warn(port.subject(), found, cure.now)
          .for_good(cure.for_good)
          .undo(cure.undo)
          .saw("/sys/class/net/" + printable(port.netdev) + "/mtu",
               port.netdev_mtu > 0 ? std::to_string(port.netdev_mtu) : "");
    }
  }
}

}  // namespace gdrperf::doctor
