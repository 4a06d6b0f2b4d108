#pragma once

#include <string>
#include <string_view>

#include "doctor/survey/platform.h"
#include "gdrperf/base/outside.h"

namespace gdrperf::doctor {

/// A fix for the running system, the same for good, and what takes it back.
/// "": there is none of that kind.
struct Cure {
  std::string now;
  std::string for_good;
  std::string undo;
};

Cure load_module(std::string_view module);
Cure set_sysctl(std::string_view name, std::string_view value, std::string_view before);
/// Words for the kernel's command line: there from the next boot on.
Cure kernel_words(const Platform& platform, std::string_view words);
/// What makes the boot loader take over a change of GRUB's defaults.
std::string after_grub_defaults(const Platform& platform);
Cure set_mtu(const Platform& platform, const Outside& netdev, int mtu, int before);

/// Options that the container had to be started with.
std::string container_devices(const Platform& platform);
std::string container_memlock(const Platform& platform);
std::string container_network(const Platform& platform);
std::string container_gpus(const Platform& platform);

}  // namespace gdrperf::doctor
