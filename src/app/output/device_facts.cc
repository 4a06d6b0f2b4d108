#include "app/output/device_facts.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

using verbs::DataPath;
using verbs::DeviceInfo;
using verbs::DeviceLimit;
using verbs::PortDetails;

void fact(std::ostream& out, int indent, std::string_view name, std::string_view value) {
  fmt::print(out, "{:{}}{:<{}}{}\n", "", indent, name, 30 - indent, value.empty() ? "-" : value);
}

std::string limit_text(const DeviceLimit& limit) {
  if (limit.name == "max_mr_size") return fmt::format("{} ({})", limit.value, format_size(limit.value));
  if (limit.name == "page_size_cap" || limit.name.ends_with("_mask")) return fmt::format("{:#x}", limit.value);
  return std::to_string(limit.value);
}

std::string state_text(const DataPath& path) {
  if (path.state == "off") return "not used: " + path.note;
  return (path.state == "first" ? "used first: " : "used next: ") + path.note;
}

void print_port(const PortDetails& details, std::ostream& out) {
  const verbs::PortInfo& port = details.port;
  fact(out, 2, fmt::format("port {}", port.number), port.state_name());
  fact(out, 4, "link_layer", port.link_layer_name());
  fact(out, 4, "rate", port.rate_gbps > 0 ? fmt::format("{:g} Gb/s", port.rate_gbps) : "");
  fact(out, 4, "active_mtu", fmt::format("{} of {} bytes", port.active_mtu_bytes, port.max_mtu_bytes));
  fact(out, 4, "max_msg_sz", fmt::format("{} ({})", port.max_message_bytes, format_size(port.max_message_bytes)));
  fact(out, 4, "netdev", port.netdev);
  fact(out, 4, "mac", port.mac);
  if (port.lid != 0) fact(out, 4, "lid", std::to_string(port.lid));
  if (details.gids.empty()) fact(out, 4, "GID", "none");
  for (const verbs::Gid& gid : details.gids) {
    fact(out, 4, fmt::format("GID {}", gid.index),
         fmt::format("{:<10}  {}{}{}", verbs::to_string(gid.type), gid.address, gid.link_local ? "  link-local" : "",
                     gid.netdev.empty() || gid.netdev == port.netdev ? "" : "  " + gid.netdev));
  }
}

void print_device(const DeviceInfo& device, std::ostream& out) {
  fmt::print(out, "{}\n", device.name);
  fact(out, 2, "kind", verbs::to_string(device.kind));
  fact(out, 2, "driver", device.driver);
  fact(out, 2, "firmware", device.firmware);
  fact(out, 2, "node_guid", device.node_guid);
  fact(out, 2, "pci_address", device.pci_address);
  fact(out, 2, "numa_node", device.numa_node >= 0 ? std::to_string(device.numa_node) : "");
  if (!device.error.empty()) {
    fact(out, 2, "error", device.error);
    return;
  }
  for (const DeviceLimit& limit : device.limits) fact(out, 2, limit.name, limit_text(limit));
  fact(out, 2, "atomics", device.atomics);
  fact(out, 2, "on-demand paging (RC)", device.odp.empty() ? "none" : fmt::format("{}", fmt::join(device.odp, ", ")));
  if (!device.data_paths.empty()) out << "  data between processes\n";
  for (const DataPath& path : device.data_paths) fact(out, 4, path.way, state_text(path));
  for (const PortDetails& port : device.ports) print_port(port, out);
}

}  // namespace

void print_facts(std::span<const DeviceInfo> devices, std::ostream& out) {
  for (const DeviceInfo& device : devices) {
    if (&device != &devices.front()) out << '\n';
    print_device(device, out);
  }
}

}  // namespace gdrperf::app
