#include "cm/state/answers.h"

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cm/state/events.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kNoIndex = ~0u;
/// As the kernel takes for RoCE: 4.096 us * 2^16, and as much again there and back.
constexpr std::uint8_t kPacketLifetime = 16;
constexpr std::uint8_t kAckTimeout = 18;
constexpr std::uint8_t kHopLimit = 64;

/// A path record as subnet administration has it (specification, 15.2.5.16).
struct PathRecord {
  __be64 service;
  ibv_gid destination;
  ibv_gid source;
  __be16 destination_lid;
  __be16 source_lid;
  __be32 flow_and_hops;
  std::uint8_t traffic_class;
  std::uint8_t reversible_and_paths;
  __be16 partition;
  __be16 class_and_level;
  std::uint8_t mtu;
  std::uint8_t rate;
  std::uint8_t lifetime;
  std::uint8_t preference;
  std::uint8_t reserved[6];
};
static_assert(sizeof(PathRecord) == sizeof(ib_path_rec_data::path_rec));

/// ibv_rate of the port; the next below where there is none.
std::uint8_t path_rate(const Device& device) {
  struct Rate {
    double gigabits;
    ibv_rate rate;
  };
  constexpr std::array<Rate, 10> kRates = {{{2.5, IBV_RATE_2_5_GBPS},
                                            {5, IBV_RATE_5_GBPS},
                                            {10, IBV_RATE_10_GBPS},
                                            {20, IBV_RATE_20_GBPS},
                                            {40, IBV_RATE_40_GBPS},
                                            {56, IBV_RATE_56_GBPS},
                                            {100, IBV_RATE_100_GBPS},
                                            {200, IBV_RATE_200_GBPS},
                                            {300, IBV_RATE_300_GBPS},
                                            {400, IBV_RATE_400_GBPS}}};
  ibv_rate found = IBV_RATE_2_5_GBPS;
  for (const Rate& it : kRates) {
    if (it.gigabits <= port_gigabits(device)) found = it.rate;
  }
  return static_cast<std::uint8_t>(found);
}

std::uint8_t path_mtu(const CmId& id) {
  if (id.connection.mtu != 0) return id.connection.mtu;
  ibv_port_attr attr;
  describe_port(*id.device, attr);
  return static_cast<std::uint8_t>(attr.active_mtu);
}

ibv_gid source_gid(const CmId& id) { return id.device->gid(gid_index_at(*id.device, id.source)); }

bool has_path(const CmId& id) {
  return id.device != nullptr && id.state != CmState::kIdle && id.state != CmState::kBound &&
         id.state != CmState::kListening && id.state != CmState::kAddressResolved;
}

template <typename T>
T as_kernel_sockaddr(const sockaddr_storage& from) {
  T to{};
  std::memcpy(&to, &from, sizeof to < sizeof from ? sizeof to : sizeof from);
  return to;
}

rdma_ucm_query_addr_resp answer_of_device(const CmId& id) {
  rdma_ucm_query_addr_resp answer{};
  answer.ibdev_index = kNoIndex;
  answer.pkey = kDefaultPartition;
  if (id.device == nullptr) return answer;
  answer.node_guid = id.device->node_guid();
  answer.port_num = id.device->number;
  return answer;
}

void put_init(const CmId& id, ib_uverbs_qp_attr& attr) {
  attr.port_num = id.device->number;
  attr.qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.datagram()) {
    attr.qkey = id.qkey != 0 ? id.qkey : kUdpQkey;
    attr.qp_attr_mask |= IBV_QP_QKEY;
    return;
  }
  attr.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
  if (id.connection.number == 0) return;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.connection.responder_resources != 0) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

void put_receiving(const CmId& id, ib_uverbs_qp_attr& attr) {
  attr.ah_attr = address_handle(id);
  attr.path_mtu = path_mtu(id);
  attr.dest_qp_num = id.connection.remote_qp_number;
  attr.rq_psn = id.connection.remote_psn;
  attr.max_dest_rd_atomic = id.connection.responder_resources;
  attr.qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_MIN_RNR_TIMER;
}

void put_sending(const CmId& id, ib_uverbs_qp_attr& attr) {
  attr.sq_psn = id.connection.psn;
  attr.qp_attr_mask |= IBV_QP_SQ_PSN;
  if (id.datagram()) return;
  attr.timeout = id.ack_timeout != 0 ? id.ack_timeout : kAckTimeout;
  attr.retry_cnt = id.connection.retry_count;
  attr.rnr_retry = id.connection.rnr_retry_count;
  attr.max_rd_atomic = id.connection.initiator_depth;
  attr.qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

}  // namespace

