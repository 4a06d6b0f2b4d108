#pragma once

#include <string>
#include <vector>

#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"

namespace gdrperf::verbs {

struct PortDetails {
  PortInfo port;
  std::vector<Gid> gids;  ///< by index
};

/// One device of the inventory. When it could not be opened, `error` says why
/// and only name, node_guid and what sysfs knows is filled in.
struct DeviceInfo {
  std::string name;
  std::string node_guid;    ///< as ibv_devinfo prints it: "0c42:a103:0065:1a2b"
  std::string pci_address;  ///< "0000:3b:00.0", "" for a device that is on no bus
  std::string driver;       ///< kernel driver, "" when there is none
  std::string firmware;
  int numa_node = -1;  ///< -1: unknown
  DeviceKind kind = DeviceKind::kHardware;
  std::vector<PortDetails> ports;
  std::string error;
};

/// Every RDMA device libibverbs shows, in its order; empty when there is none
/// (no_device_error() is the message for that). A device that cannot be opened
/// is listed with its error. Throws nothing else than std::bad_alloc.
std::vector<DeviceInfo> list_devices();

}  // namespace gdrperf::verbs
