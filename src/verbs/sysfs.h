#pragma once

#include <string>
#include <string_view>

namespace gdrperf::verbs {

/// "/sys/class/infiniband/NAME".
std::string class_folder(std::string_view device);

/// PCI address ("0000:3b:00.0") of the bus device behind `device`: the last
/// component of the resolved `device` link that is one (a device may hang on
/// an auxiliary bus below its PCI function); "" when there is none.
std::string pci_address_of(std::string_view device);

/// PCI address that `device/uevent` names (PCI_SLOT_NAME) where `device` is no
/// link to a place on the bus: what a software device declares; "" when none.
std::string declared_pci_address_of(std::string_view device);

/// NUMA node of the device: what `device/numa_node` says, else that of its PCI
/// function (declared ones too); -1 when unknown.
int numa_node_of(std::string_view device);

/// Kernel driver of the device, "" when sysfs does not say.
std::string driver_of(std::string_view device);

/// NUMA node of a PCI function, -1 when unknown.
int numa_node_of_pci(const std::string& pci_address);

/// Hardware address of a network interface, "" when unknown.
std::string mac_of(const std::string& netdev);

}  // namespace gdrperf::verbs
