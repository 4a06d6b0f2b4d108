#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cm/state/address.h"

/// Messages between the two ends of a connection: those of the
/// communication manager (specification, chapter 12), with what the software
/// device needs of each. In bytes of its own, little-endian: what carries them may
/// be a socket of this host or of another one.
namespace gdrperf::softnic {

enum class CmKind : std::uint8_t {
  kRequest = 1,  ///< REQ
  kReply,        ///< REP
  kReady,        ///< RTU
  kReject,       ///< REJ
  kDisconnect,   ///< DREQ
  kDisconnected, ///< DREP
  kSidrRequest,
  kSidrReply,
};

inline constexpr std::size_t kMaxPrivateData = 256;

/// Reasons of REJ (specification, table 108).
enum class CmReject : std::uint8_t {
  kTimeout = 4,
  kInvalidServiceId = 8,
  kConsumerDefined = 28,
  kVendorOption = 35,
};

/// Status of SIDR REP.
enum class CmSidrStatus : std::uint8_t { kValid = 0, kServiceUnknown = 1, kRejected = 2 };

struct CmMessage {
  CmKind kind = CmKind::kRequest;
  std::uint16_t port_space = 0;
  std::uint32_t from = 0;  ///< the sender's number for the connection
  std::uint32_t to = 0;    ///< the receiver's; 0 in requests
  CmAddress source;        ///< of requests
  CmAddress destination;
  ibv_gid gid{};  ///< the sender's
  std::uint32_t qp_number = 0;
  std::uint32_t qkey = 0;
  std::uint32_t psn = 0;
  std::uint8_t mtu = 0;  ///< ibv_mtu
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t srq = 0;
  std::uint8_t status = 0;  ///< CmReject, CmSidrStatus
  std::uint32_t ece_vendor = 0;
  std::uint32_t ece_options = 0;
  std::uint16_t private_bytes = 0;
  std::array<std::uint8_t, kMaxPrivateData> private_data{};
};

/// Both ends must have the same; it is in each message.
inline constexpr std::uint8_t kCmVersion = 1;
inline constexpr std::size_t kMaxCmBytes = 512;

std::vector<std::uint8_t> encode(const CmMessage& message);
/// Nothing: not a whole message of this version, or one with a field out of range.
std::optional<CmMessage> decode(std::span<const std::uint8_t> bytes);

}  // namespace gdrperf::softnic
