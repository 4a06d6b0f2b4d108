#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "device/device.h"

/// Addresses of rdma_cm: IP addresses with a port, and the device behind them.
namespace gdrperf::softnic {

struct CmAddress {
  sa_family_t family = AF_UNSPEC;      ///< AF_INET, AF_INET6, or AF_IB (any address only)
  std::array<std::uint8_t, 16> bytes{};  ///< an IPv4 address is in the first four
  std::uint32_t scope = 0;
  std::uint16_t port = 0;

  bool any() const noexcept { return bytes == decltype(bytes){}; }
  /// The same host address, whatever the ports.
  bool same_host(const CmAddress& other) const noexcept { return family == other.family && bytes == other.bytes; }
  /// As a GID of RoCE v2.
  ibv_gid gid() const noexcept;
  /// Hexadecimal, for names of sockets; "any" where it is, of either family.
  std::string text() const;
};

inline constexpr sa_family_t kIbFamily = 27;  ///< AF_IB, which libc does not know

/// Nothing: another family, or fewer bytes than that family's addresses have. An
/// IPv4 address written as IPv6 becomes IPv4.
std::optional<CmAddress> address_from(const void* bytes, std::size_t size);
/// Returns the size of what it wrote.
std::size_t write_sockaddr(const CmAddress& address, sockaddr_storage& out);
/// An AF_IB address that carries `gid`. Returns its size.
std::size_t write_ib_sockaddr(const ibv_gid& gid, std::uint16_t partition, sockaddr_storage& out);

/// The address belongs to this network namespace: loopback or an interface's.
bool is_own_address(const CmAddress& address);
/// The address from which the kernel would send to `destination`; nothing and
/// errno where there is no route.
std::optional<CmAddress> source_towards(const CmAddress& destination);

/// The port that has this address for a GID, else the first one with GIDs whose
/// port is up, else the first with GIDs; null where there is none.
Device* device_at(const CmAddress& address);
/// The GID by which that device is reached at `address`: the address itself, or
/// the RoCE v2 GID of another address, of the same family where it has one.
std::uint32_t gid_index_at(const Device& device, const CmAddress& address);

}  // namespace gdrperf::softnic
