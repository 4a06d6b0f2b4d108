#pragma once

#include <cstdint>

#include "cm/state/address.h"
#include "gdrperf/base/unique_fd.h"

/// Ports of rdma_cm within this network namespace. Who has one listens on an
/// abstract socket that is named after port space, port and address; so a port has
/// one owner, and goes with its process.
namespace gdrperf::softnic {

/// Address families that a port is taken in.
enum class CmFamilies { kOwn, kBoth };

/// How the names of those sockets begin.
inline constexpr const char* kCmNameStart = "gdrperf-softnic-cm";

/// Takes the port. Empty, with errno: EADDRINUSE, EADDRNOTAVAIL where one of the two
/// is for any address, or that of a call that failed. Any address of `families`.
UniqueFd claim_port(std::uint16_t port_space, const CmAddress& address, CmFamilies families);
/// A port that nobody has, put into `address`.
UniqueFd claim_any_port(std::uint16_t port_space, CmAddress& address, CmFamilies families);
/// Connects to the process that has the port of `address`, or that port of any address of its family.
/// Empty when there is none. Users other than one's own as far as a device has to do
/// with them.
UniqueFd connect_port(std::uint16_t port_space, const CmAddress& address);
/// The process at the other end is one to talk to.
bool admits_process(int socket);
/// A number from the range that the kernel takes for ports nobody asked for.
std::uint16_t next_free_port();

}  // namespace gdrperf::softnic
