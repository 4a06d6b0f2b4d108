#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gdrperf::app {

/// Counters of errors, discards and retransmissions of a device's port, by name: those files of `folder`/counters and
/// `folder`/hw_counters that have such names. None where the folders are not there.
std::map<std::string, std::uint64_t> read_error_counters(const std::string& folder);
/// Of the port that a run takes: /sys/class/infiniband/DEVICE/ports/1.
std::map<std::string, std::uint64_t> error_counters_of(const std::string& device);

}  // namespace gdrperf::app
