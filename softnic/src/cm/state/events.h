#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstddef>

#include "cm/wire/channel.h"
#include "cm/state/id.h"
#include "cm/wire/message.h"

/// Events for the program, as the kernel's file words them. An id that no program
/// knows yet gets none.
namespace gdrperf::softnic {

/// rdma_cm_event_type of librdmacm, which the kernel's header does not have.
enum CmEventKind : std::uint32_t {
  kAddrResolved,
  kAddrError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished,
  kDisconnected,
  kDeviceRemoval,
  kMulticastJoin,
  kMulticastError,
  kAddrChange,
  kTimewaitExit,
  // Of rdma-core 64: what librdmacm writes comes back.
  kUser = 18,
  kInternal = 19,
};

/// Bytes of private data that an event of each message has on InfiniBand and RoCE,
/// filled up with zeros; and so the most that a program may give.
std::size_t private_capacity(CmKind kind, std::uint16_t port_space);

void report(CmId& id, CmEventKind kind, int status = 0);
/// With what `message` says of the connection.
void report_message(CmId& id, CmEventKind kind, int status, const CmMessage& message);
/// `fresh` is the id that the request made for itself.
void report_request(CmId& listener, CmId& fresh, const CmMessage& message);

/// `group` is joined.
void report_joined(CmGroup& group);

/// As the program wrote it, with eight bytes of its own.
void report_written(CmId& id, CmEventKind kind, int status, std::uint64_t argument);

/// Attributes with which a QP of `id` reaches the other end.
ib_uverbs_ah_attr address_handle(const CmId& id);

}  // namespace gdrperf::softnic
