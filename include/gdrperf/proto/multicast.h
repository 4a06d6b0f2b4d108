#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gdrperf/proto/spec.h"

// Multicast groups of datagrams. Each direction has a group of its own: a host would hear itself otherwise.
namespace gdrperf {

/// As a GID: an IPv4 group in its last four bytes, behind ::ffff.
using GroupAddress = std::array<std::uint8_t, 16>;

/// TestSpec::multicast where nobody names a group.
inline constexpr const char* kAnyGroup = "auto";

/// Group of the datagrams that go to the server (the one that was asked for), or to the client (the next one); `ipv4`:
/// of GIDs that are IPv4 addresses. Throws usage_error for a text that names no group.
GroupAddress group_to_server(const TestSpec& spec, bool ipv4);
GroupAddress group_to_client(const TestSpec& spec, bool ipv4);

/// Throws usage_error where the test cannot be sent to a group.
void check_multicast(const TestSpec& spec);

}  // namespace gdrperf
