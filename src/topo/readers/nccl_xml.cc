// NCCL's topology XML (src/graph/xml.cc of NCCL): <system><cpu><pci>...<gpu/><nic><net/></nic>.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/topo/readers.h"
#include "topo/readers/captured_text.h"
#include "topo/readers/read_parsed.h"
#include "topo/readers/tree_limits.h"
#include "topo/readers/xml.h"

namespace gdrperf::topo {
namespace {

constexpr std::size_t kMostText = 4096;

std::uint32_t hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() ? value : 0;
}

/// The number at the front of "16.0 GT/s PCIe", within reason.
double leading_number(std::string_view text) {
  double value = 0;
  real_from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 && value < 1e9 ? value : 0;
}

class NcclHandler : public XmlHandler {
 public:
  NcclHandler() {
    tree_.source = "nccl-xml";
    tree_.of_nccl = true;
  }

  void start(std::string_view element, const XmlAttributes& attributes) override {
    if (open_.empty()) {
      if (element != "system") {
        throw error(fmt::format("not a NCCL topology: the outermost element is <{}>, not <system>",
                                in_quotes(element)));
      }
      tree_.version = std::string(attributes.get_or_empty("version").substr(0, kMostName));
      open_.push_back({});
      return;
    }
    Level level = open_.back();
    if (element == "cpu") start_cpu(attributes, level);
    if (element == "pci") start_pci(attributes, level);
    if (element == "gpu") start_gpu(attributes, level);
    if (element == "net") start_net(attributes, level);
    if (element == "nic") has_child_.insert(level.function);
    open_.push_back(level);
  }

  void end(std::string_view) override { open_.pop_back(); }

  void finish() override {
    if (tree_.roots.empty()) throw error("the topology has no <cpu>");
    name_devices_by_class();
    for (auto& [name, nodes] : tree_.nets_without_pci) std::sort(nodes.begin(), nodes.end());
    if (tree_.gpus.size() > kMostGpus || tree_.nics.size() > kMostNics) {
      throw error(fmt::format("more than {} GPUs or {} NICs", kMostGpus, kMostNics));
    }
    tree_.notes.emplace_back(
        "NCCL's file leaves out root ports and host bridges: relations are by NCCL's rules, where "
        "PHB is everything within a NUMA node");
  }

  PciTree take() { return std::move(tree_); }

 private:
  struct Level {
    int root = -1;
    int function = -1;  ///< the <pci> it is in
    std::string numa;
  };

  void start_cpu(const XmlAttributes& attributes, Level& level) {
    if (level.root >= 0) throw error("a <cpu> within a <cpu>");
    level.numa = attributes.get_or_empty("numaid").substr(0, kMostName);
    if (tree_.roots.size() == kMostRoots) throw error("too many <cpu>");
    PciRoot root{fmt::format("NUMA {}", level.numa), {}};
    for (const char* name : {"numaid", "affinity", "arch", "vendor"}) {
      if (const auto value = attributes.get(name)) {
        root.attributes.emplace_back(name, value->substr(0, kMostText));
      }
    }
    tree_.roots.push_back(std::move(root));
    level.root = static_cast<int>(tree_.roots.size()) - 1;
  }

  void start_pci(const XmlAttributes& attributes, Level& level) {
    const std::string_view bus_id = attributes.get_or_empty("busid");
    const auto address = parse_pci_address(bus_id);
    if (!address) throw error(fmt::format("{} is no PCI address", in_quotes(bus_id)));
    if (level.root < 0) throw error("a <pci> outside of any <cpu>");
    if (!seen_.insert(*address).second) {
      throw error(fmt::format("the PCI address {} comes twice", to_string(*address)));
    }
    if (tree_.functions.size() == kMostFunctions) throw error("too many <pci>");
    PciFunction function;
    function.address = *address;
    function.parent = level.function;
    function.root = level.root;
    function.class_code = static_cast<std::uint16_t>(hex(attributes.get_or_empty("class")) >> 8);
    function.bridge = function.class_code == 0x0604;
    function.vendor = static_cast<std::uint16_t>(hex(attributes.get_or_empty("vendor")));
    function.device = static_cast<std::uint16_t>(hex(attributes.get_or_empty("device")));
    function.subsystem = hex(attributes.get_or_empty("subsystem_vendor")) << 16 |
                         (hex(attributes.get_or_empty("subsystem_device")) & 0xffff);
    function.link.speed_gts = leading_number(attributes.get_or_empty("link_speed"));
    function.link.width = static_cast<int>(leading_number(attributes.get_or_empty("link_width")));
    if (function.link.width > 32) function.link = {};
    int numa = 0;
    const auto [rest, failed] =
        std::from_chars(level.numa.data(), level.numa.data() + level.numa.size(), numa);
    if (failed == std::errc() && numa >= 0) function.numa = {numa};
    if (level.function >= 0) {
      // A device other devices hang below is a switch, whatever its class says.
      tree_.functions[static_cast<std::size_t>(level.function)].bridge = true;
    }
    tree_.functions.push_back(std::move(function));
    level.function = static_cast<int>(tree_.functions.size()) - 1;
  }

