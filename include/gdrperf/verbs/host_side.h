#pragma once

#include <string>
#include <string_view>

namespace gdrperf::verbs {

/// How the host treats a device: what a run cannot choose, and its figures depend on. `root` is where a copy of /proc
/// and /sys lies; "": this machine's.

/// CPUs that serve the interrupt of completion vector `vector` of the device at that PCI address, as the kernel writes
/// them ("4", "0-3"). "": not known; of drivers, mlx5 alone gives its interrupts names that say it
/// ("mlx5_comp4@pci:0000:3b:00.0").
std::string interrupt_cpus(std::string_view pci_address, int vector, const std::string& root = {});

/// What is known of memory that was registered with IBV_ACCESS_RELAXED_ORDERING, a flag that drivers which do not have
/// it ignore without a word.
enum class OrderingSeen {
  kAsked,     ///< nothing is known: Device Control is for root to read
  kDisabled,  ///< Device Control forbids the device to relax the order
  kEnabled,   ///< Device Control allows it; whether driver and firmware do it they do not tell
};
OrderingSeen relaxed_ordering_seen(std::string_view pci_address, const std::string& root = {});

}  // namespace gdrperf::verbs
