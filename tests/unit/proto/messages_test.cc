#include "gdrperf/proto/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::proto {
namespace {

using ::testing::HasSubstr;

// Decodes what was encoded and checks that encoding it again gives the same
// text: with every member holding a value of its own, nothing was dropped.
template <typename T>
T round_trip(const T& message) {
  const std::string text = encode(message);
  const Message back = decode(text);
  EXPECT_EQ(encode(back), text);
  EXPECT_TRUE(std::holds_alternative<T>(back)) << text;
  EXPECT_STREQ(type_name(back), type_name(Message(message)));
  return std::get<T>(back);
}

std::string refusal(std::string_view text) {
  try {
    decode(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPeer);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  return {};
}

Endpoint full_endpoint() {
  Endpoint e;
  e.device = "mlx5_0";
  e.kind = "hardware";
  e.port = 2;
  e.lid = 17;
  e.mtu_bytes = 4096;
  e.gid_index = 3;
  e.gid = "::ffff:10.0.0.1";
  e.gid_raw = "00000000000000000000ffff0a000001";
  e.gid_family = "RoCE v2/IPv4";
  e.firmware = "28.39.1002";
  e.driver = "mlx5_core";
  e.gid_why = "first RoCE v2 over IPv4";
  e.buffer = "host";
  e.host_id = "00c0ffee00c0ffee";
  e.cpu = 5;
  e.numa = 1;
  e.address = 0xffff'ffff'ffff'f000;
  e.length = 1u << 23;
  e.rkey = 0xdeadbeef;
  e.max_rd_atomic = 16;
  e.cm_port = 18516;
  e.cm_address = "10.0.0.1";
  e.qps = {{0xffffff, 0}, {17, 0xabcdef}};
  return e;
}

TestSpec full_spec() {
  TestSpec s;
  s.test = {Operation::kSend, Metric::kBandwidth};
  s.size_bytes = 1u << 31;
  s.client = {"soft0", 1, 2, "host", true, 3};
  s.server = {"soft1", 2, 0, "gpu0", false, 0};
  s.qps = 4;
  s.tx_depth = 64;
  s.rx_depth = 256;
  s.cq_mod = 8;
  s.post_list = 4;
  s.inline_bytes = 64;
  s.mtu_bytes = 1024;
  s.footprint_bytes = 1ull << 33;
  s.qp_timeout = 10;
  s.service_level = 3;
  s.traffic_class = 106;
  s.direction = Direction::kBidirectional;
  s.wait = Wait::kEvent;
  s.connector = Connector::kRdmaCm;
  s.stop.duration = std::chrono::milliseconds(1500);
  s.stop.precision = 0.025;
  s.stop.cap = std::chrono::seconds(3);
  return s;
}

TEST(Messages, EveryOneComesBackWhole) {
  const Hello hello = round_trip(Hello{kProtocolMajor, 7, "0.1.0", "node1", "abc", true});
  EXPECT_EQ(hello.minor, 7);
  EXPECT_EQ(hello.host, "node1");
  EXPECT_EQ(hello.nonce, "abc");
  EXPECT_TRUE(hello.token);
  EXPECT_EQ(round_trip(Proof{"ff"}).hmac, "ff");
  round_trip(Enter{});
  EXPECT_EQ(std::get<Enter>(decode(encode(Enter{"ab"}))).beside, "ab");
  EXPECT_EQ(round_trip(Alive{3, 4}).taken, 4u);
  EXPECT_EQ(round_trip(Alive{3, 4, "setting up"}).work, "setting up");
  EXPECT_EQ(round_trip(Busy{"10.0.0.2", 3, 2}).ahead, 2);
  round_trip(Turn{});
  EXPECT_EQ(std::get<Turn>(decode(encode(Turn{"cd"}))).ticket, "cd");
  EXPECT_FALSE(round_trip(Turn{"cd"}).results);
  EXPECT_TRUE(round_trip(Turn{"", true}).results);
  const RunRequest request =
      round_trip(RunRequest{full_spec(), {"RoCE v2/IPv4", "RoCE v1"}, 4096, "00c0ffee", {0, 65535}});
  EXPECT_EQ(request.spec, full_spec());
  EXPECT_EQ(request.gid_families.size(), 2u);
  EXPECT_EQ(request.active_mtu_bytes, 4096);
  EXPECT_EQ(request.host_id, "00c0ffee");
  EXPECT_EQ(request.cpus.back(), 65535);
  const Accept accept = round_trip(Accept{full_endpoint(), R"({"hostname":"a"})", full_spec().server});
  EXPECT_EQ(accept.server_end, full_spec().server);
  EXPECT_EQ(accept.environment, R"({"hostname":"a"})");
  EXPECT_EQ(accept.endpoint.address, 0xffff'ffff'ffff'f000);
  EXPECT_EQ(accept.endpoint.rkey, 0xdeadbeef);
  EXPECT_EQ(accept.endpoint.qps.at(1).psn, 0xabcdefu);
  round_trip(Connect{full_endpoint()});
  round_trip(Connect{Endpoint{}});
  EXPECT_EQ(round_trip(Reject{3, "no such device", "try -d"}).hint, "try -d");
  round_trip(Ready{});
  EXPECT_EQ(round_trip(Start{}).begin_ns, 0) << "older peers";
  EXPECT_EQ(round_trip(Start{1234.5678e9}).begin_ns, 1234.5678e9);
  EXPECT_EQ(round_trip(Ping{~0ull}).token, ~0ull);
  EXPECT_EQ(round_trip(Pong{1, 1234.5678e9}).server_ns, 1234.5678e9);
  EXPECT_EQ(round_trip(Pong{1, 1e18}).server_ns, 1e18);  // the largest that is taken
  EXPECT_EQ(round_trip(Stop{{0, ~0ull}}).messages.at(1), ~0ull);
  EXPECT_EQ(round_trip(Done{}).cpu_s, std::nullopt) << "older peers";
  const Done done = round_trip(Done{9, 7, {{1.5, 10}, {2.5, 1ull << 60}}, {"slow"}, 0, 0.25});
  EXPECT_EQ(done.received, 7u);
  EXPECT_EQ(done.cpu_s, 0.25);
  EXPECT_EQ(done.series.at(1).second, 1ull << 60);
  EXPECT_EQ(done.warnings.at(0), "slow");
  EXPECT_EQ(round_trip(Failure{5, "gone", ""}).reason, "gone");
  round_trip(Bye{});
  round_trip(Lap{7});
  round_trip(LapDone{{1, 2}});
  round_trip(Checked{9, 0.5});
  EXPECT_EQ(round_trip(Cluster{R"({"cluster":"end"})"}).text, R"({"cluster":"end"})");
  EXPECT_EQ(round_trip(Cluster{std::string("\x1b\0\xff", 3)}).text, std::string("\x1b\0\xff", 3)) << "any bytes";
  EXPECT_THROW(decode(R"({"type":"cluster","text":""})"), Error) << "no JSON";
  EXPECT_EQ(round_trip(Cluster{std::string(1u << 20, 'x')}).text.size(), 1u << 20) << "for many ranks";
}

TEST(Messages, ResultsAndKeysComeBackWhole) {
  const Result result =
      round_trip(Result{full_spec(), "software", "soft0", "soft1", "RoCE v2/IPv4", 1, 3, 5000, 0.25, {1.5, -1}});
  EXPECT_EQ(result.spec, full_spec());
  EXPECT_EQ(result.server_device, "soft1");
  EXPECT_EQ(result.server_gid_index, 3);
  EXPECT_EQ(result.figures, (std::vector<double>{1.5, -1}));
  EXPECT_THROW(decode(encode(Result{full_spec(), "", "", "", "", 0, 0, 1, 1, {1, 2, 3}})), Error)
      << "as many figures as the test has";
  Endpoint keys = full_endpoint();
  keys.rkeys = {1, ~0u};
  EXPECT_EQ(round_trip(Connect{keys}).endpoint.rkeys, keys.rkeys);
}

TEST(Messages, SpecsKeepEveryStopRule) {
  RunRequest request;
  EXPECT_EQ(round_trip(request).spec, TestSpec{});
  request.spec.stop.iterations = 1'000'000'000'000;
  EXPECT_EQ(round_trip(request).spec, request.spec);
  request.spec.stop.iterations.reset();
  request.spec.stop.precision = 1.0 / 3.0;
  EXPECT_EQ(round_trip(request).spec, request.spec);
}

TEST(Messages, BytesThatAreNoUtf8AreReplacedNotThrown) {
  EXPECT_THAT(round_trip(Busy{"a\xff\xfe z"}).serving.raw(), HasSubstr(" z"));
}

TEST(Messages, ControlCharactersNeverReachATerminal) {
  EXPECT_EQ(std::get<Failure>(decode(encode(Failure{5,
                                                    "a\x1b[2J\nb\x7f\xc2\x9b"
                                                    "c\xe2\x80\xae",
                                                    ""})))
                .reason,
            "a\ufffd[2J\ufffdb\ufffd\ufffdc\ufffd");
}

TEST(Messages, LongReasonsAreCutNotLost) {
  const Failure back = std::get<Failure>(decode(encode(Failure{3, std::string(100'000, 'x'), ""})));
  EXPECT_GT(back.reason.raw().size(), 500u);
}

TEST(Messages, UnknownMembersAreIgnored) {
  EXPECT_EQ(std::get<Busy>(decode(R"({"type":"busy","serving":"x","later":{"a":[1]}})")).serving,
            "x");
}

TEST(Messages, AHelloOfAnotherMajorVersionIsReadable) {
  const Hello hello = std::get<Hello>(
      decode(R"({"type":"hello","magic":"gdrperf","major":3,"tool_version":"9.9"})"));
  EXPECT_EQ(hello.major, 3);
  EXPECT_EQ(hello.tool_version, "9.9");
}

TEST(Messages, WhatIsNoMessageIsRefusedInWords) {
  EXPECT_THAT(refusal(""), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("{"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("{\"type\":\"bye\"} x"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal(std::string_view("\0\0\0", 3)), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("{\"type\":\"\xff\xfe\"}"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("null"), HasSubstr("no object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("message.type is missing"));
  EXPECT_THAT(refusal(R"({"type":7})"), HasSubstr("message.type is no text"));
  EXPECT_THAT(refusal(R"({"type":"launch"})"), HasSubstr("'launch' is unknown"));
  EXPECT_THAT(refusal(R"({"type":"hello","magic":"x","major":1})"), HasSubstr("magic"));
}

TEST(Messages, DeepNestingCostsNothing) {
  EXPECT_THAT(refusal(std::string(4'000'000, '[')), HasSubstr("nests too deep"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_THAT(refusal(objects), HasSubstr("nests too deep"));
  EXPECT_THAT(refusal("[" + std::string(1'000'000, ',') + "]"), HasSubstr("too many values"));
  // Brackets in text do not count.
  EXPECT_EQ(std::get<Busy>(decode(R"({"type":"busy","serving":"\"[[[[[[[[[[[[[[[[[[[[[["})"))
                .serving.raw()
                .size(),
            23u);
}

TEST(Messages, WrongTypesAndRangesNameTheMember) {
  EXPECT_THAT(refusal(R"({"type":"ping"})"), HasSubstr("ping.token is missing"));
  EXPECT_THAT(refusal(R"({"type":"ping","token":"1"})"), HasSubstr("ping.token is no integer"));
  EXPECT_THAT(refusal(R"({"type":"ping","token":1.5})"), HasSubstr("ping.token is no integer"));
  EXPECT_THAT(refusal(R"({"type":"ping","token":-1})"), HasSubstr("ping.token is not within"));
  EXPECT_THAT(refusal(R"({"type":"ping","token":18446744073709551616})"),
              HasSubstr("ping.token is no integer"));
  EXPECT_THAT(refusal(R"({"type":"pong","token":1,"server_ns":null})"),
              HasSubstr("pong.server_ns is no number"));
  EXPECT_THAT(refusal(R"({"type":"pong","token":1,"server_ns":1e999})"),
              HasSubstr("message not understood"));
  EXPECT_THAT(refusal(R"({"type":"pong","token":1,"server_ns":-1.7e308})"),
              HasSubstr("pong.server_ns is not within -1e+18 and 1e+18"));
  EXPECT_THAT(refusal(R"({"type":"busy","serving":[]})"), HasSubstr("busy.serving is no text"));
  EXPECT_THAT(refusal(R"({"type":"busy","serving":")" + std::string(20000, 'a') + "\"}"),
              HasSubstr("longer than"));
  EXPECT_THAT(refusal(R"({"type":"stop","messages":{}})"), HasSubstr("stop.messages is no list"));
  EXPECT_THAT(refusal(R"({"type":"stop","messages":[1,-1]})"),
              HasSubstr("stop.messages is not within"));
  EXPECT_THAT(refusal(R"({"type":"failure","exit_code":99999999999,"reason":""})"),
              HasSubstr("failure.exit_code"));
  EXPECT_THAT(refusal(R"({"type":"accept","endpoint":3})"),
              HasSubstr("accept.endpoint is no object"));
  EXPECT_THAT(refusal(R"({"type":"done","messages":1,"series":[[1]],"warnings":[]})"),
              HasSubstr("done.series"));
}

TEST(Messages, LimitsOfMembersAreTaken) {
  EXPECT_EQ(std::get<Ping>(decode(R"({"type":"ping","token":-0})")).token, 0u) << "no number below 0";
  EXPECT_EQ(std::get<Ping>(decode(R"({"type":"ping","token":18446744073709551615})")).token, ~0ull);
  EXPECT_EQ(
      std::get<Busy>(decode(R"({"type":"busy","serving":")" + std::string(16384, 'a') + "\"}")).serving.raw().size(),
      16384u);
  EXPECT_THAT(refusal(R"({"type":"busy","serving":")" + std::string(16385, 'a') + "\"}"),
              HasSubstr("busy.serving is longer than 16384 bytes"));
}

TEST(Messages, AListHasUpToItsMostItems) {
  Endpoint offering = full_endpoint();
  offering.ece = {0x15b3, 9};
  EXPECT_EQ(round_trip(Connect{offering}).endpoint.ece.options, 9u);
  std::string three = encode(Connect{offering});
  const std::size_t at = three.find("[5555,9]");
  ASSERT_NE(at, std::string::npos) << three;
  EXPECT_THAT(refusal(three.replace(at, 8, "[5555,9,0]")), HasSubstr("connect.endpoint.ece has more than 2 items"));
}

// One member of a good message replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Messages, EndpointsAndSpecsAreChecked) {
  const std::string accept = encode(Accept{full_endpoint(), ""});
  EXPECT_THAT(refusal(with(accept, "16777215", "16777216")),
              HasSubstr("accept.endpoint.qps is not within"));
  EXPECT_THAT(refusal(with(accept, "[16777215,0]", "[16777215]")),
              HasSubstr("accept.endpoint.qps"));
  EXPECT_THAT(refusal(with(accept, "0000ffff0a", "0000ffff0g")),
              HasSubstr("gid_raw is not 32 hex digits"));
  EXPECT_THAT(refusal(with(accept, "\"port\":2", "\"port\":256")),
              HasSubstr("accept.endpoint.port is not within"));
  const std::string request = encode(RunRequest{full_spec(), {}, 4096});
  EXPECT_THAT(refusal(with(request, "send_bw", "flush_bw")), HasSubstr("run_request.spec.test"));
  EXPECT_THAT(refusal(with(request, "bidirectional", "upwards")),
              HasSubstr("run_request.spec.direction is neither"));
  EXPECT_THAT(refusal(with(request, "\"qps\":4", "\"qps\":2147483648")),
              HasSubstr("run_request.spec.qps"));
  EXPECT_THAT(refusal(with(request, "\"cap_ns\":3000000000", "\"cap_ns\":9223372036854775808")),
              HasSubstr("run_request.spec.stop.cap_ns"));
}

}  // namespace
}  // namespace gdrperf::proto
