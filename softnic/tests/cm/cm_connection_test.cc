// Connections of rdma_cm on the software device, through librdmacm: what each end is told, and
// errors as the kernel gives them.

#include "cm_ends.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace cm;

TEST(SoftnicCmConnection, BothEndsLearnWhatTheOtherSays) {
  Listener listener;
  Pair pair(listener);
  // InfiniBand's messages carry a fixed number of bytes.
  EXPECT_EQ(data_of(pair.request), padded("from the client", 56));
  EXPECT_EQ(data_of(pair.reply), padded("from the server", 196));
  EXPECT_EQ(pair.request->param.conn.responder_resources, 2);
  EXPECT_EQ(pair.request->param.conn.initiator_depth, 3);
  EXPECT_EQ(pair.request->param.conn.qp_num, pair.client->qp->qp_num);
  EXPECT_EQ(pair.reply->param.conn.qp_num, pair.server->qp->qp_num);
  EXPECT_EQ(rdma_get_dst_port(pair.client.get()), htons(listener.port));
  EXPECT_EQ(rdma_get_src_port(pair.client.get()), rdma_get_dst_port(pair.server.get()));
  EXPECT_STREQ(ibv_get_device_name(pair.client->verbs->device), "soft0");
}

TEST(SoftnicCmConnection, DataGoesOverAConnection) {
  Listener listener;
  Pair pair(listener);
  char to[16] = {};
  char from[16] = "fifteen letters";
  ibv_mr* receives = rdma_reg_msgs(pair.server.get(), to, sizeof to);
  ASSERT_EQ(rdma_post_recv(pair.server.get(), nullptr, to, sizeof to, receives), 0);
  ASSERT_EQ(rdma_post_send(pair.client.get(), nullptr, from, sizeof from, nullptr, IBV_SEND_INLINE | IBV_SEND_SIGNALED),
            0);
  ibv_wc completion{};
  ASSERT_EQ(rdma_get_recv_comp(pair.server.get(), &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(to, from);
  rdma_dereg_mr(receives);
}

TEST(SoftnicCmConnection, EachEndLearnsThatTheOtherDisconnects) {
  Listener listener;
  Pair pair(listener);
  ASSERT_EQ(rdma_disconnect(pair.client.get()), 0);
  expect_event(listener.channel, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(no_event(pair.channel)) << "before the other end has answered";
  ASSERT_EQ(rdma_disconnect(pair.server.get()), 0);
  expect_event(pair.channel, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(pair.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  expect_event(listener.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST(SoftnicCmConnection, AnIdThatIsDestroyedDisconnects) {
  Listener listener;
  Pair pair(listener);
  pair.request.reset();
  rdma_destroy_qp(pair.server.get());
  pair.server.reset();
  expect_event(pair.channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST(SoftnicCmConnection, ARefusalCarriesItsData) {
  Listener listener;
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, listener.port);
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  {
    Event request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    Id server(request->id);
    ASSERT_EQ(rdma_reject(server.get(), "no", 2), 0);
    request.reset();
  }
  const Event refusal = expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
  EXPECT_EQ(data_of(refusal), padded("no", 148));
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, APortThatNobodyHasIsRefused) {
  Channel channel(rdma_create_event_channel());
  std::uint16_t port;
  {
    const Listener gone;
    port = gone.port;
  }
  Id client = resolved(channel, port);
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 8);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, AListenerMayTakeThePlaceOfAnother) {
  auto first = std::make_unique<Listener>();
  const std::uint16_t port = first->port;
  { const Pair pair(*first); }
  first.reset();
  std::atomic<bool> connecting{false};
  Channel listeners(rdma_create_event_channel());
  Id next = make_id(listeners);
  std::thread server([&] {
    while (!connecting) std::this_thread::yield();
    sockaddr_in address = loopback(port);
    EXPECT_EQ(rdma_bind_addr(next.get(), reinterpret_cast<sockaddr*>(&address)), 0) << std::strerror(errno);
    EXPECT_EQ(rdma_listen(next.get(), 4), 0);
  });
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, port);
  make_qp(client);
  rdma_conn_param param = parameters();
  connecting = true;
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  server.join();
  Event request = expect_event(listeners, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_TRUE(request);
  const Id fresh(request->id);
  request.reset();
  EXPECT_EQ(rdma_reject(fresh.get(), nullptr, 0), 0);
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, APortThatIsBoundAndNotListenedOnIsRefused) {
  Channel channel(rdma_create_event_channel());
  Id bound = make_id(channel);
  sockaddr_in address = loopback();
  ASSERT_EQ(rdma_bind_addr(bound.get(), reinterpret_cast<sockaddr*>(&address)), 0);
  Id client = resolved(channel, ntohs(rdma_get_src_port(bound.get())));
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 8);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, AListenerThatGoesRefusesWhoWaits) {
  auto listener = std::make_unique<Listener>();
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, listener->port);
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  pollfd entry{listener->channel->fd, POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, -1), 1);  // the request is there, and not taken
  listener.reset();
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, NoMoreRequestsWaitThanTheBacklogHasRoomFor) {
  Listener listener(RDMA_PS_TCP, 2);
  Channel channel(rdma_create_event_channel());
  std::vector<Id> clients;
  rdma_conn_param param = parameters();
  for (int i = 0; i < 3; ++i) {
    clients.push_back(resolved(channel, listener.port));
    make_qp(clients.back());
    ASSERT_EQ(rdma_connect(clients.back().get(), &param), 0);
    if (i < 2) continue;
    EXPECT_EQ(expect_event(channel, RDMA_CM_EVENT_REJECTED, 28)->id, clients[2].get());
  }
  for (const Id& it : clients) rdma_destroy_qp(it.get());
}

TEST(SoftnicCmConnection, DatagramsAreAgreedOn) {
  Listener listener(RDMA_PS_UDP);
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, listener.port, RDMA_PS_UDP);
  make_qp(client);
  rdma_conn_param param = parameters("who is there");
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  Event request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->param.ud.private_data_len, 180);
  EXPECT_STREQ(static_cast<const char*>(request->param.ud.private_data), "who is there");
  Id server(request->id);
  make_qp(server);
  param = parameters("me");
  param.qp_num = server->qp->qp_num;
  ASSERT_EQ(rdma_accept(server.get(), &param), 0);
  const Event established = expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
  const rdma_ud_param& ud = established->param.ud;
  EXPECT_EQ(ud.qp_num, server->qp->qp_num);
  EXPECT_EQ(ud.qkey, 0x01234567u);
  EXPECT_STREQ(static_cast<const char*>(ud.private_data), "me");
  EXPECT_EQ(ud.ah_attr.is_global, 1);
  request.reset();
  rdma_destroy_qp(server.get());
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, ADatagramPortThatNobodyHasIsUnreachable) {
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, 1, RDMA_PS_UDP);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, 1);
}

