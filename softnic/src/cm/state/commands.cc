#include "cm/state/commands.h"

#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cm/state/answers.h"
#include "cm/state/call.h"
#include "cm/wire/descriptors.h"
#include "cm/state/events.h"
#include "cm/state/groups.h"

namespace gdrperf::softnic {
namespace {

std::uint8_t qp_type_of(const rdma_ucm_create_id& command) {
  switch (command.ps) {
    case RDMA_PS_TCP: return IBV_QPT_RC;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB: return IBV_QPT_UD;
    case RDMA_PS_IB: return command.qp_type;
    default: return 0;
  }
}

int create_id(const CmCall& call) {
  rdma_ucm_create_id command;
  if (!call.read(command)) return -EINVAL;
  const std::uint8_t qp_type = qp_type_of(command);
  if (qp_type == 0) return -EINVAL;
  const MutexLock guard(call.cm.mutex());
  CmChannel* channel = call.cm.table().channel(call.channel);
  if (channel == nullptr) return -EIO;
  CmId* id = call.cm.table().add_id(*channel);
  if (id == nullptr) return -ENOMEM;
  id->uid = command.uid;
  id->port_space = command.ps;
  id->qp_type = qp_type;
  const int error = call.answer(command.response, rdma_ucm_create_id_resp{id->handle});
  if (error != 0) call.cm.destroy(*id);
  return error;
}

int destroy_id(const CmCall& call) {
  rdma_ucm_destroy_id command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS {
    CmChannel& channel = *id.channel;
    const int error = call.answer(command.response, rdma_ucm_destroy_id_resp{id.events_reported});
    call.cm.destroy(id);
    channel.settle(call.fd);
    return error;
  });
}

int bind_to(const CmCall& call, std::uint32_t handle, const void* bytes, std::size_t size) {
  const auto address = address_from(bytes, size);
  if (!address) return -EINVAL;
  return with_id(call, handle, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS { return call.cm.ports().bind(id, *address); });
}

int bind_ip(const CmCall& call) {
  rdma_ucm_bind_ip command;
  if (!call.read(command)) return -EINVAL;
  return bind_to(call, command.id, &command.addr, sizeof command.addr);
}

int bind_any(const CmCall& call) {
  rdma_ucm_bind command;
  if (!call.read(command) || command.addr_size > sizeof command.addr) return -EINVAL;
  return bind_to(call, command.id, &command.addr, command.addr_size);
}

int resolve_to(const CmCall& call, std::uint32_t handle, const std::optional<CmAddress>& source,
               const std::optional<CmAddress>& destination) {
  if (!destination) return -EINVAL;
  return with_id(call, handle, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS {
    return call.cm.ports().resolve_address(id, source, *destination);
  });
}

int resolve_ip(const CmCall& call) {
  rdma_ucm_resolve_ip command;
  if (!call.read(command)) return -EINVAL;
  return resolve_to(call, command.id, address_from(&command.src_addr, sizeof command.src_addr),
                    address_from(&command.dst_addr, sizeof command.dst_addr));
}

int resolve_addr(const CmCall& call) {
  rdma_ucm_resolve_addr command;
  if (!call.read(command)) return -EINVAL;
  if (command.src_size > sizeof command.src_addr || command.dst_size > sizeof command.dst_addr) return -EINVAL;
  return resolve_to(call, command.id, address_from(&command.src_addr, command.src_size),
                    address_from(&command.dst_addr, command.dst_size));
}

int resolve_route(const CmCall& call) {
  rdma_ucm_resolve_route command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id,
                 [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS { return call.cm.ports().resolve_route(id); });
}

int query_route(const CmCall& call) {
  rdma_ucm_query command;
  if (!call.read(command, offsetof(rdma_ucm_query, option))) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) {
    return call.answer(command.response, answer_route(id), offsetof(rdma_ucm_query_route_resp, ibdev_index));
  });
}

int query(const CmCall& call) {
  rdma_ucm_query command;
  if (!call.read(command)) return -EINVAL;
  constexpr std::size_t kLeast = offsetof(rdma_ucm_query_addr_resp, ibdev_index);
  return with_id(call, command.id, [&](CmId& id) {
    switch (command.option) {
      case RDMA_USER_CM_QUERY_ADDR: return call.answer(command.response, answer_addresses(id), kLeast);
      case RDMA_USER_CM_QUERY_GID: return call.answer(command.response, answer_gids(id), kLeast);
      case RDMA_USER_CM_QUERY_PATH:
        return call.answer(command.response, answer_path(id), sizeof(rdma_ucm_query_path_resp));
      default: return -ENOSYS;
    }
  });
}

