#pragma once

#include <cstdint>

namespace gdrperf::topo {

/// PCI vendor IDs.
inline constexpr std::uint16_t kMellanox = 0x15b3, kBroadcom = 0x14e4, kIntel = 0x8086, kAmazon = 0x1d0f,
                               kPensando = 0x1dd8;
inline constexpr std::uint16_t kNvidia = 0x10de, kAmd = 0x1002, kIbm = 0x1014;

}  // namespace gdrperf::topo
