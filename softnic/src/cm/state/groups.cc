#include "cm/state/groups.h"

#include <rdma/rdma_user_cm.h>

#include <cerrno>
#include <optional>

#include "cm/state/events.h"
#include "shared/segment/multicast.h"

namespace gdrperf::softnic {
namespace {

int join(const CmCall& call, CmId& id, const rdma_ucm_join_mcast& command, const std::optional<CmAddress>& address)
    NO_THREAD_SAFETY_ANALYSIS {  // with_id has the lock
  const bool ready = id.state == CmState::kBound || id.state == CmState::kAddressResolved;
  if (!address || !is_multicast(address->gid()) || !id.datagram() || !ready || id.device == nullptr) return -EINVAL;
  CmGroup* const group = call.cm.table().add_group(id, command.uid, address->gid());
  if (group == nullptr) return -ENOMEM;
  const int error = call.answer(command.response, rdma_ucm_create_id_resp{group->handle});
  if (error != 0) {
    call.cm.table().remove_group(*group);
    return error;
  }
  report_joined(*group);
  return 0;
}

}  // namespace

int join_ip_group(const CmCall& call) {
  rdma_ucm_join_ip_mcast command;
  if (!call.read(command, offsetof(rdma_ucm_join_ip_mcast, id) + sizeof command.id)) return -EINVAL;
  rdma_ucm_join_mcast asked{};
  asked.response = command.response;
  asked.uid = command.uid;
  return with_id(call, command.id,
                 [&](CmId& id) { return join(call, id, asked, address_from(&command.addr, sizeof command.addr)); });
}

int join_group(const CmCall& call) {
  rdma_ucm_join_mcast command;
  if (!call.read(command) || command.addr_size > sizeof command.addr) return -EINVAL;
  if (command.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return -EINVAL;
  return with_id(call, command.id,
                 [&](CmId& id) { return join(call, id, command, address_from(&command.addr, command.addr_size)); });
}

int leave_group(const CmCall& call) {
  rdma_ucm_destroy_id command;
  if (!call.read(command)) return -EINVAL;
  const MutexLock guard(call.cm.mutex());
  CmChannel* channel = call.cm.table().channel(call.channel);
  CmGroup* group = channel == nullptr ? nullptr : call.cm.table().group(*channel, command.id);
  if (group == nullptr) return -ENOENT;
  const std::uint32_t reported = group->events_reported;
  call.cm.table().remove_group(*group);
  channel->settle(call.fd);
  return call.answer(command.response, rdma_ucm_destroy_id_resp{reported});
}

}  // namespace gdrperf::softnic
