#include "cm/links/dialogue.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gdrperf::softnic {
namespace {

std::uint32_t random_psn() {
  std::uint32_t psn = 0;
  [[maybe_unused]] const auto got = ::getrandom(&psn, sizeof psn, 0);
  return psn & 0xffffff;
}

std::uint8_t port_mtu(const Device& device) {
  ibv_port_attr attr;
  describe_port(device, attr);
  return static_cast<std::uint8_t>(attr.active_mtu);
}

}  // namespace

CmMessage CmDialogue::message_of(const CmId& id, CmKind kind) const {
  CmMessage message;
  message.kind = kind;
  message.port_space = id.port_space;
  message.from = id.connection.number;
  message.to = id.connection.remote_number;
  message.source = id.source;
  message.destination = id.destination;
  message.gid = id.device->gid(gid_index_at(*id.device, id.source));
  message.psn = id.connection.psn;
  message.mtu = id.connection.mtu;
  return message;
}

void CmDialogue::put_connection(const CmId& id, const rdma_ucm_conn_param& param, CmMessage& message) {
  message.qp_number = param.qp_num & 0xffffff;
  message.responder_resources = param.responder_resources;
  message.initiator_depth = param.initiator_depth;
  message.flow_control = param.flow_control;
  message.retry_count = std::min<std::uint8_t>(param.retry_count, 7);
  message.rnr_retry_count = std::min<std::uint8_t>(param.rnr_retry_count, 7);
  message.srq = param.srq;
  message.qkey = id.qkey;
  message.private_bytes = param.private_data_len;
  std::copy_n(param.private_data, param.private_data_len, message.private_data.begin());
}

void CmDialogue::send(const CmId& id, const CmMessage& message) const {
  if (id.connection.link) id.connection.link->send(encode(message));
}

void CmDialogue::send_reject(CmId& id, CmReject reason) const {
  CmMessage message = message_of(id, CmKind::kReject);
  message.status = static_cast<std::uint8_t>(reason);
  send(id, message);
}

int CmDialogue::connect(CmId& id, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece,
                        std::shared_ptr<CmLink> link, int error) {
  const CmKind kind = id.datagram() ? CmKind::kSidrRequest : CmKind::kRequest;
  if (id.state != CmState::kRouteResolved || param.valid == 0) return -EINVAL;
  if (param.private_data_len > private_capacity(kind, id.port_space)) return -EINVAL;
  CmConnection& connection = id.connection;
  table_.number(id);
  connection.link = std::move(link);
  connection.psn = random_psn();
  connection.mtu = port_mtu(*id.device);
  connection.responder_resources = param.responder_resources;
  connection.initiator_depth = param.initiator_depth;
  connection.retry_count = std::min<std::uint8_t>(param.retry_count, 7);
  id.state = CmState::kRequestSent;
  CmMessage message = message_of(id, kind);
  put_connection(id, param, message);
  message.ece_vendor = ece.vendor_id;
  message.ece_options = ece.attr_mod;
  if (connection.link) {
    send(id, message);
    return 0;
  }
  id.state = CmState::kClosed;
  CmMessage refusal;
  refusal.kind = id.datagram() ? CmKind::kSidrReply : CmKind::kReject;
  if (error != 0) {
    report_message(id, kUnreachable, error, refusal);
  } else if (id.datagram()) {
    report_message(id, kUnreachable, static_cast<int>(CmSidrStatus::kServiceUnknown), refusal);
  } else {
    report_message(id, kRejected, static_cast<int>(CmReject::kInvalidServiceId), refusal);
  }
  return 0;
}

int CmDialogue::accept_datagrams(CmId& id, const rdma_ucm_conn_param& param) {
  if (param.private_data_len > private_capacity(CmKind::kSidrReply, id.port_space)) return -EINVAL;
  id.qkey = param.qkey != 0 ? param.qkey : kUdpQkey;
  CmMessage message = message_of(id, CmKind::kSidrReply);
  put_connection(id, param, message);
  send(id, message);
  id.state = CmState::kClosed;
  return 0;
}

