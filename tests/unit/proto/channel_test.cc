#include "../../failure_of.h"
#include "gdrperf/proto/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::proto {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

std::string frame(const std::string& text) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>((text.size() >> shift) & 0xff);
  return bytes + text;
}

// A channel and the bare socket at its other end.
struct Wire {
  Wire() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    raw.reset(fds[1]);
    channel.emplace(UniqueFd(fds[0]), "server far:1");
  }
  void put(std::string_view bytes) const {
    ASSERT_EQ(::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::optional<Channel> channel;
  UniqueFd raw;
};

TEST(Channel, CarriesMessagesBothWaysInOrder) {
  auto [client, server] = local_channel_pair();
  client.send(Busy{"a"});
  client.send(Start{});
  server.send(Pong{4, 2.5});
  EXPECT_EQ(expect<Busy>(server, 1s).serving, "a");
  expect<Start>(server, 1s);
  EXPECT_EQ(expect<Pong>(client, 1s).server_ns, 2.5);
  EXPECT_EQ(client.peer(), "server (local)");
  EXPECT_EQ(server.peer(), "client (local)");
}

TEST(Channel, CarriesFramesLargerThanTheSocketBuffer) {
  auto [client, server] = local_channel_pair();
  Done done;
  for (std::size_t i = 0; i < kMaxDoneSeries; ++i)
    done.series.emplace_back(static_cast<double>(i), 1ull << 60);
  std::thread sender([&, &client = client] { client.send(done); });
  EXPECT_EQ(expect<Done>(server, 10s).series.size(), kMaxDoneSeries);
  sender.join();
}

TEST(Channel, ReassemblesAFrameThatComesByteByByte) {
  const Wire wire;
  Channel channel(UniqueFd(::fcntl(wire.channel->fd(), F_DUPFD_CLOEXEC, 0)), "x");
  const std::string bytes = frame(encode(Ping{7})) + frame(encode(Ping{8}));
  std::vector<std::uint64_t> tokens;
  for (const char byte : bytes) {
    wire.put({&byte, 1});
    if (const auto message = channel.try_receive())
      tokens.push_back(std::get<Ping>(*message).token);
  }
  EXPECT_THAT(tokens, ::testing::ElementsAre(7, 8));
  EXPECT_FALSE(channel.try_receive());
}

TEST(Channel, SeveralFramesInOneReadAreAllDelivered) {
  Wire wire;
  wire.put(frame(encode(Ping{1})) + frame(encode(Ping{2})) + frame(encode(Ping{3})));
  wire.raw.reset();
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(expect<Ping>(*wire.channel, 1s).token, i);
  EXPECT_THAT(failure_of([&] { wire.channel->receive(1s); }).what(),
              HasSubstr("server far:1: closed the connection"));
}

TEST(Channel, RefusesGarbageAtOnce) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("\xff\xff\xff\xff", 4)}) {
    Wire wire;
    wire.put(bytes);
    const Error error = failure_of([&] { wire.channel->receive(10s); });
    EXPECT_EQ(error.code(), ExitCode::kPeer);
    EXPECT_THAT(error.what(), HasSubstr("server far:1: does not speak gdrperf's protocol"));
  }
  for (const std::string& text :
       {std::string(), std::string("{\"type\":\"\xfe\"}"), std::string(100, '[')}) {
    Wire wire;
    wire.put(frame(text));
    EXPECT_THAT(failure_of([&] { wire.channel->receive(10s); }).what(),
                HasSubstr("server far:1: message not understood"));
  }
}

TEST(Channel, NamesOtherServicesOnThePort) {
  for (const auto& [bytes, service] : {std::pair("SSH-2.0-OpenSSH_9.2\r\n", "an SSH server"),
                                       std::pair("HTTP/1.1 400 Bad Request\r\n", "an HTTP server")}) {
    Wire wire;
    wire.put(bytes);
    const Error error = failure_of([&] { wire.channel->receive(10s); });
    EXPECT_EQ(error.code(), ExitCode::kPeer);
    EXPECT_THAT(error.what(), HasSubstr(std::string(service) + " answers on this port"));
    EXPECT_THAT(error.hint(), HasSubstr("--port"));
  }
}

