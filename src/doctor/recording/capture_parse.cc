#include "doctor/recording/capture_parse.h"

#include <arpa/inet.h>

#include <algorithm>

#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

std::string first_word(std::string_view text) {
  const auto words = words_of(text);
  return words.empty() ? std::string() : std::string(words.front());
}

Port& port_of(std::vector<Port>& ports, std::string_view device, int number) {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& port) {
    return port.device == device && port.number == number;
  });
  if (it != ports.end()) return *it;
  Port port;
  port.device = device;
  port.number = number;
  ports.push_back(std::move(port));
  return ports.back();
}

}  // namespace

std::optional<EthtoolDriver> parse_ethtool_driver(std::string_view text) {
  EthtoolDriver driver;
  for (const std::string_view line : lines_of(text)) {
    if (const auto value = value_after(line, "driver:")) driver.driver = first_word(*value);
    if (const auto value = value_after(line, "version:")) driver.version = first_word(*value);
    if (const auto value = value_after(line, "firmware-version:")) driver.firmware = *value;
    if (const auto value = value_after(line, "bus-info:")) driver.bus_info = first_word(*value);
  }
  if (driver.driver.empty() || driver.bus_info.empty()) return std::nullopt;
  return driver;
}

std::vector<Port> parse_ibv_devinfo(std::string_view text) {
  std::vector<Port> ports;
  std::string device;
  for (const std::string_view line : lines_of(text)) {
    if (const auto value = value_after(line, "hca_id:")) {
      device = *value;
    } else if (const auto number = value_after(line, "port:"); number && !device.empty()) {
      ports.emplace_back();
      ports.back().device = device;
      ports.back().number = leading_int(*number);
    }
    if (ports.empty() || ports.back().device != device) continue;
    Port& port = ports.back();
    if (const auto value = value_after(line, "state:")) {
      // "PORT_ACTIVE (4)"
      const std::string word = first_word(*value);
      port.state = word.starts_with("PORT_") ? word.substr(5) : word;
    }
    if (const auto value = value_after(line, "max_mtu:")) port.max_mtu = leading_int(*value);
    if (const auto value = value_after(line, "active_mtu:")) port.active_mtu = leading_int(*value);
    if (const auto value = value_after(line, "link_layer:")) port.link_layer = first_word(*value);
  }
  return ports;
}

std::vector<Port> parse_ibdev2netdev(std::string_view text) {
  std::vector<Port> ports;
  for (const std::string_view line : lines_of(text)) {
    // mlx5_0 port 1 ==> ens3np0 (Down)
    const auto words = words_of(line);
    const auto arrow = std::find(words.begin(), words.end(), "==>");
    if (arrow - words.begin() < 3 || words.end() - arrow < 3 || *(arrow - 2) != "port") continue;
    Port port;
    port.device = *(arrow - 3);
    port.number = leading_int(*(arrow - 1));
    port.netdev = *(arrow + 1);
    port.state = *(arrow + 2) == "(Up)" ? "ACTIVE" : "DOWN";
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<Port> parse_show_gids(std::string_view text) {
  std::vector<Port> ports;
  for (const std::string_view line : lines_of(text)) {
    // DEV PORT INDEX GID [IPv4] VER [DEV]
    const auto words = words_of(line);
    if (words.size() < 5) continue;
    const auto number = number_of(words[1]);
    const auto index = number_of(words[2]);
    ibv_gid raw{};
    if (!number || !index || ::inet_pton(AF_INET6, std::string(words[3]).c_str(), raw.raw) != 1)
      continue;
    const auto version = std::find_if(words.begin() + 4, words.end(), [](std::string_view word) {
      return word == "v1" || word == "v2";
    });
    if (version == words.end()) continue;
    const std::string netdev = version + 1 == words.end() ? "" : std::string(*(version + 1));
    Port& port = port_of(ports, words[0], static_cast<int>(*number));
    port.link_layer = "Ethernet";
    port.netdev = netdev;
    if (!port.gids) port.gids.emplace();
    port.gids->push_back(verbs::make_gid(
        static_cast<int>(*index),
        *version == "v2" ? verbs::GidType::kRoceV2 : verbs::GidType::kRoceV1, raw, netdev));
  }
  return ports;
}

std::vector<Port> parse_ibstat(std::string_view text) {
  std::vector<Port> ports;
  std::string device;
  for (const std::string_view raw : lines_of(text)) {
    const std::string_view line = trimmed(raw);
    // CA 'mlx5_0' ... Port 1: ... State: Active
    if (line.starts_with("CA '") && line.size() > 5) {
      device = line.substr(4, line.find('\'', 4) - 4);
    } else if (line.starts_with("Port ") && line.ends_with(':') && !device.empty()) {
      ports.emplace_back();
      ports.back().device = device;
      ports.back().number = leading_int(line.substr(5));
    }
    if (ports.empty() || ports.back().device != device) continue;
    Port& port = ports.back();
    if (const auto value = value_after(line, "State:")) {
      const std::string state = first_word(*value);
      port.state = state.starts_with("Init") ? "INIT"
                   : state == "Active"       ? "ACTIVE"
                   : state == "Armed"        ? "ARMED"
                                             : "DOWN";
    }
    if (const auto value = value_after(line, "Physical state:")) port.phys_state = *value;
    if (const auto value = value_after(line, "Rate:")) port.rate_gbps = leading_number(*value);
    if (const auto value = value_after(line, "Link layer:")) port.link_layer = first_word(*value);
  }
  return ports;
}

std::vector<Port> parse_rdma_link(std::string_view text) {
  std::vector<Port> ports;
  for (const std::string_view line : lines_of(text)) {
    // link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2
    const auto words = words_of(line);
    if (words.size() < 4 || words[0] != "link" || words[1].find('/') == std::string_view::npos) continue;
    Port port;
    port.device = words[1].substr(0, words[1].find('/'));
    port.number = std::max(1, leading_int(words[1].substr(words[1].find('/') + 1)));
    for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
      if (words[i] == "state") port.state = words[i + 1];
      if (words[i] == "physical_state") port.phys_state = words[i + 1] == "LINK_UP" ? "LinkUp" : words[i + 1];
      if (words[i] == "netdev") port.netdev = words[i + 1];
    }
    if (!port.state.empty()) ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<verbs::DeviceInfo> devices_of_ibv_devinfo(std::string_view text) {
  std::vector<verbs::DeviceInfo> devices;
  for (const Port& port : parse_ibv_devinfo(text)) {
    if (devices.empty() || devices.back().name != port.device) {
      devices.emplace_back();
      devices.back().name = port.device.raw();
    }
    verbs::PortDetails details;
    details.port.number = port.number;
    details.port.state = port.active() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    details.port.link_layer =
        port.link_layer == "InfiniBand" ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    details.port.active_mtu_bytes = port.active_mtu;
    details.port.max_mtu_bytes = port.max_mtu;
    devices.back().ports.push_back(std::move(details));
  }
  return devices;
}

}  // namespace gdrperf::doctor
