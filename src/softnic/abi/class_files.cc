#include "abi/class_files.h"

#include <cstring>

#include <fmt/format.h>

#include "device/device.h"
#include "objects/context.h"
#include "paths/report.h"

namespace gdrperf::softnic {
namespace {

constexpr std::string_view kClass = "/sys/class/infiniband/";

Device* device_named(std::string_view name) {
  for (const auto& device : devices()) {
    if (device->config.name == name) return device.get();
  }
  return nullptr;
}

ClassEntry folder(std::vector<std::string> names) { return {true, {}, std::move(names)}; }
ClassEntry file(std::string text) { return {false, std::move(text) + "\n", {}}; }

std::vector<CounterValue> counters_of(Device& device) {
  if (device.port == nullptr) device.port = &Process::get().ports().get(device.port_name);
  return counter_values(device.port->counters);
}

/// `rest` is what follows the device's name, without slashes at its ends.
std::optional<ClassEntry> entry_of(Device& device, std::string_view rest) {
  const bool counts = device.model.load() != nullptr;
  if (rest.empty()) return folder({"data_path", "fw_ver", "node_type", "ports"});
  if (rest == "fw_ver") {
    ibv_device_attr attr;
    describe_device(device, attr);
    return file(attr.fw_ver);
  }
  if (rest == "data_path") return file(data_path_text(device));
  if (rest == "node_type") return file("1: CA");
  if (!device.config.pci.empty() && rest == "device/uevent") return file("PCI_SLOT_NAME=" + device.config.pci);
  if (device.config.numa >= 0 && rest == "device/numa_node") return file(fmt::format("{}", device.config.numa));
  for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
    if (rest == fmt::format("ports/1/gid_attrs/ndevs/{}", entry)) return file(device.config.netdev);
  }
  if (rest == "ports") return folder({"1"});
  if (rest == "ports/1") return folder(counts ? std::vector<std::string>{"hw_counters", "link_layer", "state"}
                                              : std::vector<std::string>{"link_layer", "state"});
  if (rest == "ports/1/link_layer") return file("Ethernet");
  if (rest == "ports/1/state") return file(device.port_up.load() ? "4: ACTIVE" : "1: DOWN");
  constexpr std::string_view kCounters = "ports/1/hw_counters";
  if (!counts || !rest.starts_with(kCounters)) return std::nullopt;
  rest.remove_prefix(kCounters.size());
  ClassEntry all = folder({});
  for (const CounterValue& counter : counters_of(device)) {
    if (rest.empty()) {
      all.names.push_back(counter.name);
    } else if (rest.substr(1) == counter.name) {
      return file(fmt::format("{}", counter.value));
    }
  }
  if (rest.empty()) return all;
  return std::nullopt;
}

}  // namespace

bool may_be_class_path(const char* path) noexcept {
  return path != nullptr && path[0] == '/' && path[1] == 's' && std::strncmp(path, kClass.data(), kClass.size()) == 0;
}

std::optional<ClassEntry> class_entry(std::string_view path) {
  if (!path.starts_with(kClass)) return std::nullopt;
  path.remove_prefix(kClass.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.find('/');
  Device* device = device_named(path.substr(0, slash));
  if (device == nullptr) return std::nullopt;
  return entry_of(*device, slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1));
}

}  // namespace gdrperf::softnic
