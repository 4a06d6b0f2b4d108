#include "cm/state/events.h"

#include <algorithm>
#include <cstring>

#include "shared/segment/multicast.h"

namespace gdrperf::softnic {
namespace {

/// Header that rdma_cm puts in front of a program's data, in requests of IP port spaces.
constexpr std::size_t kIpHeader = 36;

rdma_ucm_conn_param connection_of(const CmMessage& message, std::size_t capacity) {
  rdma_ucm_conn_param param{};
  const std::size_t bytes = std::min<std::size_t>(message.private_bytes, capacity);
  std::copy_n(message.private_data.begin(), bytes, param.private_data);
  param.private_data_len = static_cast<std::uint8_t>(capacity);
  // The sender's depth is what the receiver answers.
  param.responder_resources = message.initiator_depth;
  param.initiator_depth = message.responder_resources;
  param.flow_control = message.flow_control;
  param.retry_count = message.retry_count;
  param.rnr_retry_count = message.rnr_retry_count;
  param.srq = message.srq;
  param.qp_num = message.qp_number;
  param.valid = 1;
  return param;
}

rdma_ucm_ud_param datagram_of(const CmId& id, const CmMessage& message, std::size_t capacity) {
  rdma_ucm_ud_param param{};
  const std::size_t bytes = std::min<std::size_t>(message.private_bytes, capacity);
  std::copy_n(message.private_data.begin(), bytes, param.private_data);
  param.private_data_len = static_cast<std::uint8_t>(capacity);
  param.qp_num = message.qp_number;
  param.qkey = message.qkey;
  param.ah_attr = address_handle(id);
  return param;
}

CmEvent event_of(CmId& id, CmEventKind kind, int status) {
  CmEvent event{&id, nullptr, {}, nullptr};
  event.answer.uid = id.uid;
  event.answer.id = id.handle;
  event.answer.event = kind;
  event.answer.status = static_cast<std::uint32_t>(status);
  return event;
}

void put_parameters(const CmId& id, const CmMessage& message, CmEvent& event) {
  const std::size_t capacity = private_capacity(message.kind, id.port_space);
  if (id.datagram()) {
    event.answer.param.ud = datagram_of(id, message, capacity);
  } else {
    event.answer.param.conn = connection_of(message, capacity);
  }
  event.answer.ece = {message.ece_vendor, message.ece_options};
}

}  // namespace

std::size_t private_capacity(CmKind kind, std::uint16_t port_space) {
  const std::size_t header = port_space == RDMA_PS_IB ? 0 : kIpHeader;
  switch (kind) {
    case CmKind::kRequest: return 92 - header;
    case CmKind::kSidrRequest: return 216 - header;
    case CmKind::kReply: return 196;
    case CmKind::kReject: return 148;
    case CmKind::kSidrReply: return 136;
    case CmKind::kReady:
    case CmKind::kDisconnect:
    case CmKind::kDisconnected: break;
  }
  return 0;
}

void report(CmId& id, CmEventKind kind, int status) {
  if (id.uid != 0) id.channel->push(event_of(id, kind, status));
}

void report_message(CmId& id, CmEventKind kind, int status, const CmMessage& message) {
  if (id.uid == 0) return;
  CmEvent event = event_of(id, kind, status);
  put_parameters(id, message, event);
  id.channel->push(event);
}

void report_request(CmId& listener, CmId& fresh, const CmMessage& message) {
  CmEvent event = event_of(listener, kConnectRequest, 0);
  event.fresh = &fresh;
  event.answer.id = fresh.handle;
  put_parameters(fresh, message, event);
  listener.channel->push(event);
}

/// A group of IPv4 is sent to with IPv4's header.
static std::uint8_t gid_index_for(const ibv_gid& group) {
  std::uint8_t index = 0;
  while (kGidKinds[index].type != IBV_GID_TYPE_ROCE_V2 || kGidKinds[index].ipv4 != is_mapped_ipv4(group)) ++index;
  return index;
}

void report_joined(CmGroup& group) {
  CmId& id = *group.id;
  if (id.uid == 0) return;
  CmEvent event = event_of(id, kMulticastJoin, 0);
  event.group = &group;
  event.answer.uid = group.uid;
  event.answer.id = group.handle;
  rdma_ucm_ud_param& param = event.answer.param.ud;
  param.ah_attr = address_handle(id);
  std::memcpy(param.ah_attr.grh.dgid, group.gid.raw, sizeof param.ah_attr.grh.dgid);
  param.ah_attr.grh.sgid_index = gid_index_for(group.gid);
  param.qp_num = kMulticastQpn;
  param.qkey = id.qkey != 0 ? id.qkey : kUdpQkey;
  id.channel->push(event);
}

void report_written(CmId& id, CmEventKind kind, int status, std::uint64_t argument) {
  if (id.uid == 0) return;
  CmEvent event = event_of(id, kind, status);
  std::memcpy(&event.answer.param, &argument, sizeof argument);
  id.channel->push(event);
}

ib_uverbs_ah_attr address_handle(const CmId& id) {
  ib_uverbs_ah_attr attr{};
  std::memcpy(attr.grh.dgid, id.connection.remote_gid.raw, sizeof attr.grh.dgid);
  attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_at(*id.device, id.source));
  attr.grh.hop_limit = 64;
  attr.grh.traffic_class = id.traffic_class;
  attr.is_global = 1;
  attr.port_num = id.device->number;
  return attr;
}

}  // namespace gdrperf::softnic
