#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/doctor/machine.h"
#include "gdrperf/topo/pci_tree.h"
#include "doctor/survey/lspci.h"
#include "doctor/survey/modules.h"
#include "doctor/survey/platform.h"

namespace gdrperf::doctor {

/// One PCI function, from sysfs.
struct PciFunction {
  std::string address;               ///< "0000:3b:00.0"
  std::string vendor;                ///< "0x15b3"
  std::string device;                ///< "0x1021"
  std::string class_code;            ///< "0x020000"
  Outside driver;                    ///< "" when none is bound
  std::vector<std::string> bridges;  ///< above it, from the root port down
  std::string root;                  ///< its root bus: "pci0000:3a"

  bool is_nvidia_gpu() const { return vendor == "0x10de" && class_code.starts_with("0x03"); }
  /// An AMD GPU to compute on: VGA alone is a console.
  bool is_amd_gpu() const {
    return vendor == "0x1002" &&
           (class_code.starts_with("0x0302") || class_code.starts_with("0x0380") ||
            class_code.starts_with("0x1200") ||
            (class_code.starts_with("0x0300") && driver == "amdgpu"));
  }
  bool is_gpu() const { return is_nvidia_gpu() || is_amd_gpu(); }
  /// The function that carries a ConnectX-8's data to GPUs (Data Direct).
  bool is_data_direct() const { return vendor == "0x15b3" && device == "0x2100"; }
  bool is_network() const { return class_code.starts_with("0x02"); }
};

/// One port of an RDMA device: from sysfs or from captured text.
struct Port {
  Outside device;
  int number = 1;
  std::string adapter;            ///< PCI address without the function: "0000:3d:00"; "": unknown
  std::string state;              ///< "ACTIVE", "DOWN", "INIT"; "": unknown
  std::string phys_state;         ///< "LinkUp", "Polling", "Disabled"; "": unknown
  std::string link_layer;         ///< "Ethernet", "InfiniBand"; "": unknown
  Outside netdev;                 ///< "": unknown
  std::optional<bool> netdev_up;  ///< `ip link set ... up` was done
  std::optional<bool> netdev_carrier;
  int netdev_mtu = 0;  ///< 0: unknown
  int active_mtu = 0;
  bool mtu_estimated = false;  ///< active_mtu follows from the interface's
  int max_mtu = 0;
  double rate_gbps = 0;
  std::optional<std::vector<verbs::Gid>> gids;

  bool active() const { return state == "ACTIVE"; }
  std::string subject() const { return printable(device) + "/" + std::to_string(number); }
};

struct RdmaDevice {
  Outside name;
  Outside driver;           ///< kernel driver, "" when there is none
  std::string pci_address;  ///< "" when it is on no bus
  bool in_kernel = false;   ///< sysfs knows it; the software device it does not
  bool iwarp = false;
  bool nvswitch = false;                   ///< manages NVSwitches: no adapter of the network
  std::optional<verbs::DeviceInfo> verbs;  ///< as libibverbs shows it
  std::vector<Port> ports;

  bool hardware() const { return !pci_address.empty(); }
};

/// Facts that several checks ask about, looked up once. Borrows the machine.
struct Survey {
  const Machine& machine;
  std::vector<RdmaDevice> rdma;
  topo::PciTree tree;  ///< the PCI model; what is below is by name what checks ask of single functions
  std::vector<PciFunction> pci;
  std::vector<Module> modules;
  Platform platform;
  bool container = false;    ///< as the platform has it
  bool verbs_known = false;  ///< what libibverbs shows is known
  std::vector<Port> ports;   ///< of all devices

  /// NVIDIA's.
  std::vector<const PciFunction*> gpus() const;
  std::vector<const PciFunction*> amd_gpus() const;
  std::vector<const PciFunction*> data_direct() const;
  const PciFunction* function(std::string_view address) const;
  /// PCI functions of RDMA devices, each once.
  std::vector<const PciFunction*> nics() const;
  bool any_kernel_device() const;
  bool any_hardware() const;
  bool loaded(std::string_view module) const { return find_module(modules, module) != nullptr; }
};

Survey look_at(const Machine& machine);

/// First line of a file of the machine, trimmed; "" when it cannot be read.
std::string line_of(const Machine& machine, const std::string& path);

/// IOMMU group of a PCI function, "" when it has none.
std::string iommu_group(const Machine& machine, std::string_view address);

/// GIDs of a port as sysfs shows them; nothing where it shows no table.
std::optional<std::vector<verbs::Gid>> sysfs_gids(const Machine& machine,
                                                  const std::string& port_folder);

/// Install command of this distribution: "sudo apt-get install DEB" or
/// "sudo dnf install RPM".
std::string install_command(const Machine& machine, std::string_view deb, std::string_view rpm);

}  // namespace gdrperf::doctor
