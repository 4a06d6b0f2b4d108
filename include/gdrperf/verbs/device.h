#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::verbs {

/// Kind of a verbs device; every record names it, so that no
/// figure of a software path is taken for a NIC's.
enum class DeviceKind {
  kHardware,   ///< a NIC on the PCIe bus (or a virtual function of one)
  kRxe,        ///< the kernel's Soft-RoCE (rdma_rxe)
  kSiw,        ///< the kernel's software iWARP (siw)
  kSoftware,   ///< gdrperf's own software device
  kSimulated,  ///< gdrperf's software device with its link model switched on
};

/// "hardware", "rxe", "siw", "software" or "simulated".
const char* to_string(DeviceKind kind);

/// Facts about a device beyond its name, enough to tell its kind.
struct KindHints {
  std::string_view firmware;     ///< ibv_device_attr::fw_ver
  std::string_view driver;       ///< kernel driver: "rdma_rxe", "siw", "mlx5_core", "" when unknown
  bool has_bus_address = false;  ///< sysfs knows a bus device (PCI) behind it
};
DeviceKind kind_from(const KindHints& hints);

/// Error for a libibverbs that shows no device at all: kEnvironment, with the
/// software device and the doctor as the hint.
Error no_device_error();

/// Owner of one open device; move-only. The ibv_context may be used from
/// several threads, as libibverbs allows.
class Context {
 public:
  /// Opens the device called `name`; empty: the first device with an ACTIVE
  /// port, or the first device when no port of any is ACTIVE (choose_port then
  /// says what is wrong). Throws Error: kUsage for an unknown name (lists those
  /// there are), kEnvironment when there is no device at all or it cannot be
  /// opened. `flag` is what names it on the command line.
  static Context open(const std::string& name = {},
                      const std::string& flag = own_flag<&EndSpec::device>());

  /// Opens a device of ibv_get_device_list (which may be freed afterwards).
  /// Throws Error(kEnvironment).
  explicit Context(ibv_device* device);

  ibv_context* get() const noexcept { return context_.get(); }
  const std::string& name() const noexcept { return name_; }
  DeviceKind kind() const noexcept { return kind_; }
  /// Its ports speak iWARP: no GIDs (gid_table), and rdma_cm alone connects QPs.
  bool iwarp() const noexcept { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }
  const ibv_device_attr_ex& attr() const noexcept { return attr_; }
  /// Number of ports; they are counted from 1.
  int ports() const noexcept { return attr_.orig_attr.phys_port_cnt; }
  /// Kernel driver ("mlx5_core", "rdma_rxe", ...), "" when there is none.
  const std::string& driver() const noexcept { return driver_; }
  const std::string& firmware() const noexcept { return firmware_; }

 private:
  struct Close {
    void operator()(ibv_context* context) const noexcept { ::ibv_close_device(context); }
  };
  std::unique_ptr<ibv_context, Close> context_;
  std::string name_;
  std::string driver_;
  std::string firmware_;
  DeviceKind kind_ = DeviceKind::kHardware;
  ibv_device_attr_ex attr_{};
};

/// "0000:3b:00.0"; "": on no bus, or not known.
std::string pci_address(const Context& context);

/// NUMA node of the device; -1: not known, or on no bus.
int numa_node(const Context& context);

/// State of one port.
struct PortInfo {
  int number = 0;
  ibv_port_state state = IBV_PORT_NOP;
  int link_layer = IBV_LINK_LAYER_UNSPECIFIED;  ///< IBV_LINK_LAYER_*
  int active_mtu_bytes = 0;
  int max_mtu_bytes = 0;
  double rate_gbps = 0;  ///< signalling rate in 1e9 bit/s, width x speed; 0 when unknown
  std::uint16_t lid = 0;
  std::uint32_t max_message_bytes = 0;
  std::string netdev;  ///< network interface ("eth0"), "" when there is none
  std::string mac;     ///< its address "aa:bb:cc:dd:ee:ff", "" when unknown

  bool active() const noexcept { return state == IBV_PORT_ACTIVE; }
  const char* state_name() const noexcept;       ///< "ACTIVE", "DOWN", "INIT", ...
  const char* link_layer_name() const noexcept;  ///< "Ethernet", "InfiniBand" or "unknown"
};

/// Reads one port (1..context.ports()) in whatever state it is. Throws
/// Error(kUsage) for a port the device does not have, kEnvironment when the
/// call fails.
PortInfo query_port(const Context& context, int port);

/// Advice for a port that is not ACTIVE.
std::string state_hint(const Context& context, const PortInfo& port);

/// The port to use: `requested` (from 1), or, for 0, the first ACTIVE one.
/// Throws Error(kEnvironment) naming device, port and state, with what to do
/// about it, when that port is not ACTIVE.
PortInfo choose_port(const Context& context, int requested);

/// Gb/s of a port from the encodings of ibv_port_attr (active_speed,
/// active_width; InfiniBand specification vol. 1, PortInfo), with the nominal
/// rates the kernel prints; 0 for encodings it does not know.
double rate_gbps_from(std::uint32_t active_speed, int active_width);

/// Bytes of an ibv_mtu; 0 for none of its values.
int mtu_bytes(ibv_mtu mtu);

}  // namespace gdrperf::verbs
