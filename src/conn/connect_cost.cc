#include "gdrperf/conn/connect_cost.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/verbs/resources.h"
#include "conn/cm_objects.h"

namespace gdrperf::conn {
namespace {

using std::chrono::steady_clock;

constexpr std::uint32_t kConnectMagic = 0x67647263;  // "gdrc"
constexpr int kResolveMs = 2000;
constexpr int kConnectMs = 8000;
constexpr int kMessages = 2;
constexpr std::uint32_t kMessageBytes = 8;
/// Connections of a server at the same time; a client has one.
constexpr std::size_t kMostOpen = 64;

/// Travels with each connect request.
struct Announced {
  std::uint32_t magic;
  std::uint32_t left;  ///< connections of this client that follow
};

double ns_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(steady_clock::now() - begin).count();
}

Error cm_error(const char* call, const std::string& device) {
  return call_error(call, errno, device, "rdma_cm needs the kernel's rdma_ucm module and a GID with an IP address");
}

EventChannel make_channel(const std::string& device) {
  EventChannel channel(rdma_create_event_channel());
  if (!channel) throw cm_error("rdma_create_event_channel", device);
  return channel;
}

CmId bound_id(rdma_event_channel* channel, const verbs::Gid& gid, int port, const std::string& device) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(channel, &raw, nullptr, RDMA_PS_TCP) != 0) throw cm_error("rdma_create_id", device);
  CmId id(raw);
  sockaddr_storage from = address_of(gid.raw, gid.ipv4, port);
  if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&from)) != 0) throw cm_error("rdma_bind_addr", device);
  return id;
}

}  // namespace

/// What the QPs of a client or a server have in common. Made on the context that rdma_cm found.
struct Common {
  verbs::Pd pd;
  verbs::Cq cq;
  alignas(64) std::uint64_t words[kMessages] = {};
  verbs::Mr mr;

  explicit Common(ibv_context* context)
      : pd(verbs::make_pd(context)),
        cq(verbs::make_cq(context, 4096, nullptr)),
        mr(verbs::register_memory(pd.get(), words, sizeof words, IBV_ACCESS_LOCAL_WRITE)) {}

  ibv_qp_init_attr attr() const {
    verbs::QpCapacity capacity;
    capacity.send_wr = capacity.recv_wr = kMessages;
    return verbs::qp_attr(IBV_QPT_RC, cq.get(), cq.get(), capacity);
  }
  ibv_sge piece() const { return {reinterpret_cast<std::uintptr_t>(words), kMessageBytes, mr->lkey}; }
};

namespace {

void make_cm_qp(rdma_cm_id* id, Common& common, const std::string& device) {
  ibv_qp_init_attr attr = common.attr();
  if (rdma_create_qp(id, common.pd.get(), &attr) != 0) verbs::throw_qp_creation(device, errno, attr);
}

/// ns from the post of one message to its completion.
double send_one(ibv_qp* qp, Common& common, const std::string& device) {
  ibv_sge piece = common.piece();
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const auto begin = steady_clock::now();
  if (const int error = ibv_post_send(qp, &request, &bad); error != 0) throw call_error("ibv_post_send", error, device);
  ibv_wc completion{};
  int found = 0;
  while ((found = ibv_poll_cq(common.cq.get(), 1, &completion)) == 0) {
  }
  const double taken = ns_since(begin);
  if (found < 0) throw call_error("ibv_poll_cq", errno, device);
  if (completion.status != IBV_WC_SUCCESS)
    throw peer_error(fmt::format("{}: the first message failed: {}", device, verbs::describe(completion.status)));
  return taken;
}

/// Waits for one event of `wanted`.
void await(rdma_event_channel* channel, rdma_cm_event_type wanted, const std::string& device) {
  pollfd entry{channel->fd, POLLIN, 0};
  if (::poll(&entry, 1, kConnectMs) <= 0) {
    throw peer_error(fmt::format("{}: rdma_cm: no {} in {} s", device, rdma_event_str(wanted), kConnectMs / 1000),
                     "does 'gdrperf connect_rate' run there, at this address of its RDMA interface?");
  }
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel, &raw) != 0) throw cm_error("rdma_get_cm_event", device);
  const Event event(raw);
  if (event->event == wanted) return;
  throw peer_error(fmt::format("{}: rdma_cm: {} instead of {} (status {})", device, rdma_event_str(event->event),
                               rdma_event_str(wanted), event->status),
                   "does 'gdrperf connect_rate' run there, at this address of its RDMA interface?");
}

