#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gdrperf/base/unique_fd.h"
#include "remote/frame.h"

/// Datagrams to a multicast group of another host's: each is one of UDP to the
/// group's own address, at the port that TCP has, with a proof of the secret. The
/// network passes them on as it does those of any program.
namespace gdrperf::softnic {

inline constexpr std::uint32_t kMostGroupData = 4096;

/// In front of the data.
struct GroupHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  ibv_gid from;
  ibv_gid to;
  Frame frame;  ///< kDatagram; `status` is the sender's entry in its GID table
  std::uint8_t proof[kProofBytes];
};
static_assert(sizeof(GroupHead) == 136);

/// For groups with addresses of IPv4 or of IPv6, out of that interface, and not back to
/// this host. Empty: errno says why.
UniqueFd group_sender(const ibv_gid& group, const std::string& netdev);
/// Takes what comes to the group by that interface. Empty: errno says why.
UniqueFd group_receiver(const ibv_gid& group, std::uint16_t port, const std::string& netdev);

/// Fills in what is the same for all, and the proof.
void seal(GroupHead& head, std::span<const std::uint8_t> data, const std::string& secret);
enum class Sealed { kGood, kNonsense, kOtherVersion, kOtherSecret };
/// A whole datagram: what it is worth. Nothing of it is believed but that its sender has the secret.
Sealed check_seal(std::span<const std::uint8_t> datagram, const std::string& secret, GroupHead& head);

}  // namespace gdrperf::softnic
