#include "device/config.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "device/errno_names.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kMaxPorts = kMaxDevicesShared;
constexpr std::size_t kMaxNameLength = 31;

Error config_error(std::string_view part, const std::string& accepted) {
  return usage_error(fmt::format("SOFTNIC '{}': {}", part, accepted));
}

bool is_device_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  for (const char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (!good) return false;
  }
  return true;
}

std::optional<int> errno_by_name(std::string_view name) {
  for (const ErrnoName& known : kErrnoNames) {
    if (name == known.name) return known.error;
  }
  return std::nullopt;
}

/// True for `yes`, false for `no`; anything else is refused.
bool choose(std::string_view option, std::string_view value, std::string_view yes,
            std::string_view no) {
  if (value == yes) return true;
  if (value == no) return false;
  throw config_error(option, fmt::format("give {} or {}", yes, no));
}

CallFault parse_fault(std::string_view option, std::string_view value) {
  const auto parts = split(value, ':');
  const bool known = parts[0] == "reg_mr" || parts[0] == "create_qp" || parts[0] == "modify_qp";
  const auto error = parts.size() == 2 ? errno_by_name(parts[1]) : std::nullopt;
  if (!known || !error) {
    throw config_error(option, "give fail=CALL:ERRNO with CALL one of reg_mr, create_qp, modify_qp "
                               "and ERRNO a name like ENOMEM");
  }
  return {std::string(parts[0]), *error};
}

std::array<std::uint8_t, 6> parse_mac(std::string_view option, std::string_view value) {
  std::array<std::uint8_t, 6> mac{};
  char rest;
  const int found = std::sscanf(std::string(value).c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1],
                                &mac[2], &mac[3], &mac[4], &mac[5], &rest);
  if (found != 6) throw config_error(option, "give six bytes in hexadecimal, like mac=02:00:00:00:00:01");
  return mac;
}

std::uint16_t parse_tcp(std::string_view option, std::string_view value) {
  if (value == "off") return 0;
  if (value == "on") return kDefaultTcpPort;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), port);
  if (error != std::errc() || end != value.data() + value.size() || port == 0) {
    throw config_error(option,
                       fmt::format("give tcp=on (port {}), tcp=off, or a port from 1 to 65535", kDefaultTcpPort));
  }
  return port;
}

/// The secret, without white space at its end.
std::string read_token(std::string_view option, const std::string& path) {
  constexpr std::size_t kMinBytes = 16;
  constexpr std::size_t kMaxBytes = 4096;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw config_error(option, fmt::format("cannot read the file: {}", std::strerror(errno)));
  std::string text(kMaxBytes + 3, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() < kMinBytes || text.size() > kMaxBytes) {
    throw config_error(
        option, fmt::format("a token has {} to {} bytes, this one {}: make one with 'openssl rand -hex 32 > FILE' "
                            "and give all ends the same",
                            kMinBytes, kMaxBytes, text.size()));
  }
  return text;
}

PeerPolicy parse_peers(std::string_view option, std::string_view value) {
  PeerPolicy policy;
  policy.any = value == "any";
  if (policy.any || value == "own") return policy;
  for (const std::string_view part : split(value, '+')) {
    std::uint32_t user = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), user);
    if (error != std::errc() || end != part.data() + part.size() || part.empty()) {
      throw config_error(option, "give peers=own, peers=any or users' numbers, like peers=1000+1001");
    }
    policy.users.push_back(user);
  }
  return policy;
}

/// Options about peers, and the ways to them. False: the option is another one.
bool apply_peer_option(DeviceConfig& device, std::string_view option, std::string_view key, std::string_view value) {
  if (key == "move") {
    device.move = choose(option, value, "auto", "never") ? MovePolicy::kAuto : MovePolicy::kNever;
  } else if (key == "kernel") {
    device.kernel = choose(option, value, "auto", "never") ? KernelPolicy::kAuto : KernelPolicy::kNever;
  } else if (key == "shared") {
    device.shared = choose(option, value, "auto", "never") ? SharedPolicy::kAuto : SharedPolicy::kNever;
  } else if (key == "peers") {
    device.peers = parse_peers(option, value);
  } else if (key == "tcp") {
    device.tcp_port = parse_tcp(option, value);
  } else if (key == "token") {
    device.token_file = value;
    device.token = read_token(option, device.token_file);
  } else {
    return false;
  }
  return true;
}

