// hwloc XML, https://www.open-mpi.org/projects/hwloc/doc/ ("Importing and exporting topologies"):
// <object type="..."> elements in each other. Version 1 has no version attribute.
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "topo/readers/captured_text.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/topo/readers.h"
#include "topo/readers/read_parsed.h"
#include "topo/readers/tree_limits.h"
#include "topo/readers/xml.h"

namespace gdrperf::topo {
namespace {

/// "0604 [8086:3408] [0000:0000] 13 00": class, IDs, subsystem, revision.
struct PciType {
  std::uint32_t class_code = 0, vendor = 0, device = 0, subvendor = 0, subdevice = 0;
};

std::optional<PciType> parse_pci_type(std::string_view text) {
  PciType type;
  const auto field = [&](std::size_t at, std::uint32_t& value) {
    if (text.size() < at + 4) return false;
    const char* end = text.data() + at + 4;
    const auto [rest, error] = std::from_chars(text.data() + at, end, value, 16);
    return error == std::errc() && rest == end;
  };
  if (!field(0, type.class_code) || !field(6, type.vendor) || !field(11, type.device)) {
    return std::nullopt;
  }
  if (field(18, type.subvendor)) field(23, type.subdevice);
  return type;
}

/// "0xffffffff,,0x0000ffff": nodes of a set, the last word being the lowest.
std::optional<std::vector<int>> parse_nodeset(std::string_view text) {
  constexpr std::size_t kMostWords = 64;
  std::vector<std::uint32_t> words;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    if (word == "0xf...f") return std::nullopt;  // every node there may be
    if (word.starts_with("0x")) word.remove_prefix(2);
    std::uint32_t value = 0;
    if (!word.empty()) {
      const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
      if (error != std::errc() || rest != word.data() + word.size()) return std::nullopt;
    }
    words.push_back(value);
    if (comma == std::string_view::npos) break;
    if (words.size() == kMostWords) return std::nullopt;
    text.remove_prefix(comma + 1);
  }
  std::vector<int> nodes;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (int bit = 0; bit < 32; ++bit) {
      if ((words[words.size() - 1 - w] >> bit & 1) != 0) nodes.push_back(static_cast<int>(w) * 32 + bit);
    }
  }
  return nodes;
}

/// Names the kernel's drivers give: "mlx5_0".
bool is_rdma_name(std::string_view name) {
  constexpr std::string_view kStems[] = {"mlx4_", "mlx5_",  "hfi1_", "qib",  "bnxt_re",
                                         "irdma", "cxgb4_", "efa_",  "qedr", "i40iw"};
  for (const std::string_view stem : kStems) {
    if (name.starts_with(stem) && name.size() > stem.size() && name[stem.size()] >= '0' &&
        name[stem.size()] <= '9') {
      return true;
    }
  }
  return false;
}

class HwlocHandler : public XmlHandler {
 public:
  HwlocHandler() { tree_.source = "hwloc"; }

  void start(std::string_view element, const XmlAttributes& attributes) override {
    if (open_.empty()) {
      if (element != "topology") {
        throw error(fmt::format("not a hwloc topology: the outermost element is <{}>, not <topology>",
                                in_quotes(element)));
      }
      start_topology(attributes);
      open_.push_back({});
      return;
    }
    Level level = open_.back();
    level.device = false;
    if (element == "object") start_object(attributes, level);
    if (element == "info" && open_.back().device) take_info(attributes);
    open_.push_back(std::move(level));
  }

  void end(std::string_view) override { open_.pop_back(); }

  void finish() override {
    if (objects_ == 0) throw error("the topology has no objects");
    find_gpus(tree_);
    if (tree_.gpus.size() > kMostGpus) throw error("too many GPUs");
    for (TreeGpu& gpu : tree_.gpus) gpu.uuid = uuids_[gpu.function];
    for (TreeNic& nic : tree_.nics) nic.netdev = netdevs_[nic.function];
    if (tree_.functions.empty()) {
      tree_.notes.emplace_back(
          "no PCI devices in it: record it with 'lstopo --whole-io FILE.xml'");
    }
  }

  PciTree take() { return std::move(tree_); }

 private:
  /// State inside an open element.
  struct Level {
    std::vector<int> numa;
    int root = -1;
    int bridge = -1;    ///< function of the bridge it is in
    int function = -1;  ///< of the PCI device it is in
    bool device = false;  ///< the element is that PCI device or OS device itself
    std::string os_device;
  };

  void start_topology(const XmlAttributes& attributes) {
    tree_.version = std::string(attributes.get("version").value_or("1"));
    const std::string_view version = tree_.version.raw();
    const std::string_view major = version.substr(0, version.find('.'));
    if (major != "1" && major != "2" && major != "3") {
      throw error(fmt::format("hwloc XML of version {} is not known; versions 1, 2 and 3 are",
                              in_quotes(version)));
    }
  }

  void start_object(const XmlAttributes& attributes, Level& level) {
    const auto type = attributes.get("type");
    if (!type) throw error("an object without a type");
    ++objects_;
    if (const auto nodeset = attributes.get("nodeset")) {
      if (auto nodes = parse_nodeset(*nodeset); nodes && !nodes->empty()) level.numa = *nodes;
    }
    if (*type == "Bridge") start_bridge(attributes, level);
    if (*type == "PCIDev") start_device(attributes, level);
    if (*type == "OSDev" && level.function >= 0) start_os_device(attributes, level);
  }

