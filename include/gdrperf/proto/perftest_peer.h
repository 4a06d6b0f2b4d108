#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gdrperf/base/error.h"

namespace gdrperf::proto {

/// Version in the first bytes that an end of perftest sends: "6.06"; "" where they are none.
std::string_view perftest_version(std::string_view first_bytes);

/// What to say of a peer ("server host:1", "client host:1") whose first bytes are perftest's; nullopt for all others.
/// perftest's ends first send each other their version, text in 16 bytes, or, without that, addresses like
/// "0000:0010:0a51c2:7bc1e2:".
std::optional<Error> perftest_peer(const std::string& peer, std::string_view first_bytes);

/// "an SSH server", "an HTTP server" for what sends these first bytes; "" for all others.
std::string_view known_service(std::string_view first_bytes);

/// What to do about a known service on the port.
std::string wrong_port_hint();

}  // namespace gdrperf::proto
