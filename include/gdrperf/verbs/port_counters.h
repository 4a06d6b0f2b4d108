#pragma once

#include <string>
#include <string_view>

#include "gdrperf/proto/counters.h"

namespace gdrperf::verbs {

/// Counters of a port: files of `folder`/counters and `folder`/hw_counters, and of the network interface behind it
/// (`folder`/gid_attrs/ndevs/0) those statistics of its driver that concern pauses, ECN, congestion, discards and
/// symbol errors (SIOCETHTOOL); and the errors of the device's PCIe link (`folder`/../../device/aer_dev_*), as
/// aer_correctable, aer_nonfatal and aer_fatal. Empty where there are none. Takes a millisecond or so; the kernel keeps
/// hw_counters for 10 ms. Any thread.
Counters read_port_counters(const std::string& folder);
/// Of a device of this machine; empty for what is no device's name.
Counters read_port_counters(const std::string& device, int port);

/// True for counters of errors, discards, retransmissions and pauses: those that a sound port does not count.
bool counts_trouble(std::string_view name);

}  // namespace gdrperf::verbs
