#include "doctor/survey/survey.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "doctor/text.h"
#include "gdrperf/base/error.h"
#include "gdrperf/topo/known_devices.h"
#include "gdrperf/topo/readers.h"
#include "gdrperf/topo/sysfs_files.h"

namespace gdrperf::doctor {
namespace {

constexpr const char* kClass = "/sys/class/infiniband/";
/// The largest servers have a thousand, with virtual functions. Checks compare them with each other.
constexpr std::size_t kMostDevices = 2048;
constexpr const char* kPci = "/sys/bus/pci/devices/";

/// A machine's /sys and /proc, as the PCI model's reader asks for them.
class MachineFiles final : public topo::SysfsFiles {
 public:
  explicit MachineFiles(const Machine& machine) : machine_(machine) {}
  std::string read(const std::string& path, std::size_t most) const override {
    std::string text = machine_.read(path).text;
    text.resize(std::min(text.size(), most));
    return text;
  }
  std::vector<std::string> list(const std::string& folder) const override {
    return machine_.list(without_slash(folder));
  }
  std::string resolve(const std::string& path) const override {
    // A recording of a few files has functions that nothing more is known of.
    const std::string target = machine_.resolve(path);
    return target.empty() ? path : target;
  }
  std::string link_name(const std::string& path) const override {
    const std::string target = machine_.resolve(path);
    return base_name(target) == base_name(path) ? std::string() : std::string(base_name(target));
  }

