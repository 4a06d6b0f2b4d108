#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gdrperf::mem {

/// Why a NIC cannot be given `wanted` bytes of a GPU's memory through its BAR1 of `total` bytes (0: not known); ""
/// where nothing speaks against it.
std::string bar1_obstacle(std::uint64_t wanted, std::uint64_t total);

/// Where `wanted` bytes were refused, and of BAR1 fewer are `free` (nothing: not known): that, as what is likely; ""
/// else. It is no reason not to try: drivers that map all of a GPU's memory once count it as used.
std::string bar1_suspicion(std::uint64_t wanted, std::optional<std::uint64_t> free);

/// Free bytes of the GPU's BAR1, as NVML tells them (nvmlDeviceGetBAR1MemoryInfo; the library is looked for when the
/// program runs). Nothing where it does not.
std::optional<std::uint64_t> bar1_free(const std::string& pci_address);

}  // namespace gdrperf::mem