int connect(const CmCall& call) {
  rdma_ucm_connect command;
  if (!call.read(command, offsetof(rdma_ucm_connect, ece))) return -EINVAL;
  // Another thread may part with the same process meanwhile, and close the link.
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    Cm::Goal goal;
    int result = with_id(call, command.id, [&](CmId& id) {
      goal = {id.port_space, id.source, id.destination, id.device, id.remote};
      return id.state == CmState::kRouteResolved ? 0 : -EINVAL;
    });
    if (result != 0) return result;
    const Cm::Reached reached = call.cm.reach(goal);
    result = with_id(call, command.id, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS {
      if (reached.link && !call.cm.open_link(reached.link)) return -EAGAIN;
      const int error = call.cm.dialogue().connect(id, command.conn_param, command.ece, reached.link,
                                                   reached.silent ? -ETIMEDOUT : 0);
      if (error != 0 && reached.link) call.cm.drop_unused(reached.link);
      return error;
    });
    if (result != -EAGAIN) return result;
  }
  return -ECONNABORTED;
}

int listen_on(const CmCall& call) {
  rdma_ucm_listen command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id,
                 [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS { return call.cm.ports().listen(id, command.backlog); });
}

int accept_request(const CmCall& call) {
  rdma_ucm_accept command;
  if (!call.read(command, offsetof(rdma_ucm_accept, ece))) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS {
    return call.cm.dialogue().accept(id, command.uid, command.conn_param, command.ece);
  });
}

int reject_request(const CmCall& call) {
  rdma_ucm_reject command;
  if (!call.read(command)) return -EINVAL;
  const auto reason = command.reason == 0 ? CmReject::kConsumerDefined : static_cast<CmReject>(command.reason);
  if (reason != CmReject::kConsumerDefined && reason != CmReject::kVendorOption) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS {
    return call.cm.dialogue().reject(id, reason, {command.private_data, command.private_data_len});
  });
}

int disconnect(const CmCall& call) {
  rdma_ucm_disconnect command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id,
                 [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS { return call.cm.dialogue().disconnect(id); });
}

int init_qp_attr(const CmCall& call) {
  rdma_ucm_init_qp_attr command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) {
    ib_uverbs_qp_attr attr;
    const int error = answer_qp_attributes(id, command.qp_state, attr);
    return error != 0 ? error : call.answer(command.response, attr);
  });
}

/// -EAGAIN: none waits.
int take_event(const CmCall& call, const rdma_ucm_get_event& command) {
  const MutexLock guard(call.cm.mutex());
  CmChannel* channel = call.cm.table().channel(call.channel);
  if (channel == nullptr) return -EIO;
  if (channel->events.empty()) return -EAGAIN;
  const CmEvent& event = channel->events.front();
  // Without what came to the header later.
  constexpr std::size_t kLeast = offsetof(rdma_ucm_event_resp, reserved);
  const int error = call.answer(command.response, event.answer, kLeast);
  if (error != 0) return error;
  ++event.id->events_reported;
  if (event.group != nullptr) ++event.group->events_reported;
  if (event.fresh != nullptr) ++event.id->backlog;
  channel->events.pop_front();
  channel->settle(call.fd);
  return 0;
}

int get_event(const CmCall& call) {
  rdma_ucm_get_event command;
  if (!call.read(command)) return -EINVAL;
  for (;;) {
    const int result = take_event(call, command);
    if (result != -EAGAIN || (::fcntl(call.fd, F_GETFL) & O_NONBLOCK) != 0) return result;
    char byte;
    const ssize_t got = ::recv(call.fd, &byte, 1, MSG_PEEK);
    if (got < 0) return -errno;
    if (got == 0) return -EIO;
  }
}

