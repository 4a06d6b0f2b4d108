#pragma once

namespace gdrperf::topo {

/// Payload's share of a PCIe link: all factors that ceilings are made of. Sources: PCI Express Base Specification 6.0,
/// chapters 2 (TLP headers), 3 (data link layer) and 4 (physical layer).
namespace pcie {

inline constexpr double kCoding8b10b = 0.8;             ///< 2.5 and 5 GT/s
inline constexpr double kCoding128b130b = 128.0 / 130;  ///< 8 to 32 GT/s
inline constexpr double kFlitBytes = 256;               ///< from 64 GT/s: of each flit
inline constexpr double kFlitTlpBytes = 236;            ///< are TLPs,
inline constexpr double kFlitDllBytes = 6;              ///< the data link layer's; 14 are CRC and FEC
/// Of a write to memory: four double words, with a 64-bit address.
inline constexpr double kTlpHeaderBytes = 16;
/// Before flits: 2 of framing or sequence number, 2 of sequence, 4 of LCRC.
inline constexpr double kTlpFramingBytes = 8;
/// Assumed where a source does not tell the maximum payload size.
inline constexpr int kAssumedPayloadBytes = 256;
/// An idle GPU's link is at gen1; GB/s of sixteen such lanes.
inline constexpr double kIdleLinkGbytes = 4.0;
/// Share of a link's bits at a payload of 128 to 256 bytes, in round figures: for "is this link wide enough".
inline constexpr double kRoughPayloadShare = 0.85;

}  // namespace pcie
}  // namespace gdrperf::topo
