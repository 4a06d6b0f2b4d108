#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

/// Owners of librdmacm's objects, and connections made with them in one process.
namespace cm {

struct Destroy {
  void operator()(rdma_event_channel* it) const { rdma_destroy_event_channel(it); }
  void operator()(rdma_cm_id* it) const { EXPECT_EQ(rdma_destroy_id(it), 0); }
  void operator()(rdma_cm_event* it) const { rdma_ack_cm_event(it); }
};
using Channel = std::unique_ptr<rdma_event_channel, Destroy>;
using Id = std::unique_ptr<rdma_cm_id, Destroy>;
using Event = std::unique_ptr<rdma_cm_event, Destroy>;

inline sockaddr_in loopback(std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline Id make_id(const Channel& channel, rdma_port_space ps = RDMA_PS_TCP) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, ps), 0) << std::strerror(errno);
  return Id(id);
}

/// The next event, which must be of this kind.
inline Event expect_event(const Channel& channel, rdma_cm_event_type kind, int status = 0) {
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), 0) << std::strerror(errno);
  if (event == nullptr) return nullptr;
  EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(kind));
  EXPECT_EQ(event->status, status);
  return Event(event);
}

inline bool no_event(const Channel& channel) {
  pollfd entry{channel->fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 0;
}

struct Listener {
  explicit Listener(rdma_port_space ps = RDMA_PS_TCP, int backlog = 0) : id(make_id(channel, ps)) {
    sockaddr_in address = loopback();
    EXPECT_EQ(rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&address)), 0) << std::strerror(errno);
    EXPECT_EQ(rdma_listen(id.get(), backlog), 0) << std::strerror(errno);
    port = ntohs(rdma_get_src_port(id.get()));
    EXPECT_NE(port, 0);
  }
  Channel channel{rdma_create_event_channel()};
  Id id;
  std::uint16_t port;
};

/// An id whose way to the port is found.
inline Id resolved(const Channel& channel, std::uint16_t port, rdma_port_space ps = RDMA_PS_TCP) {
  Id id = make_id(channel, ps);
  sockaddr_in address = loopback(port);
  EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr*>(&address), 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

inline void make_qp(const Id& id) {
  ibv_qp_init_attr attr{};
  attr.qp_type = id->qp_type;
  attr.cap = {4, 4, 1, 1, 16};
  ASSERT_EQ(rdma_create_qp(id.get(), nullptr, &attr), 0) << std::strerror(errno);
}

inline rdma_conn_param parameters(const std::string& data = {}) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<std::uint8_t>(data.size());
  param.responder_resources = 3;
  param.initiator_depth = 2;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

inline std::string data_of(const Event& event) {
  const rdma_conn_param& conn = event->param.conn;
  return {static_cast<const char*>(conn.private_data), conn.private_data_len};
}

inline std::string padded(std::string data, std::size_t size) {
  data.resize(size, '\0');
  return data;
}

/// Two connected ends.
struct Pair {
  explicit Pair(Listener& listener) : client(resolved(channel, listener.port)) {
    make_qp(client);
    rdma_conn_param param = parameters("from the client");
    EXPECT_EQ(rdma_connect(client.get(), &param), 0) << std::strerror(errno);
    request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    server.reset(request->id);
    make_qp(server);
    param = parameters("from the server");
    EXPECT_EQ(rdma_accept(server.get(), &param), 0) << std::strerror(errno);
    reply = expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    expect_event(listener.channel, RDMA_CM_EVENT_ESTABLISHED);
  }
  ~Pair() {
    request.reset();
    reply.reset();
    if (server && server->qp != nullptr) rdma_destroy_qp(server.get());
    if (client && client->qp != nullptr) rdma_destroy_qp(client.get());
  }
  Channel channel{rdma_create_event_channel()};
  Id client;
  Id server;
  Event request;
  Event reply;
};

}  // namespace cm