TEST(Channel, NamesPerftestAtTheOtherEnd) {
  for (const auto& [bytes, who] :
       {std::pair(std::string("6.06\0\0\0\0\0\0\0\0\0\0\0\0", 16), "perftest 6.06 listens there"),
        std::pair(std::string("6.29"), "perftest 6.29 listens there"),
        std::pair(std::string("0000:0010:0a51c2:7bc1e2:00004400:"), "far:1: perftest listens there")}) {
    Wire wire;
    wire.put(bytes);
    const Error error = failure_of([&] { wire.channel->receive(10s); });
    EXPECT_EQ(error.code(), ExitCode::kPeer);
    EXPECT_THAT(error.what(), HasSubstr(who));
    EXPECT_THAT(error.hint(), HasSubstr("gdrperf serve"));
  }
  for (const char* bytes : {"6.x6", "6..6", "1234567.90123456", "0000:0010:0a51c2;", "00g0:0010:0a51c2:"}) {
    Wire wire;
    wire.put(bytes);
    EXPECT_THAT(failure_of([&] { wire.channel->receive(10s); }).what(), HasSubstr("does not speak gdrperf's protocol"))
        << bytes;
  }
}

TEST(Channel, NoticesHangUp) {
  Wire wire;
  EXPECT_FALSE(wire.channel->try_receive());
  wire.put(std::string_view("\0\0", 2));
  wire.raw.reset();
  EXPECT_THAT(failure_of([&] { wire.channel->receive(Channel::kForever); }).what(),
              HasSubstr("in the middle of a message"));
  EXPECT_EQ(failure_of([&] { wire.channel->try_receive(); }).code(), ExitCode::kPeer);
}

TEST(Channel, WaitingWithoutLimitEndsWithThePeer) {
  auto pair = local_channel_pair();
  std::optional<Channel> server(std::move(pair.second));
  std::thread closer([&] { server.reset(); });
  EXPECT_THAT(failure_of([&] { pair.first.receive(Channel::kForever); }).what(),
              HasSubstr("closed the connection"));
  closer.join();
}

TEST(Channel, TimesOutEvenWhenBytesDribbleIn) {
  Wire wire;
  wire.put(std::string_view("\0\0\1\0abc", 7));
  const auto start = steady_clock::now();
  const Error error = failure_of([&] { wire.channel->receive(50ms); });
  EXPECT_GE(steady_clock::now() - start, 50ms);
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(), HasSubstr("no answer for 0.05 s"));
}

TEST(Channel, ABrokenPipeIsAnErrorNotASignal) {
  Wire wire;
  wire.raw.reset();
  const Error error = failure_of([&] { wire.channel->send(Start{}); });
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(), HasSubstr("closed the connection"));
}

TEST(Channel, SendTellsOfThePeersLastWords) {
  Wire wire;
  wire.put(frame(encode(Ping{1})) +
           frame(encode(Failure{3, "ibv_reg_mr: no memory", "ulimit -l"})));
  wire.raw.reset();
  const Error error = failure_of([&] { wire.channel->send(Start{}); });
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_STREQ(error.what(), "server far:1: ibv_reg_mr: no memory");
  EXPECT_EQ(error.hint(), "ulimit -l");
}

TEST(Channel, SendGivesUpOnAPeerThatDoesNotRead) {
  Wire wire;
  Done done;
  done.series.assign(kMaxDoneSeries, {1.0, 1ull << 60});
  const auto start = steady_clock::now();
  const Error error = failure_of([&] { wire.channel->send(done); });
  EXPECT_LT(steady_clock::now() - start, 30s);  // a busy machine takes its time
  EXPECT_THAT(error.what(), HasSubstr("took no message for 4.5 s"));
}

TEST(Expect, ThrowsWhatThePeerReports) {
  auto [client, server] = local_channel_pair();
  server.send(Reject{3, "no device 'x'", "gdrperf devices"});
  Error error = failure_of([&, &client = client] { expect<Accept>(client, 1s); });
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_STREQ(error.what(), "server (local): no device 'x'");
  EXPECT_EQ(error.hint(), "gdrperf devices");
  // An exit code nobody knows becomes "the peer failed"; 0 is no failure's code.
  for (const int code : {0, -3, 77, 1000}) {
    server.send(Failure{code, "odd", ""});
    EXPECT_EQ(failure_of([&, &client = client] { expect<Accept>(client, 1s); }).code(),
              ExitCode::kPeer);
  }
  server.send(Ready{});
  error = failure_of([&, &client = client] { expect<Accept>(client, 1s); });
  EXPECT_STREQ(error.what(), "server (local): sent ready where accept was due");
}

