#include "abi/verbs/class_files.h"

#include <sys/sysmacros.h>

#include <functional>
#include <map>

#include <fmt/format.h>

#include "abi/verbs/class_device.h"
#include "cm/wire/files.h"
#include "device/device.h"

namespace gdrperf::softnic {
namespace {

/// No text: not there at the moment.
using NodeText = std::function<std::optional<std::string>()>;

struct Node {
  EntryKind kind = EntryKind::kFolder;
  NodeText text;
  dev_t device = 0;
};

/// Everything by its path. Made once: what changes is in the texts.
class Tree {
 public:
  Tree() {
    add_file("/sys/class/infiniband_verbs/abi_version", "6\n");
    add(std::string(kClass), {});
    for (const auto& device : devices()) add_device(*device);
    if (!devices().empty()) add_cm();
  }

  std::optional<ClassEntry> find(const std::string& path) const {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return std::nullopt;
    ClassEntry entry{found->second.kind, {}, std::hash<std::string>()(path), found->second.device};
    if (found->second.text) {
      auto text = found->second.text();
      if (!text) return std::nullopt;
      entry.text = std::move(*text);
    }
    return entry;
  }

  std::vector<ClassName> names_in(const std::string& folder) const {
    std::vector<ClassName> names;
    const std::string prefix = folder + "/";
    auto it = nodes_.lower_bound(prefix);
    while (it != nodes_.end() && it->first.starts_with(prefix)) {
      const std::string_view rest = std::string_view(it->first).substr(prefix.size());
      if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
        // Past the folder that this is in: '0' follows '/'.
        it = nodes_.lower_bound(prefix + std::string(rest.substr(0, slash)) + '0');
        continue;
      }
      if (!it->second.text || it->second.text()) names.push_back({std::string(rest), it->second.kind});
      ++it;
    }
    return names;
  }

 private:
  void add(const std::string& path, Node node) {
    nodes_.insert_or_assign(path, std::move(node));
    const std::size_t slash = path.rfind('/');
    if (slash == 0 || slash == std::string::npos) return;
    const std::string above = path.substr(0, slash);
    if (!nodes_.contains(above)) add(above, {});
  }
  void add_file(const std::string& path, const std::string& text) {
    add(path, {EntryKind::kFile, [text] { return text; }});
  }
  void add_link(const std::string& path, const std::string& target) {
    add(path, {EntryKind::kLink, [target] { return target; }});
  }
  void add_files(const std::string& folder, Device& device, std::vector<ClassFile> files) {
    for (ClassFile& it : files) {
      add(folder + "/" + it.name, {EntryKind::kFile, [&device, text = std::move(it.text)] { return text(device); }});
    }
  }

  void add_device(Device& device) {
    const std::string parent = parent_folder(device);
    const std::string own = parent + "/infiniband/" + device.config.name;
    add_files(own, device, device_files());
    add_link(own + "/device", "../../../" + parent.substr(parent.rfind('/') + 1));
    add_link(own + "/subsystem", "/sys/class/infiniband");
    add_link(std::string(kClass) + "/" + device.config.name, "../.." + own.substr(4));
    for (unsigned number = 1; number <= device.port_count(); ++number) {
      const std::string port = fmt::format("{}/ports/{}", own, number);
      add_files(port, *device.port_at(number), port_files());
      add(port + "/hw_counters", {});
    }
    const std::string verbs = parent + "/infiniband_verbs/" + device.dev_name;
    add_files(verbs, device, verbs_files(device));
    add_link(verbs + "/device", "../../../" + parent.substr(parent.rfind('/') + 1));
    add_link(verbs + "/subsystem", "/sys/class/infiniband_verbs");
    add_link(std::string("/sys/class/infiniband_verbs/") + device.dev_name, "../.." + verbs.substr(4));
    const dev_t number = device_number(device);
    add(std::string("/dev/infiniband/") + device.dev_name, {EntryKind::kDevice, {}, number});
    add_link(fmt::format("/sys/dev/char/{}:{}", major(number), minor(number)), "../.." + verbs.substr(4));
    add_files(parent, device, parent_files(device));
    for (const ClassLink& it : parent_links(device)) add_link(parent + "/" + it.name, it.target);
  }

  void add_cm() {
    const std::string folder = "/sys/devices/virtual/misc/rdma_cm";
    add_file(folder + "/abi_version", fmt::format("{}\n", kCmAbi));
    add_file(folder + "/dev", fmt::format("{}:{}\n", kCmMajor, kCmMinor));
    add_file(folder + "/uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/rdma_cm\n", kCmMajor, kCmMinor));
    add_link("/sys/class/misc/rdma_cm", "../../devices/virtual/misc/rdma_cm");
    add_link(fmt::format("/sys/dev/char/{}:{}", kCmMajor, kCmMinor), "../../devices/virtual/misc/rdma_cm");
    add("/dev/infiniband/rdma_cm", {EntryKind::kDevice, {}, makedev(kCmMajor, kCmMinor)});
  }

  static constexpr std::string_view kClass = "/sys/class/infiniband";
  std::map<std::string, Node> nodes_;
};

// Never destroyed: programs read while they end.
const Tree& class_tree() {
  static const auto* const tree = new Tree();
  return *tree;
}

}  // namespace

std::optional<ClassEntry> class_entry(const std::string& path) { return class_tree().find(path); }

std::vector<ClassName> class_names(const std::string& path) { return class_tree().names_in(path); }

}  // namespace gdrperf::softnic