void parse_ece(DeviceConfig& device, std::string_view option, std::string_view value) {
  char rest;
  if (std::sscanf(std::string(value).c_str(), "%10x:%10x%c", &device.ece_vendor, &device.ece_options, &rest) != 2 ||
      device.ece_vendor == 0) {
    throw config_error(option, "give a vendor and its options, like ece=0x15b3:0x7");
  }
}

void apply_option(DeviceConfig& device, std::string_view option) {
  const std::size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1);
  if (apply_peer_option(device, option, key, value)) return;
  if (key == "mode") {
    device.mode = choose(option, value, "null", "full") ? DeviceMode::kNull : DeviceMode::kFull;
  } else if (key == "port") {
    device.port_up = choose(option, value, "up", "down");
  } else if (key == "ports") {
    device.ports = choose(option, value, "1", "2") ? 1 : 2;
  } else if (key == "port2") {
    device.second_port_up = choose(option, value, "up", "down");
  } else if (key == "gid") {
    device.has_gids = choose(option, value, "all", "none");
  } else if (key == "link_layer") {
    device.link_layer = choose(option, value, "infiniband", "ethernet") ? LinkLayer::kInfiniBand : LinkLayer::kEthernet;
  } else if (key == "netdev") {
    if (!is_device_name(value)) throw config_error(option, "give the name of a network interface, like eth0");
    device.netdev = value;
  } else if (key == "mac") {
    device.mac = parse_mac(option, value);
  } else if (key == "pci") {
    unsigned domain, bus, slot, function;
    char rest;
    if (std::sscanf(std::string(value).c_str(), "%4x:%2x:%2x.%1u%c", &domain, &bus, &slot, &function, &rest) != 4) {
      throw config_error(option, "give a PCI address, like pci=0000:3b:00.0");
    }
    device.pci = fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, bus, slot, function);
  } else if (key == "numa") {
    char rest;
    if (std::sscanf(std::string(value).c_str(), "%3d%c", &device.numa, &rest) != 1 || device.numa < 0) {
      throw config_error(option, "give the number of a NUMA node, like numa=1");
    }
  } else if (key == "mlx5") {
    device.mlx5 = choose(option, value, "on", "off");
  } else if (key == "ece") {
    parse_ece(device, option, value);
  } else if (key == "fail") {
    device.faults.push_back(parse_fault(option, value));
  } else if (key == "fault") {
    device.message_faults.push_back(parse_fault_rule(value));
  } else if (!apply_link_option(device.link, key, value)) {
    throw config_error(option,
                       "the options are mode=, port=, ports=, port2=, gid=, link_layer=, move=, kernel=, shared=, "
                       "peers=, tcp=, token=, netdev=, mac=, pci=, numa=, ece=, mlx5=, fail=, fault=, rate=, "
                       "latency=, ack=, mtu=, header=, per_message=, slow=, slow_sport=, strict=, react=, ingress=, "
                       "pacing= and copy=");
  }
}

/// All devices as one list; from a file, with the lines that they were in.
struct Settings {
  std::string_view text;
  struct Line {
    std::size_t begin;  ///< in the text
    int number;
  };
  std::vector<Line> lines;

  /// Position of a piece of the text.
  std::string place(std::string_view piece) const {
    const auto at = static_cast<std::size_t>(piece.data() - text.data());
    std::string found = fmt::format("column {}", at + 1);
    for (const Line& line : lines) {
      if (line.begin <= at) found = fmt::format("line {}", line.number);
    }
    return found;
  }
};

/// The same, with where `piece` stands.
Error placed(const Error& error, std::string_view piece, const Settings& whole) {
  return Error(error.code(), fmt::format("{} ({})", error.what(), whole.place(piece)), error.hint());
}

