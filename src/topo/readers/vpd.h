#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gdrperf::topo {

/// Vital product data of a PCI function (PCI Local Bus Specification 3.0, appendix I), as far as it is of use here.
struct Vpd {
  std::string product;  ///< identifier string: the product's name
  std::string v3;       ///< keyword V3: a UUID that the functions of one ConnectX share
};

/// Empty members where the bytes do not have them; never throws for what they are.
Vpd parse_vpd(std::string_view bytes);

/// Read of a file `vpd` in sysfs, which root may read.
inline constexpr std::size_t kMostVpdBytes = 4096;

}  // namespace gdrperf::topo