 private:
  static std::string without_slash(std::string folder) {
    if (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return folder;
  }

  const Machine& machine_;
};

/// Empty where there is none, or more of it than any machine has.
topo::PciTree tree_of(const Machine& machine) {
  try {
    topo::PciTree tree = topo::read_sysfs(MachineFiles(machine), "/sys");
    topo::fill_port_rates(tree);
    return tree;
  } catch (const Error&) {
    return {};
  }
}

/// Name of the driver that a link leads to; a recorded function without one has none.
std::string driver_at(const Machine& machine, const std::string& link) {
  const std::string name = base_name(machine.resolve(link));
  return name == "driver" ? std::string() : name;
}

std::vector<PciFunction> look_at_pci(const Machine& machine, const topo::PciTree& tree) {
  std::map<topo::PciAddress, std::size_t> index;
  for (std::size_t i = 0; i < tree.functions.size(); ++i) index[tree.functions[i].address] = i;
  std::vector<PciFunction> functions;
  for (const std::string& address : machine.list(kPci)) {
    if (!is_pci_address(address)) continue;  // commands name it
    const std::string folder = kPci + address;
    PciFunction function;
    function.address = address;
    function.vendor = line_of(machine, folder + "/vendor");
    function.device = line_of(machine, folder + "/device");
    function.class_code = line_of(machine, folder + "/class");
    // A server has hundreds of other functions, of which only the place is asked.
    if (function.is_nvidia_gpu() || function.vendor == "0x1002" || function.is_network() || function.is_data_direct()) {
      function.driver = driver_at(machine, folder + "/driver");
    }
    const auto parsed = topo::parse_pci_address(address);
    const auto found = parsed ? index.find(*parsed) : index.end();
    if (found != index.end()) {
      const topo::PciFunction& placed = tree.functions[found->second];
      if (placed.root >= 0) function.root = "pci" + tree.roots[static_cast<std::size_t>(placed.root)].name.raw();
      for (const std::size_t bridge : tree.bridges(found->second)) {
        function.bridges.push_back(topo::to_string(tree.functions[bridge].address));
      }
    }
    functions.push_back(std::move(function));
  }
  // For Survey::function(); machines list in this order.
  std::sort(functions.begin(), functions.end(),
            [](const PciFunction& a, const PciFunction& b) { return a.address < b.address; });
  return functions;
}

/// "4: ACTIVE" is "ACTIVE".
std::string after_colon(std::string_view text) {
  return std::string(trimmed(text.substr(text.find(':') + 1)));
}

void look_at_netdev(const Machine& machine, Port& port) {
  if (port.netdev.empty() || port.netdev.raw().find('/') != std::string::npos) return;
  const std::string folder = "/sys/class/net/" + port.netdev.raw();
  const std::string flags = line_of(machine, folder + "/flags");
  if (flags.starts_with("0x")) {
    port.netdev_up = (std::strtoul(flags.c_str(), nullptr, 16) & 1) != 0;  // IFF_UP
  }
  // Reading the carrier of an interface that is down fails.
  if (const auto carrier = number_of(line_of(machine, folder + "/carrier"))) {
    port.netdev_carrier = *carrier != 0;
  }
  port.netdev_mtu = leading_int(line_of(machine, folder + "/mtu"));
}

void take_verbs(const verbs::PortDetails& details, Port& port) {
  const verbs::PortInfo& info = details.port;
  if (port.state.empty()) port.state = info.state_name();
  if (port.link_layer.empty()) port.link_layer = info.link_layer_name();
  if (port.netdev.empty()) port.netdev = info.netdev;
  port.active_mtu = info.active_mtu_bytes;
  port.max_mtu = info.max_mtu_bytes;
  if (info.rate_gbps > 0) port.rate_gbps = info.rate_gbps;
  if (!details.gids.empty()) port.gids = details.gids;
}

/// The InfiniBand MTU that the kernel takes for an interface's (RoCE headers
/// take up to 58 bytes of it).
int ib_mtu_for(int netdev_mtu) {
  for (const int mtu : {4096, 2048, 1024, 512, 256}) {
    if (netdev_mtu >= mtu + 58) return mtu;
  }
  return 0;
}

void estimate_mtu(Port& port) {
  if (port.active_mtu != 0 || port.link_layer != "Ethernet") return;
  port.active_mtu = ib_mtu_for(port.netdev_mtu);
  port.mtu_estimated = port.active_mtu != 0;
  if (port.max_mtu == 0) port.max_mtu = 4096;
}

Port look_at_port(const Machine& machine, const RdmaDevice& device, int number) {
  Port port;
  port.device = device.name;
  port.number = number;
  if (device.in_kernel) {
    const std::string folder = fmt::format("{}{}/ports/{}/", kClass, device.name.raw(), number);
    port.state = after_colon(line_of(machine, folder + "state"));
    port.phys_state = after_colon(line_of(machine, folder + "phys_state"));
    port.link_layer = line_of(machine, folder + "link_layer");
    port.netdev = line_of(machine, folder + "gid_attrs/ndevs/0");
    port.rate_gbps = leading_number(line_of(machine, folder + "rate"));
    port.gids = sysfs_gids(machine, folder);
  }
  if (device.verbs) {
    for (const verbs::PortDetails& details : device.verbs->ports) {
      if (details.port.number == number) take_verbs(details, port);
    }
    if (!port.gids && device.verbs->error.empty()) port.gids.emplace();
  }
  if (port.netdev.empty() && device.in_kernel) {
    const auto interfaces = machine.list(kClass + device.name.raw() + "/device/net");
    if (interfaces.size() == 1) port.netdev = interfaces.front();
  }
  look_at_netdev(machine, port);
  if (!device.verbs) estimate_mtu(port);
  return port;
}

/// Functions of a ConnectX-7 on HGX B200 and later speak to NVSwitches: their firmware is the switches' (35), their
/// vital product data says SW_MNG.
bool manages_nvswitches(const Machine& machine, const RdmaDevice& device) {
  const std::string function = kPci + device.pci_address;
  if (line_of(machine, function + "/vendor") != "0x15b3" ||
      !line_of(machine, function + "/class").starts_with("0x0207"))
    return false;
  const bool firmware = line_of(machine, kClass + device.name.raw() + "/fw_ver").starts_with("35.");
  return firmware || machine.read(function + "/vpd").text.find("SW_MNG") != std::string::npos;
}

RdmaDevice look_at_device(const Machine& machine, const std::string& name) {
  RdmaDevice device;
  device.name = name;
  device.in_kernel = true;
  const std::string folder = kClass + name;
  device.iwarp = line_of(machine, folder + "/node_type").find("RNIC") != std::string::npos;
  // An rxe says what it sits on; its `device` may lead to the NIC below it.
  if (machine.read(folder + "/parent").access == Access::kGranted) {
    device.driver = "rdma_rxe";
    return device;
  }
  device.driver = driver_at(machine, folder + "/device/driver");
  // A device of a virtual bus (rdma_rxe on a bridge, a siw) has a name that is no address.
  for (std::string place = machine.resolve(folder + "/device"); !place.empty();
       place.resize(std::min(place.rfind('/'), place.size() - 1))) {
    if (!is_pci_address(base_name(place))) continue;
    device.pci_address = base_name(place);
    break;
  }
  return device;
}

std::vector<RdmaDevice> look_at_rdma(const Machine& machine, const topo::PciTree& tree,
                                     std::vector<verbs::DeviceInfo> shown) {
  std::vector<RdmaDevice> devices;
  const std::vector<std::string> names = machine.list(kClass);
  if (names.size() > kMostDevices) {
    throw usage_error(
        fmt::format("{}: {} RDMA devices, more than the {} that are looked at", kClass, names.size(), kMostDevices));
  }
  for (const std::string& name : names) {
    devices.push_back(look_at_device(machine, name));
  }
  // A copy of /sys may have them below their functions alone.
  for (const topo::TreeNic& nic : tree.nics) {
    if (std::any_of(devices.begin(), devices.end(), [&](const RdmaDevice& device) { return device.name == nic.name; }))
      continue;
    RdmaDevice& device = devices.emplace_back();
    device.name = nic.name;
    device.in_kernel = true;
    device.pci_address = topo::to_string(tree.functions[nic.function].address);
    device.driver = driver_at(machine, kPci + device.pci_address + "/driver");
  }
  for (verbs::DeviceInfo& info : shown) {
    auto it = std::find_if(devices.begin(), devices.end(),
                           [&](const RdmaDevice& device) { return device.name == info.name; });
    if (it == devices.end()) {
      it = devices.emplace(devices.end());
      it->name = info.name;
    }
    if (it->driver.empty()) it->driver = info.driver;
    it->verbs = std::move(info);
  }
  for (RdmaDevice& device : devices) {
    std::vector<int> numbers;
    for (const std::string& name : machine.list(kClass + device.name.raw() + "/ports")) {
      if (const auto number = number_of(name)) numbers.push_back(static_cast<int>(*number));
    }
    if (numbers.empty() && device.verbs) {
      for (const auto& port : device.verbs->ports) numbers.push_back(port.port.number);
    }
    std::sort(numbers.begin(), numbers.end());
    for (const int number : numbers) {
      device.ports.push_back(look_at_port(machine, device, number));
      device.ports.back().adapter = device.pci_address.substr(0, device.pci_address.rfind('.'));
    }
  }
  return devices;
}

}  // namespace

std::vector<const PciFunction*> Survey::gpus() const {
  std::vector<const PciFunction*> found;
  for (const PciFunction& function : pci) {
    if (function.is_nvidia_gpu()) found.push_back(&function);
  }
  return found;
}

std::vector<const PciFunction*> Survey::amd_gpus() const {
  std::vector<const PciFunction*> found;
  for (const PciFunction& function : pci) {
    if (function.is_amd_gpu()) found.push_back(&function);
  }
  return found;
}

std::vector<const PciFunction*> Survey::data_direct() const {
  std::vector<const PciFunction*> found;
  for (const PciFunction& function : pci) {
    if (function.is_data_direct()) found.push_back(&function);
  }
  return found;
}

const PciFunction* Survey::function(std::string_view address) const {
  const auto it =
      std::lower_bound(pci.begin(), pci.end(), address,
                       [](const PciFunction& each, std::string_view wanted) { return each.address < wanted; });
  return it == pci.end() || it->address != address ? nullptr : &*it;
}

std::vector<const PciFunction*> Survey::nics() const {
  std::vector<const PciFunction*> found;
  for (const RdmaDevice& device : rdma) {
    const PciFunction* nic = device.nvswitch ? nullptr : function(device.pci_address);
    if (nic != nullptr && std::find(found.begin(), found.end(), nic) == found.end()) {
      found.push_back(nic);
    }
  }
  return found;
}

bool Survey::any_kernel_device() const {
  return std::any_of(rdma.begin(), rdma.end(), [](const auto& device) { return device.in_kernel; });
}

bool Survey::any_hardware() const {
  return std::any_of(rdma.begin(), rdma.end(),
                     [](const auto& device) { return device.hardware(); });
}

Survey look_at(const Machine& machine) {
  auto shown = machine.rdma_devices();
  const bool known = shown.has_value();
  Platform platform = look_at_platform(machine);
  const bool container = platform.container();
  topo::PciTree tree = tree_of(machine);
  std::vector<PciFunction> functions = look_at_pci(machine, tree);
  Survey survey{machine,
                look_at_rdma(machine, tree, std::move(shown).value_or(std::vector<verbs::DeviceInfo>())),
                std::move(tree),
                std::move(functions),
                parse_modules(machine.read("/proc/modules").text),
                std::move(platform),
                container,
                known,
                {}};
  for (RdmaDevice& device : survey.rdma) {
    device.nvswitch = !device.pci_address.empty() && manages_nvswitches(machine, device);
    if (device.nvswitch) continue;
    for (const Port& port : device.ports) {
      survey.ports.push_back(port);
      // iWARP addresses hosts by IP alone.
      if (device.iwarp) survey.ports.back().link_layer = "iWARP";
    }
  }
  return survey;
}

std::string line_of(const Machine& machine, const std::string& path) {
  const FileText file = machine.read(path);
  return std::string(trimmed(std::string_view(file.text).substr(0, file.text.find('\n'))));
}

std::string iommu_group(const Machine& machine, std::string_view address) {
  return machine.resolve(fmt::format("{}{}/iommu_group", kPci, address));
}

std::optional<std::vector<verbs::Gid>> sysfs_gids(const Machine& machine,
                                                  const std::string& port_folder) {
  const auto names = machine.list(port_folder + "gids");
  if (names.empty()) return std::nullopt;
  std::vector<verbs::Gid> gids;
  for (const std::string& name : names) {
    const auto index = number_of(name);
    ibv_gid raw{};
    const std::string text = line_of(machine, port_folder + "gids/" + name);
    if (!index || ::inet_pton(AF_INET6, text.c_str(), raw.raw) != 1) continue;
    if (std::all_of(std::begin(raw.raw), std::end(raw.raw), [](auto byte) { return byte == 0; })) {
      continue;
    }
    // Reading the type of an entry that is not in use fails.
    const std::string type = line_of(machine, port_folder + "gid_attrs/types/" + name);
    const verbs::GidType kind = type == "RoCE v2"      ? verbs::GidType::kRoceV2
                                : type == "IB/RoCE v1" ? verbs::GidType::kRoceV1
                                                       : verbs::GidType::kInfiniBand;
    gids.push_back(verbs::make_gid(static_cast<int>(*index), kind, raw,
                                   line_of(machine, port_folder + "gid_attrs/ndevs/" + name)));
  }
  std::sort(gids.begin(), gids.end(),
            [](const auto& one, const auto& other) { return one.index < other.index; });
  return gids;
}

std::string install_command(const Machine& machine, std::string_view deb, std::string_view rpm) {
  const std::string os = machine.read("/etc/os-release").text;
  for (const std::string_view line : lines_of(os)) {
    if (!line.starts_with("ID=") && !line.starts_with("ID_LIKE=")) continue;
    const auto names = [&](std::string_view id) { return line.find(id) != std::string_view::npos; };
    if (names("suse")) return fmt::format("sudo zypper install {}", rpm);
    if (names("rhel") || names("fedora")) return fmt::format("sudo dnf install {}", rpm);
  }
  return fmt::format("sudo apt-get install {}", deb);
}

}  // namespace gdrperf::doctor
