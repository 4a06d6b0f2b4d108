#include "gdrperf/verbs/device.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/library.h"
#include "verbs/device_list.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

bool has_active_port(const Context& context) {
  for (int port = 1; port <= context.ports(); ++port) {
    ibv_port_attr attr{};
    if (::ibv_query_port(context.get(), static_cast<std::uint8_t>(port), &attr) == 0 &&
        attr.state == IBV_PORT_ACTIVE) {
      return true;
    }
  }
  return false;
}

Context open_first_active(std::span<ibv_device*> devices) {
  std::unique_ptr<Context> first;
  std::unique_ptr<Error> why_not;
  for (ibv_device* device : devices) {
    try {
      Context context(device);
      if (has_active_port(context)) return context;
      if (!first) first = std::make_unique<Context>(std::move(context));
    } catch (const Error& error) {
      if (!why_not) why_not = std::make_unique<Error>(error);
    }
  }
  if (!first) throw *why_not;
  return std::move(*first);
}

std::string netdev_of(const Context& context, int port) {
  // The default GID (index 0) belongs to the port's own interface; later ones
  // may belong to VLANs and bonds above it.
  for (const Gid& gid : gid_table(context, port)) {
    if (!gid.netdev.empty()) return gid.netdev;
  }
  return read_line_or_empty(class_folder(context.name()) + "/parent");
}

/// sysfs prints "400 Gb/sec (4X NDR)" also for speeds that the eight bits of
/// ibv_port_attr::active_speed cannot express.
double rate_from_sysfs(const Context& context, int port) {
  const std::string text =
      read_line_or_empty(fmt::format("{}/ports/{}/rate", class_folder(context.name()), port));
  return std::strtod(text.c_str(), nullptr);
}

/// ibv_open_device's errno is that of the last place it looked at, often ENOENT
/// where the truth is that the device file may not be opened.
Error open_error(const ibv_device& device, int errno_value) {
  if (errno_value == 0) errno_value = EIO;
  // Also where the device or a library did not pass the reason on.
  std::string hint = limit_hint(errno_value);
  if (hint.empty()) hint = tight_limits();
  const bool has_file = !std::string_view(device.dev_name).starts_with("softnic");
  if (!hint.empty() || !has_file) return call_error("ibv_open_device", errno_value, device.name, hint);
  const std::string file = std::string("/dev/infiniband/") + device.dev_name;
  if (device.dev_name[0] != '\0' && ::access(file.c_str(), R_OK | W_OK) != 0) {
    return call_error(
        "ibv_open_device", errno_value, device.name,
        fmt::format("this user needs to read and write {} (group rdma, or, in a container, "
                    "the device has to be passed in)",
                    file));
  }
  return call_error("ibv_open_device", errno_value, device.name,
                    "gdrperf doctor finds out more");
}

}  // namespace

const char* to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kHardware: return "hardware";
    case DeviceKind::kRxe: return "rxe";
    case DeviceKind::kSiw: return "siw";
    case DeviceKind::kSoftware: return "software";
    case DeviceKind::kSimulated: return "simulated";
  }
  return "unknown";
}

DeviceKind kind_from(const KindHints& hints) {
  if (hints.firmware.starts_with("softnic")) {
    return hints.firmware.find("simulated") != std::string_view::npos ? DeviceKind::kSimulated
                                                                      : DeviceKind::kSoftware;
  }
  if (hints.driver == "rdma_rxe") return DeviceKind::kRxe;
  if (hints.driver == "siw") return DeviceKind::kSiw;
  return hints.has_bus_address ? DeviceKind::kHardware : DeviceKind::kSoftware;
}

Error no_device_error() {
  if (const std::string missing = missing_library(); missing.find("libibverbs") != std::string::npos) {
    return Error(ExitCode::kEnvironment, fmt::format("no RDMA device: {}", missing), kInstallLibraries);
  }
  const char* preload = std::getenv("LD_PRELOAD");
  const char* softnic = std::getenv("SOFTNIC");
  if (preload != nullptr && std::strstr(preload, "libgdrperf_softnic") != nullptr) {
    if (softnic == nullptr) {
      return Error(ExitCode::kEnvironment, "no RDMA device: the software device could not start",
                   "its message above has the reason");
    }
    return usage_error(fmt::format("SOFTNIC '{:.80}': the software device does not take it, so there is no RDMA device",
                                   softnic),
                       "unset SOFTNIC for soft0 and soft1; what a device may be given is in softnic/docs/softnic.md");
  }
  return Error(
      ExitCode::kEnvironment, "no RDMA device found on this machine",
      fmt::format("run with {} to use the software device, or run gdrperf doctor to find out why a NIC is not seen",
                  flags::kSoftnic));
}

Context::Context(ibv_device* device) : name_(::ibv_get_device_name(device)) {
  errno = 0;
  context_.reset(::ibv_open_device(device));
  if (!context_) throw open_error(*device, errno);
  if (const int error = ::ibv_query_device_ex(context_.get(), nullptr, &attr_); error != 0) {
    throw call_error("ibv_query_device_ex", error > 0 ? error : errno, name_);
  }
  driver_ = driver_of(name_);
  const char* firmware = attr_.orig_attr.fw_ver;
  firmware_.assign(firmware, ::strnlen(firmware, sizeof attr_.orig_attr.fw_ver));
  kind_ = kind_from({firmware_, driver_, !pci_address_of(name_).empty()});
  // Programs that look into sysfs find no driver of the kernel for a software device.
  if (firmware_.starts_with("softnic")) driver_.clear();
}

