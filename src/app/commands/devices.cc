#include "app/commands/devices.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/verbs/inventory.h"
#include "app/output/device_facts.h"
#include "app/output/sink.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;
using verbs::DeviceInfo;
using verbs::Gid;
using verbs::PortDetails;

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Json to_json(const PortDetails& details) {
  const verbs::PortInfo& port = details.port;
  Json gids = Json::array();
  for (const Gid& gid : details.gids) {
    gids.push_back({{"index", gid.index},
                    {"type", verbs::to_string(gid.type)},
                    {"address", gid.address},
                    {"link_local", gid.link_local},
                    {"netdev", gid.netdev}});
  }
  return {{"port", port.number},
          {"netdev", port.netdev},
          {"mac", port.mac},
          {"link_layer", port.link_layer_name()},
          {"state", port.state_name()},
          {"active_mtu_bytes", port.active_mtu_bytes},
          {"max_mtu_bytes", port.max_mtu_bytes},
          {"rate_gbps", port.rate_gbps > 0 ? Json(port.rate_gbps) : Json(nullptr)},
          {"lid", port.lid},
          {"max_message_bytes", port.max_message_bytes},
          {"gids", std::move(gids)}};
}

Json claims_to_json(const DeviceInfo& device) {
  Json limits = Json::object();
  for (const verbs::DeviceLimit& limit : device.limits) limits[limit.name] = limit.value;
  Json paths = Json::array();
  for (const verbs::DataPath& path : device.data_paths) {
    paths.push_back({{"way", path.way}, {"state", path.state}, {"note", path.note}});
  }
  return {
      {"limits", std::move(limits)}, {"atomics", device.atomics}, {"odp", device.odp}, {"data_path", std::move(paths)}};
}

Json to_json(const DeviceInfo& device) {
  Json ports = Json::array();
  for (const PortDetails& port : device.ports) ports.push_back(to_json(port));
  Json result = {{"name", device.name},
                 {"node_guid", device.node_guid},
                 {"pci_address", device.pci_address},
                 {"driver", device.driver},
                 {"firmware", device.firmware},
                 {"numa_node", device.numa_node >= 0 ? Json(device.numa_node) : Json(nullptr)},
                 {"kind", verbs::to_string(device.kind)},
                 {"ports", std::move(ports)}};
  if (device.error.empty()) result.update(claims_to_json(device));
  if (!device.error.empty()) result["error"] = device.error;
  return result;
}

void add_port(Table& table, const DeviceInfo& device, const PortDetails& details) {
  const verbs::PortInfo& port = details.port;
  table.add({device.name, std::to_string(port.number), device.node_guid,
             or_dash(device.pci_address), or_dash(port.netdev), or_dash(port.mac),
             or_dash(device.driver), or_dash(device.firmware), port.link_layer_name(),
             port.state_name(), std::to_string(port.active_mtu_bytes),
             port.rate_gbps > 0 ? fmt::format("{:g}", port.rate_gbps) : "-",
             device.numa_node >= 0 ? std::to_string(device.numa_node) : "-",
             verbs::to_string(device.kind)});
  if (details.gids.empty()) table.add_line("    no GID");
  for (const Gid& gid : details.gids) {
    table.add_line(fmt::format(
        "    GID {:<3} {:<10}  {}{}", gid.index, verbs::to_string(gid.type), gid.address,
        gid.netdev.empty() || gid.netdev == port.netdev ? "" : fmt::format("  ({})", gid.netdev)));
  }
}

void print_table(const std::vector<DeviceInfo>& devices, std::ostream& out) {
  Table table({"DEVICE", "PORT", "NODE GUID", "PCI ADDRESS", "NETDEV", "MAC", "DRIVER", "FIRMWARE",
               "LINK LAYER", "STATE", "MTU", "RATE Gb/s", "NUMA", "KIND"});
  for (const DeviceInfo& device : devices) {
    for (const PortDetails& port : device.ports) add_port(table, device, port);
    if (device.ports.empty()) {
      table.add({device.name, "-", device.node_guid, or_dash(device.pci_address), "-", "-",
                 or_dash(device.driver)});
    }
    if (!device.error.empty()) table.add_line("    " + device.error);
  }
  table.print(out);
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<DevicesOptions>();
  CLI::App* command = app.add_subcommand("devices", "List RDMA devices, their ports and GIDs");
  command->add_flag("-v,--verbose", options->verbose, "Also print what each device reports: limits, ports, data paths");
  add_json_option(*command, options->json,
                  "Write JSON, with the details of -v, to FILE or to standard output (no FILE, or -)");
  add_softnic_flag(*command);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_devices(*options, std::cout); };
  });
}

int run_devices(const DevicesOptions& options, std::ostream& out) {
  const Sink json(options.json);
  json.check("--json");
  const std::vector<DeviceInfo> devices = verbs::list_devices();
  if (devices.empty()) throw verbs::no_device_error();
  if (json.given()) {
    Json list = Json::array();
    for (const DeviceInfo& device : devices) list.push_back(to_json(device));
    // Names come from drivers: whatever bytes they hold, the output is JSON.
    const std::string text =
        Json{{"devices", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (json.is_stdout()) {
      out << text;
      return static_cast<int>(ExitCode::kOk);
    }
    json.write(text);
  }
  if (options.verbose) {
    print_facts(devices, out);
  } else {
    print_table(devices, out);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gdrperf::app
