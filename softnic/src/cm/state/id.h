#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "cm/state/address.h"
#include "cm/links/link.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

/// One rdma_cm_id, as the kernel has it behind a program's.
namespace gdrperf::softnic {

struct CmChannel;

enum class CmState {
  kIdle,
  kBound,
  kListening,
  kAddressResolved,
  kRouteResolved,
  kRequestSent,      ///< active: REQ, or SIDR REQ
  kReplyReceived,    ///< active: REP
  kRequestReceived,  ///< passive
  kReplySent,        ///< passive: REP
  kConnected,
  kDisconnectSent,      ///< DREQ
  kDisconnectReceived,  ///< DREQ, not answered yet
  kClosed,
};

/// Private data and parameters received, and those sent.
struct CmConnection {
  std::uint32_t number = 0;  ///< this end's; 0: no connection
  std::uint32_t remote_number = 0;
  std::shared_ptr<CmLink> link;
  ibv_gid remote_gid{};
  std::uint32_t remote_qp_number = 0;
  std::uint32_t psn = 0;
  std::uint32_t remote_psn = 0;
  std::uint8_t mtu = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
};

/// A port that an id has. Thread-safe.
struct CmClaim {
  UniqueFd socket;
  Mutex mutex;
  std::uint64_t token GUARDED_BY(mutex) = 0;  ///< of the loop that watches it; 0: none yet
  bool released GUARDED_BY(mutex) = false;
};

struct CmId {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;  ///< the program's; 0 until it accepts a request
  CmChannel* channel = nullptr;
  std::uint16_t port_space = 0;
  std::uint8_t qp_type = 0;
  CmState state = CmState::kIdle;

  CmAddress source;
  CmAddress destination;
  Device* device = nullptr;  ///< and its port
  bool remote = false;  ///< the destination is another host
  std::shared_ptr<CmClaim> claim;  ///< of the source's port
  bool any_port = false;  ///< nobody asked for the source's port
  bool reuse_address = false;
  std::optional<bool> asked_family_only;  ///< RDMA_OPTION_ID_AFONLY
  bool family_only = true;  ///< of its source: IPv6's any address means none of IPv4's. Set by bind
  std::uint8_t traffic_class = 0;
  std::uint8_t ack_timeout = 0;  ///< 0: none given

  std::uint32_t qkey = 0;
  std::uint32_t events_reported = 0;
  std::uint32_t backlog = 0;  ///< of a listener: requests that may still come
  CmConnection connection;

  bool datagram() const { return qp_type == IBV_QPT_UD; }
  /// Its source means this address as well.
  bool has_address(const CmAddress& address) const {
    if (source.same_host(address)) return true;
    return source.any() && (source.family == address.family || (source.family == AF_INET6 && !family_only));
  }
};

/// A multicast group that an id was joined to.
struct CmGroup {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;  ///< the program's
  CmId* id = nullptr;
  ibv_gid gid{};
  std::uint32_t events_reported = 0;
};

inline constexpr std::uint32_t kUdpQkey = 0x01234567;  ///< RDMA_UDP_QKEY
inline constexpr std::uint16_t kDefaultPartition = 0xffff;

}  // namespace gdrperf::softnic
