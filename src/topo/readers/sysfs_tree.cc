// Linux: /sys/bus/pci/devices/ADDRESS, whose link's target tells the bridges above it
// (Documentation/ABI/testing/sysfs-bus-pci).
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/error.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/readers.h"
#include "gdrperf/topo/sysfs_files.h"
#include "topo/readers/copied_files.h"
#include "topo/readers/tree_limits.h"
#include "topo/readers/vpd.h"
#include "topo/vendors.h"

namespace gdrperf::topo {
namespace {

namespace fs = std::filesystem;

using CpuMask = std::vector<std::uint32_t>;  ///< lowest word first

constexpr const char* kPciDevices = "/sys/bus/pci/devices/";
constexpr const char* kRdmaDevices = "/sys/class/infiniband/";

std::string line_of(const SysfsFiles& files, const std::string& path) {
  constexpr std::size_t kMostLine = 4096;  // as much as an attribute of sysfs has
  std::string line = files.read(path, kMostLine);
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

std::uint32_t hex_of(const SysfsFiles& files, const std::string& path) {
  std::string text = line_of(files, path);
  if (text.starts_with("0x")) text.erase(0, 2);
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

double number_of(const SysfsFiles& files, const std::string& path) {
  const std::string text = line_of(files, path);
  double value = 0;
  real_from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 && value < 1e6 ? value : 0;
}

PcieLink link_of(const SysfsFiles& files, const std::string& folder, const std::string& which) {
  PcieLink link{number_of(files, folder + "/" + which + "_link_speed"),
                static_cast<int>(number_of(files, folder + "/" + which + "_link_width"))};
  // A virtual function has no link of its own, and reads as 0 or all ones.
  if (link.width > 32) link.width = 0;
  return link.known() ? link : PcieLink{};
}

/// The rate of the fastest port that is up in 1e9 bit/s: a port that is down shows some rate it never had. 0: none is.
double port_rate_of(const SysfsFiles& files, const std::string& device) {
  double most = 0;
  for (const std::string& port : files.list(device + "/ports")) {
    const std::string folder = device + "/ports/" + port;
    if (line_of(files, folder + "/state").find("ACTIVE") == std::string::npos) continue;
    most = std::max(most, number_of(files, folder + "/rate"));
  }
  return most;
}

bool has_infiniband_port(const SysfsFiles& files, const std::string& device) {
  const auto ports = files.list(device + "/ports");
  return std::any_of(ports.begin(), ports.end(), [&](const std::string& port) {
    return line_of(files, device + "/ports/" + port + "/link_layer") == "InfiniBand";
  });
}

CpuMask parse_mask(std::string text) {
  CpuMask mask;
  while (!text.empty() && mask.size() < 512) {
    const std::size_t comma = text.rfind(',');
    const std::string word = comma == std::string::npos ? text : text.substr(comma + 1);
    std::uint32_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value, 16);
    mask.push_back(value);
    text.resize(comma == std::string::npos ? 0 : comma);
  }
  return mask;
}

bool intersect(const CpuMask& one, const CpuMask& other) {
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if ((one[i] & other[i]) != 0) return true;
  }
  return false;
}

/// CPUs of each NUMA node that has some.
std::map<int, CpuMask> read_nodes(const SysfsFiles& files) {
  std::map<int, CpuMask> nodes;
  const std::string folder = "/sys/devices/system/node/";
  for (const std::string& name : files.list(folder)) {
    if (!name.starts_with("node")) continue;
    int node = -1;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 4, end, node);
    if (error != std::errc() || rest != end || node < 0) continue;
    CpuMask cpus = parse_mask(line_of(files, folder + name + "/cpumap"));
    if (std::any_of(cpus.begin(), cpus.end(), [](std::uint32_t word) { return word != 0; })) {
      nodes[node] = std::move(cpus);
    }
  }
  return nodes;
}

void add_config(const SysfsFiles& files, PciFunction& function, const std::string& folder) {
  constexpr std::size_t kPlain = 256;
  constexpr std::size_t kExtended = 4096;
  const PciConfig config = parse_pci_config(files.read(folder + "/config", function.bridge ? kExtended : kPlain));
  function.port_type = config.port_type;
  function.max_payload_bytes = config.max_payload_bytes;
  function.max_read_request_bytes = config.max_read_request_bytes;
  if (!function.link.known()) function.link = config.link;
  if (!function.link_max.known()) function.link_max = config.link_max;
  if (!function.bridge) return;
  if (config.has_extended) {
    function.acs_redirect = config.acs_redirect;
  } else {
    function.acs_unknown = "its extended configuration space cannot be read (only root may)";
  }
}

void add_details(const SysfsFiles& files, PciFunction& function, const std::string& folder) {
  function.link = link_of(files, folder, "current");
  function.link_max = link_of(files, folder, "max");
  add_config(files, function, folder);
  const std::string name = files.link_name(folder + "/iommu_group");
  int number = -1;
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (!name.empty()) function.iommu_group = number;
  function.iommu_type = line_of(files, folder + "/iommu_group/type");
}

/// Reads the functions of one sysfs.
class SysfsReader {
 public:
  SysfsReader(const SysfsFiles& files, std::string name)
      : files_(files), name_(std::move(name)), nodes_(read_nodes(files)) {
    tree_.source = "sysfs";
  }

