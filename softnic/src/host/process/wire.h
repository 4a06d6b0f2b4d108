#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/segment/layout.h"

/// Messages between two processes over the abstract SEQPACKET socket of
/// the one that is connected to. Both ends run on one host and are builds of
/// one layout (the socket's name says which), so structs travel raw.
namespace gdrperf::softnic {

enum class WireKind : std::uint32_t {
  kConnect = 1,  ///< answered by WireReply with the segment and the window
  kChannel,      ///< answered by WireReply with the channel's eventfd
  kRaise,        ///< raise an event on a channel; no answer
  kQpError,      ///< a QP of the receiver was put into the error state; no answer
  kSrqLimit,     ///< the SRQ of a QP fell below its limit; no answer
  kMayCopy,      ///< the kernel refuses to copy for the sender: consent, if that is it; answered by WireReply
  kStranger,     ///< from a process of another user, with its memfd (stranger.h)
  kTcp,          ///< with a TCP connection that is for a QP of the receiver; no answer
  kAgent,        ///< with the sender's memfd: this connection is an agent's from now on (agent.h)
};

struct WireRequest {
  std::uint64_t process_id = 0;  ///< of the sender
  WireKind kind = WireKind::kConnect;
  std::uint32_t number = 0;  ///< QP number or channel number
  std::uint32_t event = 0;   ///< kQpError: ibv_event_type
  std::uint32_t reserved = 0;
};

struct WireReply {
  std::uint64_t process_id = 0;
  std::uint64_t window_bytes = 0;
  std::int32_t error = 0;  ///< errno; 0 is fine
  std::uint32_t fd_count = 0;
};

/// Content of an agent's connection: one request, one CopyReply, and so on.
struct CopyRequest {
  std::uint64_t address = 0;  ///< in the receiver's memory
  std::uint64_t length = 0;   ///< at most kAgentBytes; the data lies at the memfd's beginning
  std::uint32_t region = 0;   ///< index of the region or window that has it all
  std::uint32_t key = 0;      ///< its key
  std::uint32_t fetch = 0;    ///< 0: from the memfd to the address, 1: the other way
  std::uint32_t reserved = 0;
};
struct CopyReply {
  std::int32_t error = 0;  ///< errno; 0 is fine
  std::uint32_t reserved = 0;
};
inline constexpr std::uint64_t kAgentBytes = 1u << 20;

/// The abstract name of a process' socket (names.h).
std::string socket_name(std::uint32_t block);
inline constexpr const char* kSocketNameStart = "gdrperf-softnic.";
/// How the name of a virtual port's socket begins.
inline constexpr const char* kPortNameStart = "gdrperf-softnic-port.";
/// The version of the layout in such a name of this block; nothing for other names.
std::optional<std::uint32_t> version_of_socket(const std::string& name, std::uint32_t block);

/// Sends one packet with up to two descriptors. False on any failure.
bool send_packet(int socket, const void* bytes, std::size_t size, const int* fds, unsigned fd_count);
/// Adds one to an eventfd, unless that would have to wait: somebody who has it
/// as well may have filled it. False then.
bool raise_event(int fd) noexcept;

/// Receives one packet of exactly `size` bytes; descriptors (close-on-exec) go
/// to `fds`, at most two, missing ones are -1. False on failure, hang-up, or a
/// packet that is longer or carries more descriptors (errno is EPROTO then).
bool receive_packet(int socket, void* bytes, std::size_t size, int (&fds)[2]);

}  // namespace gdrperf::softnic