int CmDialogue::accept_request(CmId& id, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece) {
  if (param.private_data_len > private_capacity(CmKind::kReply, id.port_space)) return -EINVAL;
  id.connection.responder_resources = param.responder_resources;
  id.connection.initiator_depth = param.initiator_depth;
  CmMessage message = message_of(id, CmKind::kReply);
  put_connection(id, param, message);
  message.ece_vendor = ece.vendor_id;
  message.ece_options = ece.attr_mod;
  send(id, message);
  id.state = CmState::kReplySent;
  return 0;
}

int CmDialogue::accept(CmId& id, std::uint64_t uid, const rdma_ucm_conn_param& param, const rdma_ucm_ece& ece) {
  if (id.state == CmState::kReplyReceived) {
    send(id, message_of(id, CmKind::kReady));
    id.state = CmState::kConnected;
    return 0;
  }
  if (id.state != CmState::kRequestReceived || param.valid == 0) return -EINVAL;
  const int error = id.datagram() ? accept_datagrams(id, param) : accept_request(id, param, ece);
  if (error == 0) id.uid = uid;
  return error;
}

int CmDialogue::reject(CmId& id, CmReject reason, std::span<const std::uint8_t> private_data) {
  if (id.state != CmState::kRequestReceived && id.state != CmState::kReplyReceived) return -EINVAL;
  const CmKind kind = id.datagram() ? CmKind::kSidrReply : CmKind::kReject;
  if (private_data.size() > private_capacity(kind, id.port_space)) return -EINVAL;
  CmMessage message = message_of(id, kind);
  message.status =
      id.datagram() ? static_cast<std::uint8_t>(CmSidrStatus::kRejected) : static_cast<std::uint8_t>(reason);
  message.private_bytes = static_cast<std::uint16_t>(private_data.size());
  std::copy(private_data.begin(), private_data.end(), message.private_data.begin());
  send(id, message);
  id.state = CmState::kClosed;
  return 0;
}

int CmDialogue::disconnect(CmId& id) {
  if (id.connection.number == 0) return -EINVAL;
  if (id.state == CmState::kConnected || id.state == CmState::kReplySent) {
    send(id, message_of(id, CmKind::kDisconnect));
    id.state = CmState::kDisconnectSent;
  } else if (id.state == CmState::kDisconnectReceived) {
    send(id, message_of(id, CmKind::kDisconnected));
    end(id);
  }
  return 0;
}

int CmDialogue::notify(CmId& id, std::uint32_t event) {
  if (event != IBV_EVENT_COMM_EST || id.state != CmState::kReplySent) return 0;
  id.state = CmState::kConnected;
  report(id, kEstablished);
  return 0;
}

void CmDialogue::part(CmId& id) {
  switch (id.state) {
    case CmState::kRequestSent:
      if (!id.datagram()) send_reject(id, CmReject::kTimeout);
      break;
    case CmState::kRequestReceived: reject(id, CmReject::kConsumerDefined, {}); break;
    case CmState::kReplyReceived:
    case CmState::kReplySent: send_reject(id, CmReject::kConsumerDefined); break;
    case CmState::kConnected:
      if (!id.datagram()) send(id, message_of(id, CmKind::kDisconnect));
      break;
    case CmState::kDisconnectReceived: send(id, message_of(id, CmKind::kDisconnected)); break;
    default: break;
  }
  id.state = CmState::kClosed;
}

void CmDialogue::end(CmId& id) {
  id.state = CmState::kClosed;
  linger_(id.connection.number);
}

void CmDialogue::end_of_linger(std::uint32_t number) {
  CmId* id = table_.numbered(number);
  if (id != nullptr && id->state == CmState::kClosed) report(*id, kTimewaitExit);
}

}  // namespace gdrperf::softnic