  PciTree read() {
    for (const std::string& name : files_.list(kPciDevices)) {
      if (parse_pci_address(name)) add(name);
    }
    for (const std::string& name : files_.list(kRdmaDevices)) add_listed_nic(name);
    mark_nvidia_gpus();
    find_gpus(tree_);
    if (tree_.gpus.size() > kMostGpus || tree_.nics.size() > kMostNics) {
      throw usage_error(fmt::format("{}: too many GPUs or NICs", name_));
    }
    for (TreeGpu& gpu : tree_.gpus) gpu.uuid = uuid_of(gpu);
    pair_dma_functions(tree_, [&](const PciFunction& function) {
      return vpd_of(kPciDevices + to_string(function.address)).v3;
    });
    if (flat_ > 0) {
      tree_.notes.push_back(fmt::format(
          "{} of {} functions are plain folders, not links into /sys/devices: what they hang on "
          "is not recorded",
          flat_, tree_.functions.size()));
    }
    return std::move(tree_);
  }

 private:
  void add(const std::string& name) {
    const std::string entry = kPciDevices + name;
    const std::string path = files_.resolve(entry);
    if (path == entry) {
      if (index_.contains(name)) return;
      ++flat_;
      add_function(name, entry, -1, -1);
      return;
    }
    int parent = -1;
    int root = -1;
    for (std::size_t begin = 1; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string step = path.substr(begin, end - begin);
      if (step.starts_with("pci") && root < 0 && step.find(':') != std::string::npos) {
        root = root_named(step.substr(3));
      } else if (root >= 0 && parse_pci_address(step)) {
        const auto known = index_.find(step);
        parent = known != index_.end() ? known->second : add_function(step, path.substr(0, end), parent, root);
      } else if (root >= 0 && parent >= 0) {
        break;
      }
      begin = end + 1;
    }
  }

  int root_named(const std::string& name) {
    const auto found = std::find_if(tree_.roots.begin(), tree_.roots.end(),
                                    [&](const PciRoot& root) { return root.name == name; });
    if (found != tree_.roots.end()) return static_cast<int>(found - tree_.roots.begin());
    tree_.roots.push_back({name, {}});
    return static_cast<int>(tree_.roots.size()) - 1;
  }