sockaddr_storage resolve_host(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0)
    throw peer_error(fmt::format("cannot find the address of '{}': {}", host, ::gai_strerror(error)),
                     "check the name, or give an IP address");
  sockaddr_storage found{};
  std::memcpy(&found, list->ai_addr, list->ai_addrlen);
  ::freeaddrinfo(list);
  return found;
}

ConnectCost connect_once(const std::string& device, const verbs::Gid& gid, sockaddr_storage to,
                         std::unique_ptr<Common>& common, std::uint32_t left) {
  ConnectCost cost;
  const EventChannel channel = make_channel(device);
  const auto begin = steady_clock::now();
  const CmId id = bound_id(channel.get(), gid, 0, device);
  auto step = steady_clock::now();
  const auto lap = [&step] {
    const double taken = ns_since(step);
    step = steady_clock::now();
    return taken;
  };
  if (rdma_resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr*>(&to), kResolveMs) != 0)
    throw cm_error("rdma_resolve_addr", device);
  await(channel.get(), RDMA_CM_EVENT_ADDR_RESOLVED, device);
  cost.address_ns = lap();
  if (rdma_resolve_route(id.get(), kResolveMs) != 0) throw cm_error("rdma_resolve_route", device);
  await(channel.get(), RDMA_CM_EVENT_ROUTE_RESOLVED, device);
  cost.route_ns = lap();
  double others_ns = 0;
  if (!common) {
    common = std::make_unique<Common>(id->verbs);
    others_ns = lap();
  }
  make_cm_qp(id.get(), *common, device);
  cost.qp_ns = lap();
  const Announced announced{htonl(kConnectMagic), htonl(left)};
  rdma_conn_param request{};
  request.private_data = &announced;
  request.private_data_len = sizeof announced;
  request.retry_count = request.rnr_retry_count = 7;
  if (rdma_connect(id.get(), &request) != 0) throw cm_error("rdma_connect", device);
  await(channel.get(), RDMA_CM_EVENT_ESTABLISHED, device);
  cost.connect_ns = lap();
  cost.total_ns = ns_since(begin) - others_ns;
  cost.first_ns = send_one(id->qp, *common, device);
  cost.second_ns = send_one(id->qp, *common, device);
  lap();
  if (rdma_disconnect(id.get()) != 0) throw cm_error("rdma_disconnect", device);
  await(channel.get(), RDMA_CM_EVENT_DISCONNECTED, device);
  cost.disconnect_ns = lap();
  rdma_destroy_qp(id.get());
  return cost;
}

}  // namespace

std::vector<QpCost> measure_qps(const verbs::Context& device, const verbs::PortInfo& port, const verbs::Gid& gid,
                                std::size_t count) {
  Common common(device.get());
  std::vector<verbs::Qp> qps;
  std::vector<QpCost> costs(count);
  verbs::QpPath path;
  path.port = static_cast<std::uint8_t>(port.number);
  path.gid_index = static_cast<std::uint8_t>(gid.index);
  path.remote_gid = gid.raw;
  path.remote_lid = static_cast<std::uint16_t>(port.lid);
  path.mtu_bytes = port.active_mtu_bytes;
  for (QpCost& cost : costs) {
    ibv_qp_init_attr attr = common.attr();
    auto begin = steady_clock::now();
    qps.push_back(verbs::make_qp(common.pd.get(), attr));
    cost.create_ns = ns_since(begin);
    begin = steady_clock::now();
    verbs::to_init(qps.back().get(), port.number, IBV_ACCESS_REMOTE_WRITE);
    cost.init_ns = ns_since(begin);
    path.remote_qpn = qps.back()->qp_num;
    begin = steady_clock::now();
    verbs::to_rts(qps.back().get(), path);
    cost.rts_ns = ns_since(begin);
  }
  for (std::size_t q = 0; q < count; ++q) {
    const auto begin = steady_clock::now();
    qps[q].reset();
    costs[q].destroy_ns = ns_since(begin);
  }
  return costs;
}