  void start_gpu(const XmlAttributes& attributes, const Level& level) {
    if (level.function < 0) throw error("a <gpu> outside of any <pci>");
    has_child_.insert(level.function);
    int dev = static_cast<int>(tree_.gpus.size());
    const std::string_view text = attributes.get_or_empty("dev");
    std::from_chars(text.data(), text.data() + text.size(), dev);
    const std::string label = fmt::format("GPU{}", dev);
    if (dev < 0 || tree_.gpu(label) != nullptr) {
      throw error(fmt::format("two GPUs have dev {}", in_quotes(text)));
    }
    if (tree_.gpus.size() == kMostGpus) throw error("too many GPUs");
    tree_.gpus.push_back({label, static_cast<std::size_t>(level.function), "", false});
  }

  void start_net(const XmlAttributes& attributes, const Level& level) {
    const std::string name(attributes.get_or_empty("name").substr(0, kMostName));
    if (name.empty()) throw error("a <net> without a name");
    if (level.function < 0) {
      auto& nodes = tree_.nets_without_pci[name];
      if (tree_.nets_without_pci.size() > kMostFunctions || nodes.size() > kMostFunctions) {
        throw error("too many <net>");
      }
      nodes.push_back(level.numa);
      return;
    }
    if (tree_.nic(name) != nullptr) {
      throw error(fmt::format("two <net> are called {}", in_quotes(name)));
    }
    if (tree_.nics.size() == kMostNics) throw error("too many NICs");
    TreeNic nic;
    nic.name = name;
    nic.function = static_cast<std::size_t>(level.function);
    nic.guid = attributes.get_or_empty("guid").substr(0, kMostName);
    nic.rate_gbps = leading_number(attributes.get_or_empty("speed")) / 1000;
    for (const char* attribute : {"port", "gdr", "speed"}) {
      if (const auto value = attributes.get(attribute)) {
        nic.attributes.emplace_back(attribute, value->substr(0, kMostName));
      }
    }
    tree_.nics.push_back(std::move(nic));
  }

  /// Hand-written files name no devices: their classes tell, and their
  /// addresses are their names.
  void name_devices_by_class() {
    for (std::size_t i = 0; i < tree_.functions.size(); ++i) {
      const PciFunction& function = tree_.functions[i];
      if (function.bridge || has_child_.contains(static_cast<int>(i))) continue;
      const bool gpu = function.class_code == 0x0302 || function.class_code == 0x0300;
      const bool known_vendor = function.vendor == 0 || is_gpu_function(0x0302, function.vendor);
      if (gpu && known_vendor) {
        std::size_t number = tree_.gpus.size();
        while (tree_.gpu(fmt::format("GPU{}", number)) != nullptr) ++number;
        tree_.gpus.push_back({fmt::format("GPU{}", number), i, "", true});
      }
      if (function.class_code == 0x0200 || function.class_code == 0x0207) {
        TreeNic nic;
        nic.name = to_string(function.address);
        nic.function = i;
        nic.by_class = true;
        tree_.nics.push_back(std::move(nic));
      }
      if (tree_.gpus.size() > kMostGpus || tree_.nics.size() > kMostNics) return;
    }
  }

  PciTree tree_;
  std::vector<Level> open_;
  std::set<PciAddress> seen_;
  std::set<int> has_child_;  ///< functions with a <gpu> or <nic>
};

}  // namespace

PciTree parse_nccl_xml(std::string_view text, std::string_view name) {
  NcclHandler handler;
  parse_xml(text, name, handler);
  return handler.take();
}

PciTree read_nccl_file(const std::string& path) {
  return read_parsed(parse_nccl_xml, path, kMostCaptureBytes);
}

}  // namespace gdrperf::topo
