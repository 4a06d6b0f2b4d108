#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"

namespace gdrperf::verbs {

struct PortDetails {
  PortInfo port;
  std::vector<Gid> gids;  ///< by index
};

/// A limit or capability by the name that ibv_query_device_ex(3) gives it.
struct DeviceLimit {
  std::string name;
  std::uint64_t value = 0;
};

/// One of the ways that a software device's data may take, in its own words.
struct DataPath {
  std::string way;    ///< "window", "kernel", "agent", "gpu", "tcp"
  std::string state;  ///< "first", "fallback" or "off"
  std::string note;   ///< what travels that way, or why nothing does
};

/// One device of the inventory. When it could not be opened, `error` says why
/// and only name, node_guid and what sysfs knows is filled in.
struct DeviceInfo {
  std::string name;
  std::string node_guid;    ///< as ibv_devinfo prints it: "0c42:a103:0065:1a2b"
  std::string pci_address;  ///< "0000:3b:00.0", "" for a device that is on no bus and declares none
  std::string driver;       ///< kernel driver, "" when there is none
  std::string firmware;
  int numa_node = -1;  ///< -1: unknown
  std::string data_direct;  ///< PCI address of its DMA function for GPU memory (Data Direct); "": none
  DeviceKind kind = DeviceKind::kHardware;
  std::vector<PortDetails> ports;
  std::vector<DeviceLimit> limits;
  std::string atomics;           ///< "none", "within the device" or "global"; "" when not open
  std::vector<std::string> odp;  ///< what on-demand paging does on RC: "send", "write", ...
  /// Ways in which data travels; empty for devices that do not say, as no NIC does.
  std::vector<DataPath> data_paths;
  std::string error;
};

/// The lines of a software device's class file `data_path`, "WAY STATE WORDS";
/// lines that are not of that form are left out.
std::vector<DataPath> parse_data_paths(std::string_view text);

/// Every RDMA device libibverbs shows, in its order; empty when there is none
/// (no_device_error() is the message for that). A device that cannot be opened
/// is listed with its error. Throws nothing else than std::bad_alloc.
std::vector<DeviceInfo> list_devices();
/// Those of these names alone.
std::vector<DeviceInfo> list_devices(const std::vector<std::string>& names);

/// Facts about each device without opening it: name, GUID, driver, kind, place on the bus.
std::vector<DeviceInfo> list_unopened();

/// Whether a port of the device is active. Asks sysfs; opens the device where that does not say.
bool has_active_port(const std::string& device);

}  // namespace gdrperf::verbs
