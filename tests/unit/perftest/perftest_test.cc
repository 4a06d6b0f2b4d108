#include "../../failure_of.h"
#include "gdrperf/perftest/link.h"

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::proto {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kGid = "00000000000000000000ffff7f000001";

PerftestAddress address(std::string gid = kGid) {
  return {0x1f, 16, 0xabcdef, 0x123456, 0xdeadbeef, 0x7f00'1122'3344, std::move(gid)};
}

/// perftest's end: bytes put in and taken out.
struct FarEnd {
  explicit FarEnd(PerftestRole role, const std::atomic<bool>* stop = nullptr) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    raw.reset(fds[1]);
    channel.emplace(UniqueFd(fds[0]), role == PerftestRole::kClient ? "server far:1" : "client far:1");
    link.emplace(*channel, admit_perftest(*channel, {}), role, stop);
  }
  void put(std::string_view bytes) const {
    ASSERT_EQ(::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::string take(std::size_t bytes) const {
    std::string text(bytes, '\0');
    EXPECT_EQ(::recv(raw.get(), text.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return text;
  }
  std::optional<Channel> channel;
  std::optional<PerftestLink> link;
  UniqueFd raw;
};

std::string padded(std::string text) {
  text.resize(kPerftestVersionBytes, '\0');
  return text;
}

TEST(PerftestWire, AddressesAreTheTextThatPerftestPrints) {
  EXPECT_EQ(encode_perftest_address(address()), std::string("001f:0010:abcdef:123456:deadbeef:00007f0011223344:00:00:"
                                                            "00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01:00000000:\0",
                                                            108));
  EXPECT_EQ(encode_perftest_address(address("")),
            std::string("001f:0010:abcdef:123456:deadbeef:00007f0011223344:00000000\0", 59));
}

TEST(PerftestWire, AddressesComeBackAsTheyWent) {
  for (const std::string& gid : {kGid, std::string()}) {
    const std::string bytes = encode_perftest_address(address(gid));
    const PerftestAddress back = decode_perftest_address(bytes);
    EXPECT_EQ(back.lid, 0x1f);
    EXPECT_EQ(back.outstanding_reads, 16);
    EXPECT_EQ(back.qpn, 0xabcdefu);
    EXPECT_EQ(back.psn, 0x123456u);
    EXPECT_EQ(back.rkey, 0xdeadbeefu);
    EXPECT_EQ(back.address, 0x7f0011223344u);
    EXPECT_EQ(back.gid_raw, gid);
  }
}

TEST(PerftestWire, HostileAddressesAreRefused) {
  const std::string sound = encode_perftest_address(address());
  std::vector<std::string> hostile = {"",
                                      ":",
                                      std::string(108, '\0'),
                                      std::string(108, ':'),
                                      std::string(59, 'f'),
                                      std::string(4096, '0'),
                                      sound + sound,
                                      sound.substr(0, 107),
                                      sound.substr(0, 59),
                                      std::string(108, '\xff')};
  for (std::size_t at : {0u, 4u, 9u, 30u, 52u, 80u, 99u}) {
    std::string bad = sound;
    bad[at] = 'g';
    hostile.push_back(bad);
    bad[at] = '-';
    hostile.push_back(bad);
  }
  for (const std::string& bytes : hostile)
    EXPECT_THAT(failure_of([&] { decode_perftest_address(bytes); }).what(), HasSubstr("address of a QP"));
}

TEST(PerftestWire, NoiseIsRefusedOrReadAndNeverMore) {
  std::mt19937 random(7);
  const std::string sound = encode_perftest_address(address());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = sound;
    for (int changes = static_cast<int>(random() % 4); changes >= 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % 120);
    try {
      decode_perftest_address(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeer);
    }
    try {
      decode_perftest_version(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeer);
    }
    decode_perftest_mtu(bytes);
  }
}

TEST(PerftestWire, VersionsOfOtherHandshakesAreNamed) {
  EXPECT_EQ(decode_perftest_version(padded("6.06")), "6.06");
  EXPECT_EQ(decode_perftest_version(padded("6.29")), "6.29");
  EXPECT_EQ(decode_perftest_version(padded("5.70")), "5.70");
  for (const char* other : {"5.33", "7.00", "0.1"}) {
    EXPECT_THAT(failure_of([&] { decode_perftest_version(padded(other)); }).what(),
                HasSubstr(std::string("perftest ") + other + " has a handshake"));
  }
  for (const char* none : {"", "6", "six.06", "6.06.1", "-6.06", "GET / HTTP/1.0"}) {
    EXPECT_THAT(failure_of([&] { decode_perftest_version(padded(none)); }).what(), HasSubstr("no version of perftest"));
  }
}

TEST(PerftestWire, ServersOfOtherProtocolsAreNamed) {
  EXPECT_THAT(failure_of([] { decode_perftest_version("HTTP/1.1 400 Bad"); }).what(),
              HasSubstr("an HTTP server answers"));
  EXPECT_THAT(failure_of([] { decode_perftest_version("SSH-2.0-OpenSSH_"); }).what(),
              HasSubstr("an SSH server answers"));
}

TEST(PerftestWire, MtusAreDigits) {
  for (const int bytes : {256, 512, 1024, 2048, 4096})
    EXPECT_EQ(decode_perftest_mtu(encode_perftest_mtu(bytes)), bytes);
  for (const std::string& bad :
       {std::string("6\0", 2), std::string("0\0", 2), std::string("55"), std::string("x\0", 2), std::string()}) {
    EXPECT_EQ(decode_perftest_mtu(bad), 0);
  }
}

TEST(PerftestLink, AClientSpeaksFirstAndTakesTheSmallerMtu) {
  FarEnd wire(PerftestRole::kClient);
  std::thread perftest([&] {
    const std::string version = wire.take(16);
    EXPECT_EQ(version.substr(0, 5), std::string("6.06\0", 5));
    wire.put(padded("6.29"));
    EXPECT_EQ(wire.take(4).size(), 4u);
    wire.put(std::string("\0\1\0\0", 4));  // 64 KiB
    EXPECT_EQ(wire.take(4), std::string("\0\0\0\x40", 4));
    wire.put(std::string("\0\0\0\x40", 4));
    EXPECT_EQ(wire.take(2), std::string("5\0", 2));
    wire.put(std::string("3\0", 2));
    EXPECT_EQ(wire.take(108), encode_perftest_address(address()));
    wire.put(encode_perftest_address(address()));
  });
  ASSERT_TRUE(wire.link->greet());
  wire.link->agree(4096);
  EXPECT_EQ(wire.link->version(), "6.29");
  EXPECT_EQ(wire.link->page_bytes(), 65536u);
  EXPECT_EQ(wire.link->mtu_bytes(), 1024);
  EXPECT_EQ(wire.link->exchange(address(), "addresses").qpn, 0xabcdefu);
  perftest.join();
}

TEST(PerftestLink, FiguresAreBigEndian) {
  FarEnd wire(PerftestRole::kServer);
  wire.put(std::string("\0\0\0\0\0\1\0\0", 8) + std::string("\0\0\0\0\0\0\x13\x88", 8) +
           std::string("\x40\xf8\x6a\0\0\0\0\0", 8) + std::string("\x3f\xf0\0\0\0\0\0\0", 8) +
           std::string("\x40\0\0\0\0\0\0\0", 8));
  const PerftestReport report = wire.link->exchange(PerftestReport{8, 9, 1, 2, 3});
  EXPECT_EQ(report.size_bytes, 65536u);
  EXPECT_EQ(report.iterations, 5000u);
  EXPECT_EQ(report.peak, 100000);
  EXPECT_EQ(report.average, 1);
  EXPECT_EQ(report.mpps, 2);
  EXPECT_EQ(wire.take(40).substr(16, 8), std::string("\x3f\xf0\0\0\0\0\0\0", 8));
}

TEST(PerftestLink, AFrameOfGdrperfIsNoPerftest) {
  FarEnd wire(PerftestRole::kClient);
  wire.put(std::string("\0\0\1\0{\"type\":\"hello\",", 20));
  EXPECT_FALSE(wire.link->greet());
}

TEST(PerftestLink, HangUpsAndGarbageAreToldInWords) {
  {
    FarEnd wire(PerftestRole::kClient);
    wire.put(padded("6.06"));
    ASSERT_TRUE(wire.link->greet());
    wire.raw.reset();
    const Error error = failure_of([&] { wire.link->agree(1024); });
    EXPECT_THAT(error.what(), HasSubstr("server far:1: perftest 6.06"));
    EXPECT_EQ(error.code(), ExitCode::kPeer);
    EXPECT_THAT(failure_of([&] { wire.link->has_spoken(); }).what(), HasSubstr("hung up before the end of the run"));
  }
  {
    FarEnd wire(PerftestRole::kClient);
    wire.put(padded("6.06") + std::string("\0\0\0\7", 4));
    ASSERT_TRUE(wire.link->greet());
    EXPECT_THAT(failure_of([&] { wire.link->agree(1024); }).what(), HasSubstr("gave 7 as its page size"));
  }
  {
    FarEnd wire(PerftestRole::kServer);
    wire.put(std::string(200, 'z'));
    EXPECT_THAT(failure_of([&] { wire.link->exchange(address(), "addresses"); }).what(), HasSubstr("address of a QP"));
  }
}

TEST(PerftestLink, AStopEndsAWait) {
  const std::atomic<bool> stop = true;
  FarEnd wire(PerftestRole::kServer, &stop);
  EXPECT_THAT(failure_of([&] { wire.link->greet(); }).what(), HasSubstr("stopped"));
}

TEST(PerftestLink, TellsWhoAClientIsByItsFirstWords) {
  const auto words = [](std::string_view bytes) {
    FarEnd wire(PerftestRole::kServer);
    wire.put(bytes);
    return await_first_words(*wire.channel, 5s);
  };
  EXPECT_EQ(words(padded("6.29")), FirstWords::kPerftest);
  EXPECT_EQ(words(encode_perftest_version()), FirstWords::kGdrperfAsPerftest);
  EXPECT_EQ(words(std::string("\0\0\1\0", 4)), FirstWords::kGdrperf);
  EXPECT_EQ(words("GET / HTTP/1.1\r\n"), FirstWords::kGdrperf);
}

}  // namespace
}  // namespace gdrperf::proto