  int add_function(const std::string& name, const std::string& folder, int parent, int root) {
    if (tree_.functions.size() == kMostFunctions) {
      throw usage_error(fmt::format("{}: too many PCI functions", name_));
    }
    PciFunction function;
    function.address = *parse_pci_address(name);
    function.parent = parent;
    function.root = root;
    function.class_code = static_cast<std::uint16_t>(hex_of(files_, folder + "/class") >> 8);
    function.bridge = function.class_code == 0x0604;
    function.vendor = static_cast<std::uint16_t>(hex_of(files_, folder + "/vendor"));
    function.device = static_cast<std::uint16_t>(hex_of(files_, folder + "/device"));
    function.subsystem = hex_of(files_, folder + "/subsystem_vendor") << 16 |
                         (hex_of(files_, folder + "/subsystem_device") & 0xffff);
    function.numa = numa_of(folder);
    add_details(files_, function, folder);
    const int index = static_cast<int>(tree_.functions.size());
    tree_.functions.push_back(std::move(function));
    index_[name] = index;
    add_os_devices(folder, static_cast<std::size_t>(index));
    return index;
  }

  std::vector<int> numa_of(const std::string& folder) const {
    const std::string text = line_of(files_, folder + "/numa_node");
    int node = -1;
    std::from_chars(text.data(), text.data() + text.size(), node);
    if (node >= 0) return {node};
    // The firmware names no node: what CPUs it calls local tells, if not all.
    const CpuMask local = parse_mask(line_of(files_, folder + "/local_cpus"));
    std::vector<int> found;
    for (const auto& [number, cpus] : nodes_) {
      if (intersect(local, cpus)) found.push_back(number);
    }
    return found;
  }

  void add_os_devices(const std::string& folder, std::size_t index) {
    const std::vector<std::string> netdevs = files_.list(folder + "/net");
    for (const std::string& name : files_.list(folder + "/infiniband")) {
      if (tree_.nic(name) == nullptr && name.size() <= kMostName)
        add_nic(index, name, folder + "/infiniband/" + name, netdevs);
    }
    std::vector<Outside>& devices = tree_.functions[index].os_devices;
    devices.insert(devices.end(), netdevs.begin(), netdevs.end());
  }

  /// A copy may have the class of RDMA devices and not their folders below the functions. An rxe names its interface
  /// as its parent; its device, if any, is the NIC's below.
  void add_listed_nic(const std::string& name) {
    const std::string folder = kRdmaDevices + name;
    if (tree_.nic(name) != nullptr || name.size() > kMostName || !line_of(files_, folder + "/parent").empty()) return;
    const std::string device = files_.resolve(folder + "/device");
    const auto found = index_.find(device.substr(device.rfind('/') + 1));
    if (found == index_.end()) return;
    add_nic(static_cast<std::size_t>(found->second), name, folder, {});
  }

  void add_nic(std::size_t index, const std::string& name, const std::string& folder,
               const std::vector<std::string>& netdevs) {
    PciFunction& function = tree_.functions[index];
    TreeNic nic;
    nic.name = name;
    nic.function = index;
    nic.guid = line_of(files_, folder + "/node_guid");
    nic.rate_gbps = port_rate_of(files_, folder);
    nic.infiniband = has_infiniband_port(files_, folder);
    if (nic.rate_gbps == 0 && function.product.empty())
      function.product = vpd_of(kPciDevices + to_string(function.address)).product;
    if (!netdevs.empty()) nic.netdev = netdevs.front();
    tree_.nics.push_back(std::move(nic));
    function.os_devices.push_back(name);
  }

  /// Where the dump has no vendors, the driver's list of its GPUs tells.
  void mark_nvidia_gpus() {
    for (const std::string& name : files_.list("/proc/driver/nvidia/gpus")) {
      const auto found = index_.find(name);
      if (found == index_.end()) continue;
      PciFunction& function = tree_.functions[static_cast<std::size_t>(found->second)];
      if (function.vendor == 0) function.vendor = 0x10de;
    }
  }

  std::string uuid_of(const TreeGpu& gpu) const {
    const std::string address = to_string(tree_.functions[gpu.function].address);
    std::istringstream in(files_.read("/proc/driver/nvidia/gpus/" + address + "/information", 4096));
    constexpr std::string_view kKey = "GPU UUID:";
    for (std::string line; std::getline(in, line) && line.size() < kMostName;) {
      if (!line.starts_with(kKey)) continue;
      const std::size_t at = line.find_first_not_of(" \t", kKey.size());
      // The driver shows question marks to those it does not trust.
      if (at == std::string::npos || line.find('?', at) != std::string::npos) return {};
      return line.substr(at);
    }
    return {};
  }

