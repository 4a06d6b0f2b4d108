#include "gdrperf/verbs/inventory.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "verbs/device_list.h"
#include "verbs/facts.h"
#include "gdrperf/base/file.h"
#include "gdrperf/verbs/mlx5.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

std::string guid_text(std::uint64_t network_order) {
  const std::uint64_t guid = be64toh(network_order);
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff,
                     (guid >> 16) & 0xffff, guid & 0xffff);
}

void read_open_device(ibv_device* device, DeviceInfo& info) {
  const Context context(device);
  info.driver = context.driver();
  info.firmware = context.firmware();
  info.kind = context.kind();
  std::string none;
  info.data_direct = data_direct_function(context.get(), none);
  read_facts(context, info);
  for (int number = 1; number <= context.ports(); ++number) {
    info.ports.push_back({query_port(context, number), gid_table(context, number)});
  }
}

void place(DeviceInfo& info) {
  // Old kernels let an rxe's `device` link point to the NIC below it, which
  // is not what carries its data.
  if (info.kind == DeviceKind::kRxe) return;
  info.pci_address = pci_address_of(info.name);
  if (info.pci_address.empty()) info.pci_address = declared_pci_address_of(info.name);
  info.numa_node = numa_node_of(info.name);
}

DeviceInfo unopened(ibv_device* device) {
  DeviceInfo info;
  info.name = ::ibv_get_device_name(device);
  info.node_guid = guid_text(::ibv_get_device_guid(device));
  info.driver = driver_of(info.name);
  info.kind = kind_from({"", info.driver, !pci_address_of(info.name).empty()});
  return info;
}

DeviceInfo opened(ibv_device* device) {
  DeviceInfo info = unopened(device);
  try {
    read_open_device(device, info);
  } catch (const Error& error) {
    info.error = error.what();
  }
  place(info);
  return info;
}

// "4: ACTIVE"
bool is_active(const std::string& state) {
  return state.starts_with(fmt::format("{}:", static_cast<int>(IBV_PORT_ACTIVE)));
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  const DeviceList list;
  std::vector<DeviceInfo> devices;
  for (ibv_device* device : list.devices()) devices.push_back(opened(device));
  return devices;
}

std::vector<DeviceInfo> list_devices(const std::vector<std::string>& names) {
  const DeviceList list;
  std::vector<DeviceInfo> devices;
  for (ibv_device* device : list.devices()) {
    if (std::find(names.begin(), names.end(), ::ibv_get_device_name(device)) != names.end())
      devices.push_back(opened(device));
  }
  return devices;
}

std::vector<DeviceInfo> list_unopened() {
  const DeviceList list;
  std::vector<DeviceInfo> devices;
  for (ibv_device* device : list.devices()) {
    devices.push_back(unopened(device));
    place(devices.back());
  }
  return devices;
}

bool has_active_port(const std::string& device) {
  constexpr int kMostPorts = 255;  // uint8_t in ibv_query_port
  for (int port = 1; port <= kMostPorts; ++port) {
    const std::string state = read_line_or_empty(fmt::format("{}/ports/{}/state", class_folder(device), port));
    if (is_active(state)) return true;
    if (!state.empty()) continue;
    if (port > 1) return false;
    break;
  }
  for (const DeviceInfo& info : list_devices({device})) {
    if (std::any_of(info.ports.begin(), info.ports.end(), [](const PortDetails& each) { return each.port.active(); }))
      return true;
  }
  return false;
}

}  // namespace gdrperf::verbs