Context Context::open(const std::string& name, const std::string& flag) {
  const DeviceList list;
  if (list.devices().empty()) {
    Error error = no_device_error();
    throw name.empty() ? error : error.in(fmt::format("device {}", name));
  }
  if (name.empty()) return open_first_active(list.devices());
  std::vector<std::string> names;
  for (ibv_device* device : list.devices()) {
    names.emplace_back(::ibv_get_device_name(device));
    if (names.back() == name) return Context(device);
  }
  throw usage_error(fmt::format("{} {}: there is no such RDMA device; this machine has: {}", flag, name,
                                fmt::join(names, ", ")),
                    fmt::format("choose one with {}; 'gdrperf devices' shows them all", flag));
}

const char* PortInfo::state_name() const noexcept {
  switch (state) {
    case IBV_PORT_NOP: return "NOP";
    case IBV_PORT_DOWN: return "DOWN";
    case IBV_PORT_INIT: return "INIT";
    case IBV_PORT_ARMED: return "ARMED";
    case IBV_PORT_ACTIVE: return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER: return "ACTIVE_DEFER";
  }
  return "unknown";
}

const char* PortInfo::link_layer_name() const noexcept {
  if (link_layer == IBV_LINK_LAYER_ETHERNET) return "Ethernet";
  if (link_layer == IBV_LINK_LAYER_INFINIBAND) return "InfiniBand";
  return "unknown";
}

PortInfo query_port(const Context& context, int port) {
  if (port < 1 || port > context.ports()) {
    throw usage_error(fmt::format(
        "{} has no port {}; it has {}", context.name(), port,
        context.ports() == 1 ? "port 1 only" : fmt::format("ports 1 to {}", context.ports())));
  }
  ibv_port_attr attr{};
  const int error = ::ibv_query_port(context.get(), static_cast<std::uint8_t>(port), &attr);
  if (error != 0) throw call_error("ibv_query_port", error > 0 ? error : errno, context.name());
  PortInfo info;
  info.number = port;
  info.state = attr.state;
  info.link_layer = attr.link_layer;
  info.active_mtu_bytes = mtu_bytes(attr.active_mtu);
  info.max_mtu_bytes = mtu_bytes(attr.max_mtu);
  info.rate_gbps = rate_gbps_from(attr.active_speed, attr.active_width);
  if (info.rate_gbps == 0) info.rate_gbps = rate_from_sysfs(context, port);
  info.lid = attr.lid;
  info.max_message_bytes = attr.max_msg_sz;
  info.netdev = netdev_of(context, port);
  info.mac = mac_of(info.netdev);
  return info;
}

std::string state_hint(const Context& context, const PortInfo& port) {
  if (context.kind() == DeviceKind::kSoftware || context.kind() == DeviceKind::kSimulated) {
    if (context.firmware().starts_with("softnic"))
      return "SOFTNIC has port=down for it: leave that out, or choose another device with " +
             own_flag<&EndSpec::device>();
  }
  if (!port.netdev.empty()) {
    return fmt::format("bring the link up: ip link set {} up (and check the cable and the switch)",
                       port.netdev);
  }
  if (port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
    return port.state == IBV_PORT_INIT
               ? "the link is up but no subnet manager has configured it: start opensm or ask for "
                 "it"
               : "check the cable and the switch, and that a subnet manager runs";
  }
  return fmt::format(
      "bring its network interface up (rdma link show {}), or choose another device "
      "with {}; gdrperf devices lists them",
      context.name(), own_flag<&EndSpec::device>());
}

PortInfo choose_port(const Context& context, int requested) {
  if (requested != 0) {
    PortInfo port = query_port(context, requested);
    if (port.active()) return port;
    throw Error(
        ExitCode::kEnvironment,
        fmt::format("{} port {} is {}, not ACTIVE", context.name(), port.number, port.state_name()),
        state_hint(context, port));
  }
  std::vector<PortInfo> ports;
  std::vector<std::string> states;
  for (int port = 1; port <= context.ports(); ++port) {
    ports.push_back(query_port(context, port));
    if (ports.back().active()) return ports.back();
    states.push_back(fmt::format("port {} is {}", port, ports.back().state_name()));
  }
  if (ports.empty()) {
    throw Error(ExitCode::kEnvironment, fmt::format("{} has no port", context.name()));
  }
  throw Error(ExitCode::kEnvironment,
              fmt::format("{} has no ACTIVE port: {}", context.name(), fmt::join(states, ", ")),
              state_hint(context, ports.front()));
}

double rate_gbps_from(std::uint32_t active_speed, int active_width) {
  double lane_gbps = 0;
  switch (active_speed) {
    case 1: lane_gbps = 2.5; break;
    case 2: lane_gbps = 5; break;
    case 4: lane_gbps = 10; break;  // QDR
    case 8: lane_gbps = 10; break;  // FDR10
    case 16: lane_gbps = 14; break;
    case 32: lane_gbps = 25; break;
    case 64: lane_gbps = 50; break;
    case 128: lane_gbps = 100; break;
    case 256: lane_gbps = 200; break;
    default: break;
  }
  int lanes = 0;
  switch (active_width) {
    case 1: lanes = 1; break;
    case 2: lanes = 4; break;
    case 4: lanes = 8; break;
    case 8: lanes = 12; break;
    case 16: lanes = 2; break;
    default: break;
  }
  return lane_gbps * lanes;
}

int mtu_bytes(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << static_cast<int>(mtu) : 0;
}

std::string pci_address(const Context& context) { return pci_address_of(context.name()); }

int numa_node(const Context& context) {
  return numa_node_of(context.name());
}

}  // namespace gdrperf::verbs