// A socket pair stands in for TCP: heartbeats are asked for, not assumed.
TEST(Heartbeat, KeepsAChannelOnWhichNothingIsSaid) {
  auto [client, server] = local_channel_pair();
  client.keep_alive();
  server.keep_alive();
  EXPECT_THAT(failure_of([&, &client = client] { client.receive(Channel::kSilence + 1s); }).what(),
              HasSubstr("no answer for 5.5 s"));
}

TEST(Heartbeat, SilenceEndsTheLongestWait) {
  auto [client, server] = local_channel_pair();
  client.keep_alive(300ms);
  const Error error = failure_of([&, &client = client] { client.receive(Channel::kForever); });
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_STREQ(error.what(), "server (local): nothing heard from it for 0.3 s, though the connection is up");
  EXPECT_FALSE(error.hint().empty());
}

TEST(Heartbeat, APeerIsUpForHalfOfTheTimeAfterWhichItIsSilent) {
  Wire wire;
  EXPECT_TRUE(wire.channel->heard_lately()) << "nobody expects it to be heard";
  wire.channel->expect_alive(1s);
  EXPECT_TRUE(wire.channel->heard_lately());
  try {
    while (wire.channel->heard_lately()) wire.channel->try_receive();
  } catch (const Error&) {  // held up for the other half as well
  }
  EXPECT_FALSE(wire.channel->heard_lately());
  wire.put(frame(encode(Alive{0, 0})));
  EXPECT_FALSE(wire.channel->try_receive());
  EXPECT_TRUE(wire.channel->heard_lately());
}

TEST(Heartbeat, IsNoMessage) {
  Wire wire;
  wire.put(frame(encode(Alive{0, 0})) + frame(encode(Ping{1})) + frame(encode(Alive{1, 0})));
  EXPECT_EQ(std::get<Ping>(wire.channel->receive(1s)).token, 1u);
  EXPECT_FALSE(wire.channel->try_receive());
}

TEST(Heartbeat, ShowsThatAFrameWasLost) {
  Wire wire;
  wire.put(frame(encode(Alive{1, 0})));
  EXPECT_THAT(failure_of([&] { wire.channel->receive(1s); }).what(),
              HasSubstr("a message was lost on the way: it sent 1, 0 came"));
}

/// Whoever gets the message after the lost one must not take it for that.
TEST(Heartbeat, GoesWithEachMessageSoThatALossShowsBeforeTheNext) {
  Wire sender;
  sender.channel->keep_alive();
  sender.channel->send(Start{});
  sender.channel->send(Stop{{1}});
  std::string bytes;
  while (bytes.find("stop") == std::string::npos || bytes.back() != '}') {
    char block[4096];
    const ssize_t got = ::recv(sender.raw.get(), block, sizeof block, 0);
    ASSERT_GT(got, 0);
    bytes.append(block, static_cast<std::size_t>(got));
  }
  const std::string lost = frame(encode(Start{}));
  ASSERT_NE(bytes.find(lost), std::string::npos);
  bytes.erase(bytes.find(lost), lost.size());
  Wire receiver;
  receiver.put(bytes);
  EXPECT_THAT(failure_of([&] { receiver.channel->receive(1s); }).what(),
              HasSubstr("a message was lost on the way: it sent 1, 0 came"));
}

TEST(Heartbeat, ShowsThatAFrameWasNotTaken) {
  Wire wire;
  wire.channel->expect_alive(300ms);
  wire.channel->send(Stop{{1}});
  const Error error = failure_of([&] {
    while (true) {
      wire.put(frame(encode(Alive{0, 0})));  // it is there, but does not listen
      failure_of([&] { wire.channel->receive(10ms); });
      wire.channel->check_taken();
    }
  });
  EXPECT_STREQ(error.what(), "server far:1: has not accepted 'stop' for 0.3 s, though it is up");
  // Once taken, all is well.
  wire.put(frame(encode(Alive{0, 1})));
  EXPECT_FALSE(wire.channel->try_receive());
  wire.channel->check_taken();
}

