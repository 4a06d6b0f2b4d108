// Addresses, ports and channels of rdma_cm on the software device, through librdmacm; that nothing is
// left behind, and that strangers change nothing.

#include "cm_ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace cm;

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// Objects that the device's thread closes go a moment later.
bool descriptors_fall_to(int wanted) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (open_descriptors() > wanted && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return open_descriptors() <= wanted;
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

sockaddr_in6 any_of_ipv6(std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  return address;
}

/// A listener at any address of IPv6, and of that family alone where `only` says so. errno, or 0.
int listen_at_ipv6(const Id& id, std::uint16_t port, int only) {
  if (only >= 0) {
    EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof only), 0);
  }
  sockaddr_in6 address = any_of_ipv6(port);
  if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&address)) != 0) return errno;
  return rdma_listen(id.get(), 4) != 0 ? errno : 0;
}

/// Connects to that port of 127.0.0.1 and of ::1; the ids that the requests come to.
rdma_cm_id* listener_of(const Channel& listeners, std::uint16_t port, bool ipv6) {
  Channel channel(rdma_create_event_channel());
  Id id = make_id(channel);
  sockaddr_in address = loopback(port);
  sockaddr_in6 address6 = any_of_ipv6(port);
  address6.sin6_addr = in6addr_loopback;
  auto* const to = ipv6 ? reinterpret_cast<sockaddr*>(&address6) : reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, to, 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_qp(id);
  rdma_conn_param param = parameters();
  EXPECT_EQ(rdma_connect(id.get(), &param), 0) << std::strerror(errno);
  Event request = expect_event(listeners, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* const found = request ? request->listen_id : nullptr;
  if (request) {
    const Id fresh(request->id);
    rdma_reject(fresh.get(), nullptr, 0);
    request.reset();
  }
  expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
  rdma_destroy_qp(id.get());
  return found;
}

TEST(SoftnicCm, AListenerForEachFamilyHasThePort) {
  Channel channel(rdma_create_event_channel());
  Id ipv4 = make_id(channel);
  sockaddr_in address = loopback();
  address.sin_addr.s_addr = INADDR_ANY;
  ASSERT_EQ(rdma_bind_addr(ipv4.get(), reinterpret_cast<sockaddr*>(&address)), 0);
  ASSERT_EQ(rdma_listen(ipv4.get(), 4), 0);
  const std::uint16_t port = ntohs(rdma_get_src_port(ipv4.get()));
  Id ipv6 = make_id(channel);
  EXPECT_EQ(listen_at_ipv6(ipv6, port, 0), EADDRNOTAVAIL);
  ipv6 = make_id(channel);
  ASSERT_EQ(listen_at_ipv6(ipv6, port, 1), 0);
  EXPECT_EQ(listener_of(channel, port, false), ipv4.get());
  EXPECT_EQ(listener_of(channel, port, true), ipv6.get());
}

TEST(SoftnicCm, AListenerOfIpv6HasBothFamiliesUnlessItSaysOtherwise) {
  Channel channel(rdma_create_event_channel());
  Id id = make_id(channel);
  ASSERT_EQ(listen_at_ipv6(id, 0, 0), 0);
  const std::uint16_t port = ntohs(rdma_get_src_port(id.get()));
  EXPECT_EQ(listener_of(channel, port, false), id.get());
  EXPECT_EQ(listener_of(channel, port, true), id.get());
  sockaddr_in address = loopback(port);
  Id second = make_id(channel);
  EXPECT_EQ(rdma_bind_addr(second.get(), reinterpret_cast<sockaddr*>(&address)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST(SoftnicCm, OptionsAreForTheStatesAndTransportsThatHaveThem) {
  Listener listener;
  int on = 1;
  const auto set = [](const Id& id, int option, void* value, std::size_t size) {
    return rdma_set_option(id.get(), RDMA_OPTION_ID, option, value, size) == 0 ? 0 : errno;
  };
  EXPECT_EQ(set(listener.id, RDMA_OPTION_ID_AFONLY, &on, sizeof on), EINVAL);
  EXPECT_EQ(set(listener.id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), EINVAL);
  Channel channel(rdma_create_event_channel());
  const Id datagrams = make_id(channel, RDMA_PS_UDP);
  std::uint8_t timeout = 14;
  EXPECT_EQ(set(datagrams, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout), EINVAL);
  EXPECT_EQ(set(datagrams, RDMA_OPTION_ID_TOS, &timeout, sizeof timeout), 0);
  EXPECT_EQ(set(datagrams, RDMA_OPTION_ID_TOS, &timeout, 2), EINVAL);
  EXPECT_EQ(set(datagrams, 99, &on, sizeof on), ENOSYS);
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
