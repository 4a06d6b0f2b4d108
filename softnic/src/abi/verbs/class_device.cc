#include "abi/verbs/class_device.h"

#include <sys/sysmacros.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "abi/libc/kernel_only.h"
#include "objects/attributes/context.h"
#include "paths/report.h"

namespace gdrperf::softnic {
namespace {

using FileText = std::optional<std::string>;
using Maker = std::function<FileText(Device&)>;

/// A file's text is a line.
Maker line(std::function<std::string(Device&)> text) {
  return [text = std::move(text)](Device& device) { return FileText(text(device) + "\n"); };
}
Maker fixed(const std::string& text) {
  return [text](Device&) { return FileText(text + "\n"); };
}

std::string guid_text(__be64 guid) {
  std::uint8_t bytes[8];
  std::memcpy(bytes, &guid, sizeof bytes);
  std::string text;
  for (int i = 0; i < 8; i += 2) text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
  return text;
}

std::string gid_text(const ibv_gid& gid) {
  std::string text;
  for (int i = 0; i < 16; i += 2) text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
  return text;
}

ibv_port_attr port_of(const Device& device) {
  ibv_port_attr attr;
  describe_port(device, attr);
  return attr;
}

std::string rate_text(const Device& device) {
  static constexpr const char* kNames[] = {"", " DDR", " QDR", " FDR10", " FDR", " EDR", " HDR", " NDR"};
  const ibv_port_attr attr = port_of(device);
  unsigned bit = 0;
  while (bit < 7 && attr.active_speed >> bit > 1) ++bit;
  return fmt::format("{:g} Gb/sec (4X{})", port_gigabits(device), kNames[bit]);
}

std::string state_text(const Device& device) { return device.port_up.load() ? "4: ACTIVE" : "1: DOWN"; }
std::string physical_state_text(const Device& device) { return device.port_up.load() ? "5: LinkUp" : "3: Disabled"; }

std::string firmware_text(const Device& device) {
  ibv_device_attr attr;
  describe_device(device, attr);
  return attr.fw_ver;
}

/// The slowest PCI Express link of 16 lanes that carries what the port does.
const char* pci_speed_text(const Device& device) {
  struct Generation {
    double gigabits;
    const char* text;
  };
  constexpr Generation kGenerations[] = {{32, "2.5 GT/s PCIe"},   {64, "5.0 GT/s PCIe"},   {126, "8.0 GT/s PCIe"},
                                         {252, "16.0 GT/s PCIe"}, {504, "32.0 GT/s PCIe"}, {1008, "64.0 GT/s PCIe"}};
  for (const Generation& it : kGenerations) {
    if (port_gigabits(device) <= it.gigabits) return it.text;
  }
  return kGenerations[5].text;
}

/// The first line of a file of the kernel's; empty when there is none.
std::string kernel_line(const std::string& path) {
  const KernelOnly aside;
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

std::string local_cpus(const Device& device, const char* file) {
  if (device.config.numa >= 0) {
    const std::string text =
        kernel_line(fmt::format("/sys/devices/system/node/node{}/{}", device.config.numa, file));
    if (!text.empty()) return text;
  }
  return kernel_line(fmt::format("/sys/devices/system/node/node0/{}", file));
}

/// Place of the PCI function on this machine; empty when it has none such.
std::string kernel_function(const Device& device) {
  if (device.config.pci.empty()) return {};
  const KernelOnly aside;
  const std::unique_ptr<char, decltype(&std::free)> path(
      ::realpath(("/sys/bus/pci/devices/" + device.config.pci).c_str(), nullptr), &std::free);
  return path == nullptr ? std::string() : path.get();
}

std::string uevent_text(const Device& device) {
  std::string text = "DRIVER=softnic\n";
  if (!device.config.pci.empty()) text += "PCI_SLOT_NAME=" + device.config.pci + "\n";
  return text;
}

/// Events that never happen on this link are counted all the same: as zero.
void add_error_counters(std::vector<ClassFile>& files) {
  for (const char* name : {"VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
                           "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_errors",
                           "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
                           "port_xmit_constraint_errors", "port_xmit_discards", "port_xmit_wait", "symbol_error"}) {
    files.push_back({std::string("counters/") + name, fixed("0")});
  }
}

PortCounters& counters_of(Device& device) {
  if (PortShared* const port = device.port.load()) return port->counters;
  PortShared& port = Process::get().ports().get(device.port_name);
  device.port.store(&port);
  return port.counters;
}

using CounterList = std::vector<CounterValue> (*)(const PortCounters&);

/// Only with a model, which a device may be given while programs run.
void add_model_counters(std::vector<ClassFile>& files, const std::string& folder, CounterList list) {
  static const PortCounters kNone{};
  std::size_t index = 0;
  for (const CounterValue& counter : list(kNone)) {
    files.push_back({folder + counter.name, [index, list](Device& device) -> FileText {
                       if (device.model.load() == nullptr) return std::nullopt;
                       return fmt::format("{}\n", list(counters_of(device))[index].value);
                     }});
    ++index;
  }
}

void add_gids(std::vector<ClassFile>& files) {
  for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
    files.push_back({fmt::format("gids/{}", entry), [entry](Device& device) -> FileText {
                       if (entry >= device.gid_slots()) return std::nullopt;
                       return gid_text(device.gid(entry)) + "\n";
                     }});
    const auto only_with_gid = [entry](std::function<std::string(Device&)> text) {
      return [entry, text = std::move(text)](Device& device) -> FileText {
        if (!device.has_gid(entry)) return std::nullopt;
        return text(device) + "\n";
      };
    };
    files.push_back({fmt::format("gid_attrs/types/{}", entry), only_with_gid([entry](Device&) {
                       return kGidKinds[entry].type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
                     })});
    files.push_back({fmt::format("gid_attrs/ndevs/{}", entry),
                     only_with_gid([](Device& device) { return device.config.netdev; })});
  }
}

}  // namespace

std::string parent_folder(const Device& device) {
  if (device.config.pci.empty()) return "/sys/devices/softnic/" + device.config.name + "/hca.0000";
  const std::string real = kernel_function(device);
  if (!real.empty()) return real;
  return "/sys/devices/pci" + device.config.pci.substr(0, 7) + "/" + device.config.pci;
}

std::vector<ClassFile> parent_files(const Device& device) {
  std::vector<ClassFile> files;
  files.push_back({"uevent", [](Device& it) { return FileText(uevent_text(it)); }});
  if (device.config.numa >= 0 || kernel_function(device).empty()) {
    files.push_back({"numa_node", line([](Device& it) { return fmt::format("{}", it.config.numa); })});
    files.push_back({"local_cpus", line([](Device& it) { return local_cpus(it, "cpumap"); })});
    files.push_back({"local_cpulist", line([](Device& it) { return local_cpus(it, "cpulist"); })});
  }
  if (!kernel_function(device).empty()) return files;
  files.push_back({"class", fixed("0x020000")});
  // No company's, as in ibv_query_device.
  for (const char* name : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
    files.push_back({name, fixed("0xffff")});
  }
  for (const char* name : {"current_link_speed", "max_link_speed"}) files.push_back({name, line(pci_speed_text)});
  for (const char* name : {"current_link_width", "max_link_width"}) files.push_back({name, fixed("16")});
  return files;
}

std::vector<ClassLink> parent_links(const Device& device) {
  std::vector<ClassLink> links = {{"driver", "/sys/bus/softnic/drivers/softnic"}};
  if (!kernel_function(device).empty()) return links;
  links.push_back({"net/" + device.config.netdev, "/sys/class/net/" + device.config.netdev});
  if (!device.config.pci.empty()) links.push_back({"subsystem", "/sys/bus/pci"});
  return links;
}

std::vector<ClassFile> device_files() {
  std::vector<ClassFile> files;
  files.push_back({"data_path", line([](Device& it) { return data_path_text(it); })});
  files.push_back({"fw_ver", line(firmware_text)});
  files.push_back({"node_type", fixed("1: CA")});
  files.push_back({"node_desc", line([](Device& it) { return "softnic " + it.config.name; })});
  files.push_back({"node_guid", line([](Device& it) { return guid_text(it.guid()); })});
  files.push_back({"sys_image_guid", line([](Device& it) { return guid_text(it.guid()); })});
  files.push_back({"hca_type", fixed("softnic")});
  files.push_back({"board_id", fixed("softnic")});
  files.push_back({"hw_rev", fixed("0")});
  files.push_back({"uevent", line([](Device& it) { return "NAME=" + it.config.name; })});
  return files;
}

std::vector<ClassFile> port_files() {
  std::vector<ClassFile> files;
  files.push_back({"link_layer", line([](Device& it) { return it.infiniband() ? "InfiniBand" : "Ethernet"; })});
  files.push_back({"state", line(state_text)});
  files.push_back({"phys_state", line(physical_state_text)});
  files.push_back({"rate", line(rate_text)});
  files.push_back({"cap_mask", line([](Device& it) { return fmt::format("0x{:08x}", port_of(it).port_cap_flags); })});
  files.push_back({"lid", line([](Device& it) { return fmt::format("0x{:x}", port_of(it).lid); })});
  files.push_back({"lid_mask_count", fixed("0")});
  files.push_back({"sm_lid", line([](Device& it) { return fmt::format("0x{:x}", port_of(it).sm_lid); })});
  files.push_back({"sm_sl", fixed("0")});
  files.push_back({"pkeys/0", fixed("0xffff")});
  add_gids(files);
  add_error_counters(files);
  add_model_counters(files, "hw_counters/", counter_values);
  add_model_counters(files, "counters/", wire_values);
  return files;
}

std::vector<ClassFile> verbs_files(const Device& device) {
  const dev_t number = device_number(device);
  return {{"abi_version", fixed("1")},
          {"ibdev", line([](Device& it) { return it.config.name; })},
          {"dev", fixed(fmt::format("{}:{}", major(number), minor(number)))},
          {"uevent", [number](Device& it) {
             return FileText(
                 fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}\n", major(number), minor(number), it.dev_name));
           }}};
}

dev_t device_number(const Device& device) {
  // The kernel's for verbs: 231, from 192 on.
  constexpr unsigned kMajor = 231, kFirstMinor = 192;
  return makedev(kMajor, kFirstMinor + device.verbs_number());
}

}  // namespace gdrperf::softnic