  Vpd vpd_of(const std::string& folder) const { return parse_vpd(files_.read(folder + "/vpd", kMostVpdBytes)); }

  const SysfsFiles& files_;
  std::string name_;  ///< of what is read, for errors
  std::map<int, CpuMask> nodes_;
  PciTree tree_;
  std::map<std::string, int> index_;  ///< address as the kernel writes it -> function
  std::size_t flat_ = 0;
};

PciTree read_copy(const fs::path& sys, const fs::path& proc) {
  return SysfsReader(CopiedFiles(sys, proc), sys.string()).read();
}

bool is_sys(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "bus/pci/devices", error);
}

}  // namespace

PciTree read_sysfs(const SysfsFiles& files, const std::string& name) { return SysfsReader(files, name).read(); }

PciTree read_sysfs(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    throw usage_error(fmt::format("{}: is no directory", root),
                      "unpack the dump and give the directory that holds its 'sys'");
  }
  if (is_sys(fs::path(root) / "sys")) {
    return read_copy(fs::path(root) / "sys", fs::path(root) / "proc");
  }
  if (is_sys(root)) return read_copy(root, fs::path(root) / ".." / "proc");
  throw usage_error(fmt::format("{}: no sysfs: neither sys/bus/pci/devices nor bus/pci/devices is "
                                "in it",
                                root),
                    "give the directory that holds the dump's 'sys'");
}

bool has_gpu_or_nic(const SysfsFiles& files) {
  for (const std::string& name : files.list(kRdmaDevices)) {
    // Some hang on a device of their own below the function.
    if (files.resolve(kRdmaDevices + name).find("/pci") != std::string::npos) return true;
  }
  for (const std::string& name : files.list(kPciDevices)) {
    const auto kind = hex_of(files, kPciDevices + name + "/class") >> 16;
    const auto vendor = hex_of(files, kPciDevices + name + "/vendor");
    const bool display_or_accelerator = kind == 0x03 || kind == 0x12;
    if (display_or_accelerator && (vendor == kNvidia || vendor == kAmd)) return true;
  }
  return false;
}

void add_sysfs_details(PciTree& tree, const std::string& sys) {
  const PciTree known = read_copy(sys, fs::path(sys) / ".." / "proc");
  std::map<PciAddress, std::size_t> index;
  for (std::size_t i = 0; i < known.functions.size(); ++i) index[known.functions[i].address] = i;
  for (PciFunction& function : tree.functions) {
    const auto found = index.find(function.address);
    if (found == index.end()) continue;
    const PciFunction& from = known.functions[found->second];
    function.link = from.link;
    function.link_max = from.link_max;
    function.max_payload_bytes = from.max_payload_bytes;
    function.max_read_request_bytes = from.max_read_request_bytes;
    function.port_type = from.port_type;
    function.acs_redirect = from.acs_redirect;
    function.acs_unknown = from.acs_unknown;
    function.iommu_group = from.iommu_group;
    function.iommu_type = from.iommu_type;
    function.product = from.product;
  }
  for (TreeGpu& gpu : tree.gpus) {
    for (const TreeGpu& from : known.gpus) {
      if (known.functions[from.function].address == tree.functions[gpu.function].address) {
        gpu.uuid = from.uuid;
      }
    }
  }
  for (TreeNic& nic : tree.nics) {
    const TreeNic* from = known.nic(nic.name.raw());
    if (from != nullptr && nic.guid.empty()) nic.guid = from->guid;
    if (from != nullptr && nic.netdev.empty()) nic.netdev = from->netdev;
    if (from != nullptr) nic.rate_gbps = from->rate_gbps;
  }
  add_dma_functions(tree, known);
}

}  // namespace gdrperf::topo
