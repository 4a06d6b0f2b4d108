#include <algorithm>
#include <cerrno>

#include "cm/links/dialogue.h"

/// Messages of the other end.
namespace gdrperf::softnic {

void CmDialogue::refuse(const std::shared_ptr<CmLink>& link, const CmMessage& request, CmReject reason) const {
  CmMessage message;
  message.port_space = request.port_space;
  message.to = request.from;
  if (request.kind == CmKind::kSidrRequest) {
    message.kind = CmKind::kSidrReply;
    message.status = static_cast<std::uint8_t>(CmSidrStatus::kServiceUnknown);
  } else {
    message.kind = CmKind::kReject;
    message.status = static_cast<std::uint8_t>(reason);
  }
  link->send(encode(message));
}

CmId* CmDialogue::listener_for(const CmMessage& message) {
  CmId* found = nullptr;
  table_.for_each_id([&](CmId& id) {
    if (id.state != CmState::kListening || id.port_space != message.port_space) return;
    if (id.source.port != message.destination.port || id.datagram() != (message.kind == CmKind::kSidrRequest)) return;
    if (id.source.same_host(message.destination)) {
      found = &id;
    } else if (found == nullptr && id.has_address(message.destination)) {
      found = &id;
    }
  });
  return found;
}

bool CmDialogue::lacks_listener(const CmMessage& message) {
  const bool request = message.kind == CmKind::kRequest || message.kind == CmKind::kSidrRequest;
  return request && listener_for(message) == nullptr;
}

void CmDialogue::handle_request(const std::shared_ptr<CmLink>& link, const CmMessage& message) {
  CmId* listener = listener_for(message);
  Device* device = listener == nullptr ? nullptr : device_at(message.destination);
  if (device == nullptr) {
    refuse(link, message, CmReject::kInvalidServiceId);
    return;
  }
  CmId* fresh = listener->backlog == 0 ? nullptr : table_.add_id(*listener->channel);
  if (fresh == nullptr) {
    refuse(link, message, CmReject::kConsumerDefined);
    return;
  }
  --listener->backlog;
  fresh->port_space = listener->port_space;
  fresh->qp_type = listener->qp_type;
  fresh->state = CmState::kRequestReceived;
  fresh->source = message.destination;
  fresh->destination = message.source;
  fresh->device = device;
  table_.number(*fresh);
  CmConnection& connection = fresh->connection;
  connection.link = link;
  connection.remote_number = message.from;
  connection.remote_gid = message.gid;
  connection.remote_qp_number = message.qp_number;
  connection.psn = message.psn;  // both directions may begin alike
  connection.remote_psn = message.psn;
  connection.mtu = message.mtu;
  connection.responder_resources = message.initiator_depth;
  connection.initiator_depth = message.responder_resources;
  connection.retry_count = message.retry_count;
  connection.rnr_retry_count = message.rnr_retry_count;
  ibv_port_attr port;
  describe_port(*device, port);
  connection.mtu = std::min(connection.mtu, static_cast<std::uint8_t>(port.active_mtu));
  report_request(*listener, *fresh, message);
}

void CmDialogue::handle_reply(CmId& id, const CmMessage& message) {
  if (id.state != CmState::kRequestSent || id.datagram()) return;
  CmConnection& connection = id.connection;
  connection.remote_number = message.from;
  connection.remote_gid = message.gid;
  connection.remote_qp_number = message.qp_number;
  connection.remote_psn = message.psn;
  connection.mtu = std::min(connection.mtu, message.mtu);
  connection.responder_resources = message.initiator_depth;
  connection.initiator_depth = message.responder_resources;
  connection.rnr_retry_count = message.rnr_retry_count;
  id.state = CmState::kReplyReceived;
  report_message(id, kConnectResponse, 0, message);
}

void CmDialogue::handle_sidr_reply(CmId& id, const CmMessage& message) {
  if (id.state != CmState::kRequestSent || !id.datagram()) return;
  id.state = CmState::kClosed;
  id.connection.remote_gid = message.gid;
  if (message.status != static_cast<std::uint8_t>(CmSidrStatus::kValid)) {
    report_message(id, kUnreachable, message.status, message);
    return;
  }
  id.connection.remote_qp_number = message.qp_number;
  id.qkey = message.qkey;
  report_message(id, kEstablished, 0, message);
}

void CmDialogue::handle_reject(CmId& id, const CmMessage& message) {
  switch (id.state) {
    case CmState::kRequestSent:
    case CmState::kRequestReceived:
    case CmState::kReplyReceived:
    case CmState::kReplySent: break;
    default: return;
  }
  id.state = CmState::kClosed;
  report_message(id, kRejected, message.status, message);
}

void CmDialogue::handle_disconnect(CmId& id) {
  if (id.state == CmState::kDisconnectSent) {
    send(id, message_of(id, CmKind::kDisconnected));
    report(id, kDisconnected);
    end(id);
  } else if (id.state == CmState::kConnected || id.state == CmState::kReplySent) {
    id.state = CmState::kDisconnectReceived;
    report(id, kDisconnected);
  }
}

void CmDialogue::handle(const std::shared_ptr<CmLink>& link, const CmMessage& message) {
  if (message.kind == CmKind::kRequest || message.kind == CmKind::kSidrRequest) {
    handle_request(link, message);
    return;
  }
  CmId* id = table_.numbered(message.to);
  // Only whoever the connection is with may speak of it.
  if (id == nullptr || id->connection.link != link) return;
  const std::uint32_t remote = id->connection.remote_number;
  if (remote != 0 && message.from != remote) return;
  switch (message.kind) {
    case CmKind::kReply: handle_reply(*id, message); break;
    case CmKind::kSidrReply: handle_sidr_reply(*id, message); break;
    case CmKind::kReject: handle_reject(*id, message); break;
    case CmKind::kDisconnect: handle_disconnect(*id); break;
    case CmKind::kReady:
      if (id->state != CmState::kReplySent) break;
      id->state = CmState::kConnected;
      report(*id, kEstablished);
      break;
    case CmKind::kDisconnected:
      if (id->state != CmState::kDisconnectSent) break;
      report(*id, kDisconnected);
      end(*id);
      break;
    default: break;
  }
}

void CmDialogue::handle_loss(const std::shared_ptr<CmLink>& link) {
  table_.for_each_id([&](CmId& id) {
    if (id.connection.link != link) return;
    id.connection.link.reset();
    switch (id.state) {
      case CmState::kRequestSent:
        if (id.datagram()) {
          id.state = CmState::kClosed;
          report(id, kUnreachable, -ETIMEDOUT);
          break;
        }
        [[fallthrough]];
      case CmState::kRequestReceived:
      case CmState::kReplyReceived:
      case CmState::kReplySent: {
        // The kernel's message for a process that ends.
        CmMessage refusal;
        refusal.kind = CmKind::kReject;
        refusal.status = static_cast<std::uint8_t>(CmReject::kConsumerDefined);
        handle_reject(id, refusal);
        break;
      }
      case CmState::kConnected:
        id.state = CmState::kDisconnectReceived;
        report(id, kDisconnected);
        break;
      case CmState::kDisconnectSent:
        report(id, kDisconnected);
        end(id);
        break;
      default: break;
    }
  });
}

}  // namespace gdrperf::softnic
