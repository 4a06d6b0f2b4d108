#include "gdrperf/verbs/inventory.h"

#include <endian.h>

#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "device_list.h"
#include "facts.h"
#include "sysfs.h"

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

}  // namespace

std::vector<DeviceInfo> list_devices() {
  const DeviceList list;
  std::vector<DeviceInfo> devices;
  for (ibv_device* device : list.devices()) {
    DeviceInfo info;
    info.name = ::ibv_get_device_name(device);
    info.node_guid = guid_text(::ibv_get_device_guid(device));
    info.driver = driver_of(info.name);
    info.kind = kind_from({"", info.driver, !pci_address_of(info.name).empty()});
    try {
      read_open_device(device, info);
    } catch (const Error& error) {
      info.error = error.what();
    }
    place(info);
    devices.push_back(std::move(info));
  }
  return devices;
}

}  // namespace gdrperf::verbs