TEST(SoftnicCmConnection, PrivateDataThatIsTooLongIsRefused) {
  Listener listener;
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, listener.port);
  make_qp(client);
  rdma_conn_param param = parameters(std::string(57, 'x'));
  EXPECT_EQ(rdma_connect(client.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, ALinkThatNobodyHasTakenIsNotUsedForOthers) {
  Channel bound_channel(rdma_create_event_channel());
  Id bound = make_id(bound_channel, RDMA_PS_TCP);
  sockaddr_in address = loopback();
  ASSERT_EQ(rdma_bind_addr(bound.get(), reinterpret_cast<sockaddr*>(&address)), 0);
  Channel channel(rdma_create_event_channel());
  Id waits = resolved(channel, ntohs(rdma_get_src_port(bound.get())));
  make_qp(waits);
  rdma_conn_param param = parameters();
  // It waits for a listen() that never comes.
  ASSERT_EQ(rdma_connect(waits.get(), &param), 0);
  Listener listener;
  Channel other_channel(rdma_create_event_channel());
  Id client = resolved(other_channel, listener.port);
  make_qp(client);
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  Event request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  Id id(request->id);
  request.reset();
  // Still: by what the port's end says of it (28), not by its refusal after three seconds (8).
  bound.reset();
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
  rdma_destroy_qp(waits.get());
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCmConnection, EndpointsThatWaitForThemselves) {
  Listener listener;
  std::thread server([&] {
    Event request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    Id id(request->id);
    make_qp(id);
    rdma_conn_param param = parameters();
    EXPECT_EQ(rdma_accept(id.get(), &param), 0);
    expect_event(listener.channel, RDMA_CM_EVENT_ESTABLISHED);
    expect_event(listener.channel, RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(id.get());
    request.reset();
    rdma_destroy_qp(id.get());
  });
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  const std::string port = std::to_string(listener.port);
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &found), 0);
  ibv_qp_init_attr attr{};
  attr.cap = {1, 1, 1, 1, 0};
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_ep(&id, found, nullptr, &attr), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_connect(id, nullptr), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_disconnect(id), 0) << std::strerror(errno);
  rdma_destroy_ep(id);
  rdma_freeaddrinfo(found);
  server.join();
}

TEST(SoftnicCmConnection, ManyThreadsConnectAtOnce) {
  Listener listener;
  constexpr int kThreads = 4, kEach = 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Channel channel(rdma_create_event_channel());
      for (int n = 0; n < kEach; ++n) {
        Id client = resolved(channel, listener.port);
        make_qp(client);
        rdma_conn_param param = parameters();
        EXPECT_EQ(rdma_connect(client.get(), &param), 0);
        expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
        rdma_destroy_qp(client.get());
      }
    });
  }
  for (int i = 0; i < kThreads * kEach; ++i) {
    Event request = expect_event(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    Id server(request->id);
    EXPECT_EQ(rdma_reject(server.get(), nullptr, 0), 0);
    request.reset();
  }
  for (std::thread& it : threads) it.join();
}

}  // namespace