/// GIDs that other hosts can reach are addresses of an interface.
void find_address(DeviceConfig& device, std::string_view options, const Settings& whole) {
  std::string_view option;
  bool named = false;
  for (const std::string_view it : split(options, ',')) {
    if (it.starts_with("tcp=") && !named) option = it;
    if (it.starts_with("netdev=")) {
      option = it;
      named = true;
    }
  }
  if (!find_netdev(named ? device.netdev : std::string(), device.address)) {
    const char* what = named ? "this network namespace has no such interface that is up and has an IP address"
                             : "this network namespace has no interface that is up and has an IP address; "
                               "netdev=lo would do for peers on this host";
    throw placed(config_error(option, what), option, whole);
  }
  device.netdev = device.address.name;
}

DeviceConfig parse_device(std::string_view text, const Settings& whole) {
  const std::size_t colon = text.find(':');
  DeviceConfig device;
  device.name = text.substr(0, colon);
  if (!is_device_name(device.name)) {
    throw placed(config_error(text, "a device is NAME or NAME:OPTION,OPTION with a name of letters, digits, "
                                    "'_' and '-', like soft0:port=down"), text, whole);
  }
  if (colon == std::string_view::npos) return device;
  for (const std::string_view option : split(text.substr(colon + 1), ',')) {
    try {
      apply_option(device, option);
    } catch (const Error& error) {
      throw placed(error, option, whole);
    }
  }
  const auto refuse = [&](const char* why) { throw placed(config_error(text, why), text, whole); };
  const bool tcp = device.tcp_port != 0;
  if (tcp && device.link_layer == LinkLayer::kInfiniBand) {
    refuse("link_layer=infiniband is for devices without tcp=, whose GIDs are addresses");
  }
  if (tcp && device.ports == 2)
    refuse("a device with tcp= has one port, with the address of one interface; add a device for another one");
  if (device.mlx5 && device.mode == DeviceMode::kNull)
    refuse("mlx5=on is for devices with mode=full: rings are executed, or not there");
  if (device.second_port_up && device.ports == 1) refuse("port2= is for devices with ports=2");
  // Who takes an offer of ECE goes to RTR in front of the other end, which between hosts is waited for there.
  if (tcp && device.ece_vendor != 0) refuse("ece= is for devices without tcp=");
  if (tcp) find_address(device, text.substr(colon + 1), whole);
  if (!tcp && (!device.token.empty() || device.shared == SharedPolicy::kNever)) {
    refuse("token= and shared=never are for devices that have tcp=");
  }
  return device;
}

/// The file's lines as one list; empty ones and comments are left out.
std::string file_as_text(const std::string& path, std::vector<Settings::Line>& lines) {
  std::ifstream file(path);
  if (!file) throw config_error("@" + path, fmt::format("cannot read the file: {}", std::strerror(errno)));
  std::string text;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::string_view rest = trimmed(std::string_view(line).substr(0, line.find('#')));
    while (!rest.empty() && rest.back() == ';') rest.remove_suffix(1);
    if (rest.empty()) continue;
    if (!text.empty()) text += ';';
    lines.push_back({text.size(), number});
    text += rest;
  }
  return text;
}

}  // namespace

bool PeerPolicy::admits(std::uint32_t user) const {
  return any || std::find(users.begin(), users.end(), user) != users.end();
}

int DeviceConfig::fault(std::string_view call) const {
  for (const CallFault& fault : faults) {
    if (fault.call == call) return fault.error;
  }
  return 0;
}

std::vector<DeviceConfig> parse_config(std::string_view text) {
  std::string from_file;
  Settings settings;
  if (text.starts_with('@')) {
    from_file = file_as_text(std::string(text.substr(1)), settings.lines);
    text = from_file;
  }
  if (text.empty()) text = "soft0;soft1";
  settings.text = text;
  std::vector<DeviceConfig> devices;
  std::size_t ports = 0;
  for (const std::string_view part : split(text, ';')) {
    DeviceConfig device = parse_device(part, settings);
    for (const DeviceConfig& other : devices) {
      if (other.name == device.name) throw placed(config_error(part, "this device is named twice"), part, settings);
    }
    ports += device.ports;
    devices.push_back(std::move(device));
    if (ports > kMaxPorts) {
      throw placed(config_error(part, fmt::format("at most {} ports of all devices together", kMaxPorts)), part,
                   settings);
    }
  }
  return devices;
}

}  // namespace gdrperf::softnic
