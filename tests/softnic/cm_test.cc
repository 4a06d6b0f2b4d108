// rdma_cm on the software device, through librdmacm: what each end is told, errors as the kernel
// gives them, and that nothing is left behind.

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Destroy {
  void operator()(rdma_event_channel* it) const { rdma_destroy_event_channel(it); }
  void operator()(rdma_cm_id* it) const { EXPECT_EQ(rdma_destroy_id(it), 0); }
  void operator()(rdma_cm_event* it) const { rdma_ack_cm_event(it); }
};
using Channel = std::unique_ptr<rdma_event_channel, Destroy>;
using Id = std::unique_ptr<rdma_cm_id, Destroy>;
using Event = std::unique_ptr<rdma_cm_event, Destroy>;

sockaddr_in loopback(std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Id make_id(const Channel& channel, rdma_port_space ps = RDMA_PS_TCP) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, ps), 0) << std::strerror(errno);
  return Id(id);
}

/// The next event, which must be of this kind.
Event expect_event(const Channel& channel, rdma_cm_event_type kind, int status = 0) {
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), 0) << std::strerror(errno);
  if (event == nullptr) return nullptr;
  EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(kind));
  EXPECT_EQ(event->status, status);
  return Event(event);
}

bool no_event(const Channel& channel) {
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
Id resolved(const Channel& channel, std::uint16_t port, rdma_port_space ps = RDMA_PS_TCP) {
  Id id = make_id(channel, ps);
  sockaddr_in address = loopback(port);
  EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr*>(&address), 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

void make_qp(const Id& id) {
  ibv_qp_init_attr attr{};
  attr.qp_type = id->qp_type;
  attr.cap = {4, 4, 1, 1, 16};
  ASSERT_EQ(rdma_create_qp(id.get(), nullptr, &attr), 0) << std::strerror(errno);
}

rdma_conn_param parameters(const std::string& data = {}) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<std::uint8_t>(data.size());
  param.responder_resources = 3;
  param.initiator_depth = 2;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

std::string data_of(const Event& event) {
  const rdma_conn_param& conn = event->param.conn;
  return {static_cast<const char*>(conn.private_data), conn.private_data_len};
}

std::string padded(std::string data, std::size_t size) {
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

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// What is closed by the device's thread goes a moment later.
bool descriptors_fall_to(int wanted) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (open_descriptors() > wanted && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return open_descriptors() <= wanted;
}

TEST(SoftnicCm, BothEndsLearnWhatTheOtherSays) {
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

TEST(SoftnicCm, DataGoesOverAConnection) {
  Listener listener;
  Pair pair(listener);
  char to[16] = {};
  char from[16] = "fifteen letters";
  ibv_mr* receives = rdma_reg_msgs(pair.server.get(), to, sizeof to);
  ASSERT_EQ(rdma_post_recv(pair.server.get(), nullptr, to, sizeof to, receives), 0);
  ASSERT_EQ(rdma_post_send(pair.client.get(), nullptr, from, sizeof from, nullptr, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
  ibv_wc completion{};
  ASSERT_EQ(rdma_get_recv_comp(pair.server.get(), &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(to, from);
  rdma_dereg_mr(receives);
}

TEST(SoftnicCm, EachEndLearnsThatTheOtherDisconnects) {
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

TEST(SoftnicCm, AnIdThatIsDestroyedDisconnects) {
  Listener listener;
  Pair pair(listener);
  pair.request.reset();
  rdma_destroy_qp(pair.server.get());
  pair.server.reset();
  expect_event(pair.channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST(SoftnicCm, ARefusalCarriesItsData) {
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

TEST(SoftnicCm, APortThatNobodyHasIsRefused) {
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

TEST(SoftnicCm, APortThatIsBoundAndNotListenedOnIsRefused) {
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

TEST(SoftnicCm, AListenerThatGoesRefusesWhoWaits) {
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

TEST(SoftnicCm, NoMoreRequestsWaitThanTheBacklogHasRoomFor) {
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

TEST(SoftnicCm, DatagramsAreAgreedOn) {
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

TEST(SoftnicCm, ADatagramPortThatNobodyHasIsUnreachable) {
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, 1, RDMA_PS_UDP);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &param), 0);
  expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, 1);
}

TEST(SoftnicCm, PrivateDataThatIsTooLongIsRefused) {
  Listener listener;
  Channel channel(rdma_create_event_channel());
  Id client = resolved(channel, listener.port);
  make_qp(client);
  rdma_conn_param param = parameters(std::string(57, 'x'));
  EXPECT_EQ(rdma_connect(client.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(client.get());
}

TEST(SoftnicCm, APortHasOneOwner) {
  Listener listener;
  Channel channel(rdma_create_event_channel());
  sockaddr_in address = loopback(listener.port);
  Id second = make_id(channel);
  EXPECT_EQ(rdma_bind_addr(second.get(), reinterpret_cast<sockaddr*>(&address)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  address.sin_addr.s_addr = INADDR_ANY;
  EXPECT_EQ(rdma_bind_addr(second.get(), reinterpret_cast<sockaddr*>(&address)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  // The same port of another address, or port space, is another one.
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  EXPECT_EQ(rdma_bind_addr(second.get(), reinterpret_cast<sockaddr*>(&address)), 0) << std::strerror(errno);
  EXPECT_STREQ(ibv_get_device_name(second->verbs->device), "soft1");
  address = loopback(listener.port);
  Id third = make_id(channel, RDMA_PS_UDP);
  EXPECT_EQ(rdma_bind_addr(third.get(), reinterpret_cast<sockaddr*>(&address)), 0) << std::strerror(errno);
}

TEST(SoftnicCm, AnAddressOfNobodyHereCannotBeBound) {
  Channel channel(rdma_create_event_channel());
  Id id = make_id(channel);
  sockaddr_in address = loopback(1);
  address.sin_addr.s_addr = inet_addr("192.0.2.1");
  EXPECT_EQ(rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&address)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST(SoftnicCm, AChannelThatDoesNotBlockSaysThatThereIsNothing) {
  Channel channel(rdma_create_event_channel());
  ASSERT_EQ(::fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(SoftnicCm, AnIdTakesItsEventsToAnotherChannel) {
  Channel first(rdma_create_event_channel());
  Channel second(rdma_create_event_channel());
  Id id = make_id(first);
  sockaddr_in address = loopback(1);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr*>(&address), 1000), 0);
  ASSERT_EQ(rdma_migrate_id(id.get(), second.get()), 0) << std::strerror(errno);
  EXPECT_TRUE(no_event(first));
  expect_event(second, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_TRUE(no_event(second));
}

TEST(SoftnicCm, EndpointsThatWaitForThemselves) {
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

TEST(SoftnicCm, NothingIsLeftOfAThousandConnections) {
  Listener listener;
  { const Pair first(listener); }  // opens what stays open
  const int before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    const Pair pair(listener);
    if (HasFailure()) break;
  }
  EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " descriptors, " << before << " before";
}

TEST(SoftnicCm, AChannelThatIsClosedTakesItsPortWithIt) {
  std::uint16_t port;
  // Its channel goes first: librdmacm can free it no more.
  static auto* const left = new std::vector<rdma_cm_id*>();
  {
    Listener listener;
    port = listener.port;
    left->push_back(listener.id.release());
  }
  Channel channel(rdma_create_event_channel());
  sockaddr_in address = loopback(port);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Id again = make_id(channel);
  while (rdma_bind_addr(again.get(), reinterpret_cast<sockaddr*>(&address)) != 0) {
    ASSERT_EQ(errno, EADDRINUSE);
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
  }
}

TEST(SoftnicCm, AForkedChildHasNoUseOfItsParentsChannel) {
  Listener listener;
  const pid_t child = ::fork();
  if (child == 0) {
    rdma_cm_id* id = nullptr;
    const bool refused = rdma_create_id(listener.channel.get(), &id, nullptr, RDMA_PS_TCP) != 0 && errno == EIO;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Pair pair(listener);
}

TEST(SoftnicCm, ManyThreadsConnectAtOnce) {
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

/// A stranger to librdmacm at the device's own socket.
class Talker {
 public:
  explicit Talker(std::uint16_t port) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    char name[108];
    const int length = std::snprintf(name, sizeof name, "gdrperf-softnic-cm1.106.%u.7f000001", port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name, static_cast<std::size_t>(length));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  ~Talker() { ::close(socket_); }
  void say(const std::vector<std::uint8_t>& bytes) const { ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

 private:
  int socket_;
};

TEST(SoftnicCm, BytesOfAStrangerChangeNothing) {
  Listener listener;
  Pair pair(listener);
  const Talker talker(listener.port);
  // Right heads, all kinds, numbers of connections that are another's.
  for (std::uint8_t kind = 0; kind < 16; ++kind) {
    for (std::uint32_t number = 0; number < 64; ++number) {
      std::vector<std::uint8_t> message(102);
      const std::uint8_t head[] = {'s', 'D', 'C', 'M', 1, kind, 6, 1, 1, 0, 0, 0, static_cast<std::uint8_t>(number)};
      std::memcpy(message.data(), head, sizeof head);
      talker.say(message);
    }
  }
  std::uint32_t state = 12345;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> message(state % 600 + 1);
    for (std::uint8_t& it : message) it = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    talker.say(message);
  }
  // The connection stands, and others can be made.
  const Pair second(listener);
  EXPECT_TRUE(no_event(pair.channel));
  EXPECT_TRUE(no_event(listener.channel));
}

}  // namespace