  void start_bridge(const XmlAttributes& attributes, Level& level) {
    const std::string_view kind = attributes.get_or_empty("bridge_type");
    if (kind.starts_with("0-")) {
      const std::string_view name = attributes.get_or_empty("bridge_pci");
      if (name.empty() || name.size() > kMostName) throw error("a host bridge without its buses");
      if (tree_.roots.size() == kMostRoots) throw error("too many host bridges");
      tree_.roots.push_back({std::string(name), {}});
      level.root = static_cast<int>(tree_.roots.size()) - 1;
      level.bridge = -1;
      return;
    }
    level.bridge = add_function(attributes, level, true);
  }

  void start_device(const XmlAttributes& attributes, Level& level) {
    level.function = add_function(attributes, level, false);
    level.device = true;
  }

  int add_function(const XmlAttributes& attributes, const Level& level, bool bridge) {
    const auto address = parse_pci_address(attributes.get_or_empty("pci_busid"));
    if (!address) {
      throw error(fmt::format("{} is no PCI address", in_quotes(attributes.get_or_empty("pci_busid"))));
    }
    if (level.root < 0) throw error("a PCI device outside of any host bridge");
    if (tree_.functions.size() == kMostFunctions) throw error("too many PCI devices");
    PciFunction function;
    function.address = *address;
    function.parent = level.bridge;
    function.root = level.root;
    function.bridge = bridge;
    // A machine without NUMA nodes in its XML is one.
    function.numa = level.numa.empty() ? std::vector<int>{0} : level.numa;
    const auto type = parse_pci_type(attributes.get_or_empty("pci_type"));
    if (!type) {
      throw error(fmt::format("{} is no pci_type", in_quotes(attributes.get_or_empty("pci_type"))));
    }
    function.class_code = static_cast<std::uint16_t>(type->class_code);
    function.vendor = static_cast<std::uint16_t>(type->vendor);
    function.device = static_cast<std::uint16_t>(type->device);
    function.subsystem = type->subvendor << 16 | type->subdevice;
    function.model = std::string(attributes.get_or_empty("name").substr(0, kMostName));
    const std::string_view speed = attributes.get_or_empty("pci_link_speed");
    real_from_chars(speed.data(), speed.data() + speed.size(), function.link_gbytes);
    if (!(function.link_gbytes >= 0 && function.link_gbytes < 1e4)) function.link_gbytes = 0;
    tree_.functions.push_back(std::move(function));
    return static_cast<int>(tree_.functions.size()) - 1;
  }

  void start_os_device(const XmlAttributes& attributes, Level& level) {
    const std::string_view name = attributes.get_or_empty("name");
    if (name.empty()) return;
    if (name.size() > kMostName) throw error("the name of a device is too long");
    level.device = true;
    level.os_device = name;
    const auto function = static_cast<std::size_t>(level.function);
    auto& devices = tree_.functions[function].os_devices;
    if (devices.size() == kMostOsDevices) throw error("too many devices of one PCI function");
    devices.emplace_back(name);
    const OsDevice type = os_device_type(attributes.get_or_empty("osdev_type"), name);
    if (type == OsDevice::kNetwork) netdevs_.emplace(function, name);
    if (type == OsDevice::kRdma) {
      if (!names_.insert(std::string(name)).second) {
        throw error(fmt::format("two RDMA devices are called {}", in_quotes(name)));
      }
      if (tree_.nics.size() == kMostNics) throw error("too many RDMA devices");
      TreeNic nic;
      nic.name = name;
      nic.function = function;
      tree_.nics.push_back(std::move(nic));
    }
  }

  enum class OsDevice { kRdma, kNetwork, kOther };

  /// A number up to version 2, a mask in version 3. Some files of version 2 have
  /// RDMA devices as networks: there the name tells.
  OsDevice os_device_type(std::string_view type, std::string_view name) const {
    int value = -1;
    std::from_chars(type.data(), type.data() + type.size(), value);
    if (value < 0) return OsDevice::kOther;
    if (tree_.version.raw().starts_with("3")) {
      return (value & 32) != 0 ? OsDevice::kRdma
             : (value & 16) != 0 ? OsDevice::kNetwork
                                 : OsDevice::kOther;
    }
    if (value == 3 || (value == 2 && is_rdma_name(name))) return OsDevice::kRdma;
    return value == 2 ? OsDevice::kNetwork : OsDevice::kOther;
  }

  void take_info(const XmlAttributes& attributes) {
    const Level& level = open_.back();
    const std::string_view key = attributes.get_or_empty("name");
    const std::string value(attributes.get_or_empty("value").substr(0, kMostName));
    if (level.function < 0 || value.empty()) return;
    const auto function = static_cast<std::size_t>(level.function);
    if (key == "PCIDevice" || (key == "GPUModel" && tree_.functions[function].model.empty())) {
      tree_.functions[function].model = value;
    }
    if (key == "NVIDIAUUID" || key == "AMDUUID") uuids_.emplace(function, value);
    if (key == "NodeGUID" && !tree_.nics.empty() && tree_.nics.back().name == level.os_device) {
      tree_.nics.back().guid = value;
    }
  }

  PciTree tree_;
  std::vector<Level> open_;
  std::size_t objects_ = 0;
  std::set<std::string> names_;
  std::map<std::size_t, std::string> uuids_;    ///< of GPUs, by function
  std::map<std::size_t, std::string> netdevs_;  ///< the first of a function
};

}  // namespace

PciTree parse_hwloc_xml(std::string_view text, std::string_view name) {
  HwlocHandler handler;
  parse_xml(text, name, handler);
  return handler.take();
}

PciTree read_hwloc_file(const std::string& path) {
  return read_parsed(parse_hwloc_xml, path, kMostCaptureBytes);
}

}  // namespace gdrperf::topo
