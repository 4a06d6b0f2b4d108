#include "verbs/sysfs.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "gdrperf/base/file.h"
#include "gdrperf/topo/pci.h"

namespace gdrperf::verbs {
namespace fs = std::filesystem;
namespace {

int node_in(const std::string& file) {
  const std::string text = read_line_or_empty(file);
  int node = -1;
  std::from_chars(text.data(), text.data() + text.size(), node);
  return node;
}

}  // namespace

std::string class_folder(std::string_view device) {
  return "/sys/class/infiniband/" + std::string(device);
}

std::string pci_address_of(std::string_view device) {
  std::error_code error;
  fs::path folder = fs::canonical(class_folder(device) + "/device", error);
  if (error) return {};
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (topo::parse_pci_address(name)) return name;
  }
  return {};
}

std::string declared_pci_address_of(std::string_view device) {
  constexpr std::string_view kKey = "PCI_SLOT_NAME=";
  std::ifstream in(class_folder(device) + "/device/uevent");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kKey)) {
      const std::string address = line.substr(kKey.size());
      return topo::parse_pci_address(address) ? address : std::string();
    }
  }
  return {};
}

std::string driver_of(std::string_view device) {
  std::error_code error;
  // rdma_rxe's own attribute (the interface it sits on). Asked for first: old
  // kernels let `device` of an rxe point to the NIC below it.
  if (fs::exists(class_folder(device) + "/parent", error)) return "rdma_rxe";
  const fs::path link = fs::read_symlink(class_folder(device) + "/device/driver", error);
  if (!error) return link.filename().string();
  const std::string pci = pci_address_of(device);
  // An iWARP device on no bus.
  const bool iwarp = read_line_or_empty(class_folder(device) + "/node_type").find("RNIC") != std::string::npos;
  if (pci.empty()) return iwarp ? "siw" : "";
  const fs::path pci_link = fs::read_symlink("/sys/bus/pci/devices/" + pci + "/driver", error);
  return error ? std::string() : pci_link.filename().string();
}

int numa_node_of_pci(const std::string& pci_address) {
  return pci_address.empty() ? -1 : node_in("/sys/bus/pci/devices/" + pci_address + "/numa_node");
}

int numa_node_of(std::string_view device) {
  const int node = node_in(class_folder(device) + "/device/numa_node");
  if (node >= 0) return node;
  const std::string address = pci_address_of(device);
  return numa_node_of_pci(address.empty() ? declared_pci_address_of(device) : address);
}

std::string mac_of(const std::string& netdev) {
  if (netdev.empty() || netdev.find('/') != std::string::npos) return {};
  return read_line_or_empty("/sys/class/net/" + netdev + "/address");
}

}  // namespace gdrperf::verbs
