#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

/// Class files of one device, worded as by the kernel.
namespace gdrperf::softnic {

struct ClassFile {
  std::string name;  ///< with folders: "gids/0"
  /// Nothing: not there at the moment.
  std::function<std::optional<std::string>(Device&)> text;
};

struct ClassLink {
  std::string name;
  std::string target;
};

/// The folder of what the device is part of: of the PCI function that it was
/// given (the kernel's, where this machine has it), or of its own under
/// /sys/devices/softnic.
std::string parent_folder(const Device& device);
std::vector<ClassFile> parent_files(const Device& device);
std::vector<ClassLink> parent_links(const Device& device);
/// In /sys/class/infiniband/DEVICE, in its folder for each port, and in /sys/class/infiniband_verbs/uverbsN.
std::vector<ClassFile> device_files();
std::vector<ClassFile> port_files();
std::vector<ClassFile> verbs_files(const Device& device);
/// Of /dev/infiniband/uverbsN.
dev_t device_number(const Device& device);

}  // namespace gdrperf::softnic