/// Registering memory cannot be interrupted: words come in the middle of it.
TEST(Heartbeat, SilenceIsToldOfInTheMiddleOfWork) {
  Wire wire;
  std::promise<std::string> told;
  wire.channel->tell_silence_at_work([&](const std::string& text) { told.set_value(text); });
  wire.channel->keep_alive(300ms);
  {
    const Channel::Work work(*wire.channel, "setting up");
    EXPECT_EQ(told.get_future().get(), "server far:1: nothing heard from it for 0.3 s while this host was setting up");
  }
  EXPECT_THAT(failure_of([&] { wire.channel->receive(Channel::kForever); }).what(), HasSubstr("nothing heard from it"));
}

TEST(Heartbeat, NamesWhatThePeerHasToWaitFor) {
  auto [client, server] = local_channel_pair();
  server.keep_alive();
  EXPECT_EQ(client.peers_work(), "");
  const auto hear = [&, &client = client] { failure_of([&] { client.receive(10ms); }); };
  {
    const Channel::Work work(server, "setting up");
    while (client.peers_work().empty()) hear();
    EXPECT_EQ(client.peers_work(), "setting up");
  }
  while (!client.peers_work().empty()) hear();
}

TEST(Heartbeat, WhoWaitsKeepsWhatAnEagerPeerSays) {
  Wire wire;
  wire.channel->expect_alive();
  wire.put(frame(encode(Alive{0, 0})) + frame(encode(Ping{1})) + frame(encode(Alive{1, 0})));
  for (int i = 0; i < 3; ++i) wire.channel->attend();
  EXPECT_EQ(std::get<Ping>(wire.channel->receive(1s)).token, 1u);
}

TEST(Channel, AStrangersFramesAreShort) {
  Wire wire;
  wire.channel->limit_frames(Channel::kMaxStrangerFrameBytes);
  wire.put(std::string("\0\0\x10\x01", 4));
  EXPECT_THAT(failure_of([&] { wire.channel->receive(1s); }).what(), HasSubstr("a frame of 4097 bytes"));
}

TEST(Hello, AServerTellsStrangersNoHostName) {
  EXPECT_EQ(server_hello().host, "");
  EXPECT_NE(own_hello().host, "");
  EXPECT_NE(server_hello().nonce, server_hello().nonce);
}

TEST(Hello, BothEndsMayGoFirst) {
  auto [client, server] = local_channel_pair();
  std::thread other(
      [&, &server = server] { EXPECT_EQ(exchange_hello(server, 5s, server_hello()).major, kProtocolMajor); });
  const Hello hello = exchange_hello(client, 5s, own_hello());
  other.join();
  EXPECT_FALSE(hello.tool_version.empty());
  EXPECT_EQ(hello.minor, kProtocolMinor);
}

TEST(Hello, AnotherMajorVersionNamesBothOnBothEnds) {
  auto [client, server] = local_channel_pair();
  Hello future = own_hello();
  future.major = 3;
  future.tool_version = "9.9";
  server.send(future);
  const Error error = failure_of([&, &client = client] { exchange_hello(client, 1s, own_hello()); });
  EXPECT_EQ(error.code(), ExitCode::kPeer);
  EXPECT_THAT(error.what(), HasSubstr("gdrperf 9.9 (protocol 3.0)"));
  EXPECT_THAT(error.what(), HasSubstr("gdrperf " + own_hello().tool_version.raw() + " (protocol 2.0)"));
  EXPECT_FALSE(error.hint().empty());
  // The other end has our version as well, although we gave up.
  EXPECT_EQ(expect<Hello>(server, 1s).tool_version, own_hello().tool_version);
}

TEST(Hello, AnotherMinorVersionIsFine) {
  auto [client, server] = local_channel_pair();
  Hello later = own_hello();
  later.minor = 41;
  server.send(later);
  EXPECT_EQ(exchange_hello(client, 1s, own_hello()).minor, 41);
}

TEST(Hello, SilenceAndStrangersAreErrors) {
  auto [client, server] = local_channel_pair();
  EXPECT_THAT(failure_of([&, &client = client] { exchange_hello(client, 20ms, own_hello()); }).what(),
              HasSubstr("no answer"));
  server.send(Ready{});
  EXPECT_THAT(failure_of([&, &client = client] { exchange_hello(client, 1s, own_hello()); }).what(),
              HasSubstr("hello was due"));
}

}  // namespace
}  // namespace gdrperf::proto