rdma_ucm_query_addr_resp answer_addresses(const CmId& id) {
  rdma_ucm_query_addr_resp answer = answer_of_device(id);
  sockaddr_storage source{};
  sockaddr_storage destination{};
  answer.src_size = static_cast<std::uint16_t>(write_sockaddr(id.source, source));
  answer.dst_size = static_cast<std::uint16_t>(write_sockaddr(id.destination, destination));
  answer.src_addr = as_kernel_sockaddr<__kernel_sockaddr_storage>(source);
  answer.dst_addr = as_kernel_sockaddr<__kernel_sockaddr_storage>(destination);
  return answer;
}

rdma_ucm_query_addr_resp answer_gids(const CmId& id) {
  rdma_ucm_query_addr_resp answer = answer_of_device(id);
  sockaddr_storage source{};
  sockaddr_storage destination{};
  const ibv_gid own = id.device != nullptr ? source_gid(id) : ibv_gid{};
  answer.src_size = static_cast<std::uint16_t>(write_ib_sockaddr(own, kDefaultPartition, source));
  answer.dst_size =
      static_cast<std::uint16_t>(write_ib_sockaddr(id.connection.remote_gid, kDefaultPartition, destination));
  answer.src_addr = as_kernel_sockaddr<__kernel_sockaddr_storage>(source);
  answer.dst_addr = as_kernel_sockaddr<__kernel_sockaddr_storage>(destination);
  return answer;
}

CmPathAnswer answer_path(const CmId& id) {
  CmPathAnswer answer{};
  if (!has_path(id)) return answer;
  constexpr std::uint8_t kExactly = 2 << 6;
  PathRecord record{};
  record.destination = id.connection.remote_gid;
  record.source = source_gid(id);
  record.flow_and_hops = htobe32(kHopLimit);
  record.traffic_class = id.traffic_class;
  record.reversible_and_paths = 0x80 | 1;
  record.partition = htobe16(kDefaultPartition);
  record.mtu = kExactly | path_mtu(id);
  record.rate = kExactly | path_rate(*id.device);
  record.lifetime = kExactly | kPacketLifetime;
  answer.num_paths = 1;
  answer.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  std::memcpy(answer.path.path_rec, &record, sizeof record);
  return answer;
}

rdma_ucm_query_route_resp answer_route(const CmId& id) {
  rdma_ucm_query_route_resp answer{};
  answer.ibdev_index = kNoIndex;
  sockaddr_storage source{};
  sockaddr_storage destination{};
  write_sockaddr(id.source, source);
  write_sockaddr(id.destination, destination);
  answer.src_addr = as_kernel_sockaddr<sockaddr_in6>(source);
  answer.dst_addr = as_kernel_sockaddr<sockaddr_in6>(destination);
  if (id.device == nullptr) return answer;
  answer.node_guid = id.device->node_guid();
  answer.port_num = id.device->number;
  answer.num_paths = has_path(id) ? 1 : 0;
  ib_user_path_rec& path = answer.ib_route[0];
  const ibv_gid own = source_gid(id);
  std::memcpy(path.dgid, id.connection.remote_gid.raw, sizeof path.dgid);
  std::memcpy(path.sgid, own.raw, sizeof path.sgid);
  path.reversible = 1;
  path.mtu = path_mtu(id);
  path.pkey = htobe16(kDefaultPartition);
  path.hop_limit = kHopLimit;
  path.traffic_class = id.traffic_class;
  path.numb_path = 1;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = 2;
  path.rate = path_rate(*id.device);
  path.packet_life_time = kPacketLifetime;
  return answer;
}

int answer_qp_attributes(const CmId& id, std::uint32_t state, ib_uverbs_qp_attr& attr) {
  attr = {};
  if (id.device == nullptr) return -EINVAL;
  attr.qp_state = state;
  attr.qp_attr_mask = IBV_QP_STATE;
  const bool connected = id.connection.number != 0;
  if (state == IBV_QPS_INIT) {
    put_init(id, attr);
  } else if (state == IBV_QPS_RTR && connected && !id.datagram()) {
    put_receiving(id, attr);
  } else if (state == IBV_QPS_RTS && (connected || id.datagram())) {
    put_sending(id, attr);
  } else if (state != IBV_QPS_RTR || !id.datagram()) {
    return -EINVAL;
  }
  return 0;
}

}  // namespace gdrperf::softnic