struct ConnectServer::State {
  std::string device;
  EventChannel channel;
  CmId listener;
  std::unique_ptr<Common> common;
  std::map<rdma_cm_id*, std::uint32_t> open;  ///< and how many its client has left

  void answer(rdma_cm_id* id, const rdma_conn_param& asked) {
    CmId owner(id);
    Announced announced{};
    if (asked.private_data != nullptr && asked.private_data_len >= sizeof announced)
      std::memcpy(&announced, asked.private_data, sizeof announced);
    if (announced.magic != htonl(kConnectMagic) || open.size() >= kMostOpen) {
      rdma_reject(id, nullptr, 0);
      return;
    }
    if (!common) common = std::make_unique<Common>(id->verbs);
    make_cm_qp(id, *common, device);
    for (int i = 0; i < kMessages; ++i) {
      ibv_sge piece = common->piece();
      ibv_recv_wr receive{};
      receive.sg_list = &piece;
      receive.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      if (const int error = ibv_post_recv(id->qp, &receive, &bad); error != 0)
        throw call_error("ibv_post_recv", error, device);
    }
    rdma_conn_param answer{};
    answer.rnr_retry_count = 7;
    if (rdma_accept(id, &answer) != 0) throw cm_error("rdma_accept", device);
    open[owner.release()] = ntohl(announced.left);
  }

  /// Whether it was its client's last.
  bool end(rdma_cm_id* id) {
    const auto found = open.find(id);
    if (found == open.end()) return false;
    const bool last = found->second == 0;
    open.erase(found);
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    // Receives that were flushed.
    ibv_wc completion{};
    while (common && ibv_poll_cq(common->cq.get(), 1, &completion) > 0) {
    }
    return last;
  }
};

ConnectServer::ConnectServer(const verbs::Context& device, const verbs::Gid& gid, int port)
    : state_(std::make_unique<State>()) {
  constexpr int kBacklog = 128;
  state_->device = device.name();
  state_->channel = make_channel(device.name());
  state_->listener = bound_id(state_->channel.get(), gid, port, device.name());
  if (rdma_listen(state_->listener.get(), kBacklog) != 0) throw cm_error("rdma_listen", device.name());
}

ConnectServer::~ConnectServer() {
  while (!state_->open.empty()) state_->end(state_->open.begin()->first);
}

int ConnectServer::port() const { return ntohs(rdma_get_src_port(state_->listener.get())); }

void ConnectServer::serve() {
  while (true) {
    rdma_cm_event* raw = nullptr;
    if (rdma_get_cm_event(state_->channel.get(), &raw) != 0) throw cm_error("rdma_get_cm_event", state_->device);
    const rdma_cm_event event = *raw;
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) state_->answer(event.id, event.param.conn);
    // Its id may go once nothing of it waits to be acknowledged.
    rdma_ack_cm_event(raw);
    const bool over = event.event == RDMA_CM_EVENT_DISCONNECTED || event.event == RDMA_CM_EVENT_CONNECT_ERROR ||
                      event.event == RDMA_CM_EVENT_UNREACHABLE;
    if (over && state_->end(event.id)) return;
  }
}

std::vector<ConnectCost> measure_connections(const verbs::Context& device, const verbs::Gid& gid,
                                             const std::string& host, int port, std::size_t count) {
  const sockaddr_storage to = resolve_host(host, port);
  // Holds rdma_cm's context open past what is made on it.
  const EventChannel channel = make_channel(device.name());
  const CmId holder = bound_id(channel.get(), gid, 0, device.name());
  std::unique_ptr<Common> common;
  std::vector<ConnectCost> costs;
  for (std::size_t left = count; left > 0; --left)
    costs.push_back(connect_once(device.name(), gid, to, common, static_cast<std::uint32_t>(left - 1)));
  return costs;
}

}  // namespace gdrperf::conn
