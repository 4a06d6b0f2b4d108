#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <vector>

/// The kernel's RDMA netlink (`rdma link`, newer libibverbs) for devices of ours.
namespace gdrperf::softnic {

/// A whole message, with its header.
using NetlinkMessage = std::vector<std::uint8_t>;

/// Answer to a request whose sender has this port. `kernels` are the
/// kernel's own answers to the same request; none where it knows no RDMA.
std::vector<NetlinkMessage> answer_rdma_request(const NetlinkMessage& request, std::uint32_t port,
                                                const std::vector<NetlinkMessage>& kernels);

}  // namespace gdrperf::softnic
