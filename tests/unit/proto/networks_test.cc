// Networks of peers, compared bit by bit with a second implementation, and of sockets.
#include "gdrperf/proto/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf::proto {
namespace {

std::string text_of(int family, const std::array<std::uint8_t, 16>& address) {
  char text[INET6_ADDRSTRLEN];
  return ::inet_ntop(family, address.data(), text, sizeof text);
}

// Two addresses are of one network of `bits` where the first bit in which they differ comes later.
void expect_prefixes(int family, int width) {
  std::mt19937 random(1);
  for (int differ = 0; differ <= width; ++differ) {
    std::array<std::uint8_t, 16> one{};
    for (std::uint8_t& byte : one) byte = static_cast<std::uint8_t>(random());
    if (family == AF_INET6) one[0] = 0x20;  // never one that is shown as an IPv4 address
    std::array<std::uint8_t, 16> other = one;
    const auto byte = static_cast<std::size_t>(differ / 8);
    if (differ < width) other[byte] = static_cast<std::uint8_t>(other[byte] ^ (0x80 >> differ % 8));
    for (int bits = 0; bits <= width; ++bits) {
      const Networks network = Networks::parse(text_of(family, one) + "/" + std::to_string(bits), "--allow");
      ASSERT_EQ(network.hold(text_of(family, other)), bits <= differ)
          << network.text() << " and " << text_of(family, other);
    }
  }
}

TEST(Networks, OfIpv4HoldWhatHasTheirPrefix) { expect_prefixes(AF_INET, 32); }

TEST(Networks, OfIpv6HoldWhatHasTheirPrefix) { expect_prefixes(AF_INET6, 128); }

TEST(Networks, OfIpv4AreThoseMappedIntoIpv6) {
  EXPECT_TRUE(Networks::parse("10.1.2.3", "--allow").hold("::ffff:10.1.2.3"));
  EXPECT_TRUE(Networks::parse("::ffff:10.1.2.3", "--allow").hold("10.1.2.3"));
  EXPECT_TRUE(Networks::parse("::/0", "--allow").hold("10.1.2.3"));
  for (const char* other : {"::10.1.2.3", "1::ffff:10.1.2.3", "::1:ffff:10.1.2.3", "::fffe:10.1.2.3"})
    EXPECT_FALSE(Networks::parse("10.1.2.3", "--allow").hold(other)) << other;
}

TEST(Networks, KeepTheirText) {
  EXPECT_EQ(Networks().text(), "");
  EXPECT_TRUE(Networks().all());
  const Networks some = Networks::parse("10.0.0.0/8,::1", "--allow");
  EXPECT_EQ(some.text(), "10.0.0.0/8,::1");
  EXPECT_FALSE(some.all());
  EXPECT_FALSE(some.hold("no address"));
}

TEST(Networks, NameThePartThatIsNone) {
  const std::pair<const char*, const char*> rows[] = {
      {"", ""},
      {"1.2.3.4,", ""},
      {",1.2.3.4", ""},
      {"1.2.3.4,host,5.6.7.8", "host"},
      {"1.2.3.4/33", "1.2.3.4/33"},
      {"1.2.3.4/-1", "1.2.3.4/-1"},
      {"1.2.3.4/", "1.2.3.4/"},
      {"1.2.3.4/8x", "1.2.3.4/8x"},
      {"1.2.3.4/x", "1.2.3.4/x"},
      {"1.2.3.4/99999999999", "1.2.3.4/99999999999"},
      {"host/8", "host/8"},
      {"::1/129", "::1/129"},
      {"::1/-1", "::1/-1"},
  };
  for (const auto& [text, part] : rows) {
    EXPECT_EQ(told_by([asked = text] { Networks::parse(asked, "--allow"); }),
              "--allow '" + std::string(part) + "': no network | give addresses or networks, like "
              "10.0.0.0/8,192.168.1.5,fd00::/8");
  }
}

struct Socket {
  int fd = -1;
  explicit Socket(int socket) : fd(socket) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd); }
};

template <typename Address>
void expect_peer(int family, Address address, const char* its_network, const char* another) {
  const Socket listener(::socket(family, SOCK_STREAM, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (listener.fd < 0 || ::bind(listener.fd, generic, sizeof address) != 0) GTEST_SKIP() << "no such loopback address";
  ASSERT_EQ(::listen(listener.fd, 1), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(listener.fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const Socket client(::socket(family, SOCK_STREAM, 0));
  EXPECT_TRUE(Networks().hold_peer_of(client.fd));
  EXPECT_FALSE(Networks::parse("0.0.0.0/0,::/0", "--allow").hold_peer_of(client.fd)) << "not connected";
  ASSERT_EQ(::connect(client.fd, generic, sizeof address), 0);
  EXPECT_TRUE(Networks::parse(its_network, "--allow").hold_peer_of(client.fd));
  EXPECT_FALSE(Networks::parse(another, "--allow").hold_peer_of(client.fd));
}

TEST(Networks, HoldAPeerOverIpv4) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  expect_peer(AF_INET, address, "127.0.0.1", "127.0.0.2");
}

TEST(Networks, HoldAPeerOverIpv6) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  expect_peer(AF_INET6, address, "::1", "::2,0.0.0.0/0");
}

TEST(Networks, HoldNoPeerWithoutAnAddress) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Socket one(ends[0]), other(ends[1]);
  EXPECT_FALSE(Networks::parse("0.0.0.0/0,::/0", "--allow").hold_peer_of(one.fd));
}

}  // namespace
}  // namespace gdrperf::proto