int set_id_option(CmId& id, const rdma_ucm_set_option& command) {
  const auto* value = reinterpret_cast<const void*>(command.optval);
  const auto read = [&](auto& to) {
    if (command.optlen != sizeof to) return false;
    std::memcpy(&to, value, sizeof to);
    return true;
  };
  int number = 0;
  switch (command.optname) {
    case RDMA_OPTION_ID_TOS: return read(id.traffic_class) ? 0 : -EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
      // What the port was taken with stays; as the kernel, which looks at the state first.
      if (!read(number) || (id.state != CmState::kIdle && (number == 0 || id.state == CmState::kListening))) {
        return -EINVAL;
      }
      id.reuse_address = number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!read(number) || (id.state != CmState::kIdle && id.state != CmState::kBound)) return -EINVAL;
      id.asked_family_only = number != 0;
      return 0;
    // Of acknowledged transports.
    case RDMA_OPTION_ID_ACK_TIMEOUT: return !id.datagram() && read(id.ack_timeout) ? 0 : -EINVAL;
    default: return -ENOSYS;
  }
}

int set_option(const CmCall& call) {
  rdma_ucm_set_option command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) {
    // A path is for fabrics with subnet administration.
    return command.level == RDMA_OPTION_ID ? set_id_option(id, command) : -ENOSYS;
  });
}

int notify(const CmCall& call) {
  rdma_ucm_notify command;
  if (!call.read(command)) return -EINVAL;
  return with_id(call, command.id,
                 [&](CmId& id) NO_THREAD_SAFETY_ANALYSIS { return call.cm.dialogue().notify(id, command.event); });
}

/// Takes an id, with the events that wait for it, over from another channel.
int migrate_id(const CmCall& call) {
  rdma_ucm_migrate_id command;
  if (!call.read(command)) return -EINVAL;
  const std::uint64_t from = channel_behind(static_cast<int>(command.fd));
  const MutexLock guard(call.cm.mutex());
  CmTable& table = call.cm.table();
  CmChannel* old = table.channel(from);
  CmChannel* channel = table.channel(call.channel);
  if (old == nullptr || channel == nullptr) return -EINVAL;
  CmId* id = table.id(*old, command.id);
  if (id == nullptr) return -ENOENT;
  const int error = call.answer(command.response, rdma_ucm_migrate_resp{id->events_reported});
  if (error != 0 || old == channel) return error;
  id->channel = channel;
  for (auto it = old->events.begin(); it != old->events.end();) {
    if (it->id != id) {
      ++it;
      continue;
    }
    if (it->fresh != nullptr) it->fresh->channel = channel;
    channel->push(*it);
    it = old->events.erase(it);
  }
  old->settle(static_cast<int>(command.fd));
  return 0;
}

/// struct rdma_ucm_write_cm_event of later headers, as far as it is looked at.
struct WriteEvent {
  std::uint32_t id;
  std::uint32_t reserved;
  std::uint32_t event;
  std::uint32_t status;
  std::uint64_t argument;
};
constexpr std::size_t kWriteEventCommand = RDMA_USER_CM_CMD_JOIN_MCAST + 2;

int write_event(const CmCall& call) {
  WriteEvent command;
  if (!call.read(command) || (command.event != kUser && command.event != kInternal)) return -EINVAL;
  return with_id(call, command.id, [&](CmId& id) {
    report_written(id, static_cast<CmEventKind>(command.event), static_cast<int>(command.status), command.argument);
    return 0;
  });
}

}  // namespace

int run_cm_command(Cm& cm, std::uint64_t channel, int fd, std::span<const std::uint8_t> bytes) {
  using Command = int (*)(const CmCall&);
  static constexpr std::array<Command, kWriteEventCommand + 1> kCommands = {
      create_id,    destroy_id,    bind_ip,        resolve_ip,     resolve_route, query_route,
      connect,      listen_on,     accept_request, reject_request, disconnect,    init_qp_attr,
      get_event,    nullptr,       set_option,     notify,         join_ip_group, leave_group,
      migrate_id,   query,         bind_any,       resolve_addr,   join_group,    nullptr,
      write_event};
  rdma_ucm_cmd_hdr header;
  if (bytes.size() < sizeof header) return -EINVAL;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.cmd >= kCommands.size() || sizeof header + header.in > bytes.size()) return -EINVAL;
  if (kCommands[header.cmd] == nullptr) return -ENOSYS;
  return kCommands[header.cmd]({cm, channel, fd, bytes.subspan(sizeof header, header.in), header.out});
}

}  // namespace gdrperf::softnic
