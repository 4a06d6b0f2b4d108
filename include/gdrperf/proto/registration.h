#pragma once

namespace gdrperf {

/// Ways that a NIC got memory, as Endpoint and record name them.
inline constexpr const char* kByDataDirect = "data-direct";
inline constexpr const char* kByDmabufPcie = "dmabuf-pcie";
inline constexpr const char* kByDmabuf = "dmabuf";
inline constexpr const char* kByPeermem = "peermem";

}  // namespace gdrperf
