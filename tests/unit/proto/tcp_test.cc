#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../failure_of.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/tcp_port.h"

namespace gdrperf::proto {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Channel accept_one(Listener& listener) {
  pollfd entry{listener.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 5000), 1);
  auto channel = listener.accept();
  if (!channel) throw peer_error("nobody came");
  return *std::move(channel);
}

/// Connects to `host` over a listener on all addresses and exchanges a message each way.
void talk_over(const char* host) {
  Listener listener("", 0);
  ASSERT_GT(listener.port(), 0);
  Channel client = connect_tcp(host, listener.port(), 1s);
  Channel server = accept_one(listener);
  EXPECT_EQ(client.peer(), "server " + std::string(host) + ":" + std::to_string(listener.port()));
  EXPECT_THAT(server.peer(), StartsWith("client "));
  EXPECT_THAT(server.peer(), ::testing::Not(HasSubstr("ffff")));
  client.send(Ping{3});
  EXPECT_EQ(expect<Ping>(server, 5s).token, 3u);
  server.send(Bye{});
  expect<Bye>(client, 5s);
}

TEST(Tcp, APortMayFollowTheHost) {
  using Pair = std::pair<std::string, int>;
  EXPECT_EQ(host_and_port("node0", 1, "--root"), Pair("node0", 1));
  EXPECT_EQ(host_and_port("node0:19000", 1, "--root"), Pair("node0", 19000));
  EXPECT_EQ(host_and_port("fd00::1", 1, "--root"), Pair("fd00::1", 1));
  EXPECT_EQ(host_and_port("[fd00::1]", 1, "--root"), Pair("fd00::1", 1));
  EXPECT_EQ(host_and_port("[fd00::1]:19000", 1, "--root"), Pair("fd00::1", 19000));
  EXPECT_THAT(failure_of([] { host_and_port("node0:99999", 1, "--root"); }).what(), HasSubstr("--root"));
}

TEST(Tcp, APortOfTheHostCounts) {
  Listener listener("", 0);
  const Channel client = connect_tcp("127.0.0.1:" + std::to_string(listener.port()), 1, 1s);
  EXPECT_EQ(client.peer(), "server 127.0.0.1:" + std::to_string(listener.port()));
}

TEST(Tcp, ConnectsByAddress) { talk_over("127.0.0.1"); }

TEST(Tcp, ConnectsByName) {
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0) {
    GTEST_SKIP() << "this system does not know the name localhost (no /etc/hosts)";
  }
  ::freeaddrinfo(found);
  talk_over("localhost");
}

TEST(Tcp, ListenerBindsOneAddress) {
  Listener listener("127.0.0.1", 0);
  Channel client = connect_tcp("127.0.0.1", listener.port(), 1s);
  EXPECT_THAT(accept_one(listener).peer(), StartsWith("client 127.0.0.1:"));
}

TEST(Tcp, AcceptWithoutAnybodyIsEmpty) {
  Listener listener("127.0.0.1", 0);
  EXPECT_FALSE(listener.accept());
}

TEST(Tcp, APortInUseSaysSo) {
  for (const char* address : {"", "127.0.0.1"}) {
    Listener first(address, 0);
    for (const char* again : {"", "127.0.0.1"}) {
      const Error error = failure_of([&] { Listener second(again, first.port()); });
      EXPECT_EQ(error.code(), ExitCode::kEnvironment);
      EXPECT_EQ(std::string(error.what()), "port " + std::to_string(first.port()) + " is in use");
      EXPECT_THAT(error.hint(), HasSubstr("-p"));
    }
  }
}

TEST(Tcp, AnAddressThatIsNotOursSaysSo) {
  Error error = failure_of([] { Listener listener("192.0.2.1", 0); });  // TEST-NET-1, RFC 5737
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_THAT(error.what(), HasSubstr("192.0.2.1"));
  EXPECT_THAT(error.hint(), HasSubstr("--bind"));
  error = failure_of([] { Listener listener("no such host", 0); });
  EXPECT_THAT(error.what(), HasSubstr("no such host"));
}

int free_port() { return Listener("127.0.0.1", 0).port(); }

TEST(Tcp, ARefusingPortIsTriedForAsLongAsPatienceLasts) {
  const int port = free_port();
  const auto start = steady_clock::now();
  const Error error = failure_of([&] { connect_tcp("127.0.0.1", port, 300ms); });
  const auto took = steady_clock::now() - start;
  EXPECT_GE(took, 250ms);
  EXPECT_LT(took, 4s);
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(),
              HasSubstr("127.0.0.1:" + std::to_string(port) + ": nothing listens there"));
  EXPECT_THAT(error.hint(), HasSubstr("gdrperf serve -p " + std::to_string(port)));
}

TEST(Tcp, AServerThatStartsLateIsFound) {
  const int port = free_port();
  std::optional<Listener> late;
  std::thread starter([&] { late.emplace("127.0.0.1", port); });
  EXPECT_NO_THROW(connect_tcp("127.0.0.1", port, 3s));
  starter.join();
}

TEST(Tcp, AHostThatDoesNotAnswerIsGivenUpWithinFiveSeconds) {
  // A full backlog drops further SYNs: what a silent host looks like.
  Listener listener("127.0.0.1", 0);
  ASSERT_EQ(::listen(listener.fd(), 0), 0);
  std::vector<Channel> backlog;
  const auto start = steady_clock::now();
  const Error error = failure_of([&] {
    for (int i = 0; i < 4; ++i) backlog.push_back(connect_tcp("127.0.0.1", listener.port(), 1s));
  });
  EXPECT_LT(steady_clock::now() - start, 5s);
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(), HasSubstr("timed out"));
}

TEST(Tcp, AnUnknownNameSaysSo) {
  const auto start = steady_clock::now();
  const Error error =
      failure_of([] { connect_tcp("no-such-host.invalid", 18515, 1s); });  // RFC 6761
  EXPECT_LT(steady_clock::now() - start, 5s);
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
}

TEST(Tcp, AResetIsAHangUp) {
  Listener listener("127.0.0.1", 0);
  Channel client = connect_tcp("127.0.0.1", listener.port(), 1s);
  {
    Channel server = accept_one(listener);
    const linger now{1, 0};
    ASSERT_EQ(::setsockopt(server.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  }
  EXPECT_THAT(failure_of([&] { client.receive(5s); }).what(), HasSubstr("closed the connection"));
}

}  // namespace
}  // namespace gdrperf::proto
