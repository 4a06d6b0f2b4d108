// Admission: the shared secret and the networks.
#include "../../failure_of.h"
#include "gdrperf/proto/networks.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/token.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::proto {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::optional<Token> token(const std::string& text) {
  try {
    return Token(text, "here");
  } catch (const Error& error) {
    if (error.code() == ExitCode::kEnvironment) return std::nullopt;  // built without nettle
    throw;
  }
}

#define NEED_TOKENS \
  if (!token("0123456789abcdef")) GTEST_SKIP() << "built without nettle"

struct Ends {
  std::string client = "let in";
  std::string server = "let in";
};

// Both ends' handshake over a socket pair.
Ends shake(const Token& client_token, const Token& server_token) {
  auto [client, server] = local_channel_pair();
  const auto hello_of = [](const Token& token) {
    Hello hello = own_hello();
    hello.token = static_cast<bool>(token);
    return hello;
  };
  const Hello client_hello = hello_of(client_token);
  const Hello server_hello = hello_of(server_token);
  Ends ends;
  std::thread other([&, &server = server] {
    try {
      std::ignore = prove_as_server(server, server_token, server_hello, client_hello);
    } catch (const Error& error) {
      ends.server = error.what();
    }
    // A client that hangs up first is an error of its own; one that waits learns why not.
  });
  try {
    std::ignore = prove_as_client(client, client_token, client_hello, server_hello);
  } catch (const Error& error) {
    ends.client = error.what();
  }
  other.join();
  return ends;
}

TEST(Token, LetsInWhoHasIt) {
  NEED_TOKENS;
  const Ends ends = shake(*token("0123456789abcdef\n"), *token("0123456789abcdef"));
  EXPECT_EQ(ends.client, "let in");
  EXPECT_EQ(ends.server, "let in");
  EXPECT_EQ(shake({}, {}).client, "let in");
}

TEST(Token, KeepsOutWhoHasAnotherOrNone) {
  NEED_TOKENS;
  const Token mine = *token("0123456789abcdef");
  Ends ends = shake(*token("0123456789abcdeF"), mine);
  EXPECT_THAT(ends.client, HasSubstr("the client's token is not the server's"));
  EXPECT_THAT(ends.server, HasSubstr("the client's token is not the server's"));
  ends = shake({}, mine);
  EXPECT_THAT(ends.client, HasSubstr("serves only clients that have its token"));
  EXPECT_THAT(ends.server, HasSubstr("serves only clients that have its token"));
  EXPECT_THAT(shake(mine, {}).client, HasSubstr("has no token, so it cannot prove"));
}

TEST(Token, ProvesByHmacSha256OfBothNonces) {
  NEED_TOKENS;
  const Token mine = *token("0123456789abcdef");
  Hello client;
  Hello server;
  client.nonce = std::string(64, 'a');
  server.nonce = std::string(64, 'b');
  // printf 'gdrperf token 1 client aaa... bbb...' | openssl dgst -sha256 -hmac 0123456789abcdef
  EXPECT_EQ(mine.proof(Token::End::kClient, client, server),
            "715432c8550d14f966e795e485a68e8aaf698680dfef7c3ce5e084abf70ceddd");
  EXPECT_NE(mine.proof(Token::End::kClient, client, server), mine.proof(Token::End::kServer, client, server));
  const std::string before = mine.proof(Token::End::kClient, client, server);
  server.nonce.back() = 'c';
  EXPECT_NE(mine.proof(Token::End::kClient, client, server), before);
}

TEST(Token, AnEchoOfOurNonceProvesNothing) {
  NEED_TOKENS;
  const Token mine = *token("0123456789abcdef");
  auto [client, server] = local_channel_pair();
  Hello hello = own_hello();
  hello.token = true;
  EXPECT_THAT(failure_of([&, &server = server] { std::ignore = prove_as_server(server, mine, hello, hello); }).what(),
              HasSubstr("no proper nonce"));
}

TEST(Token, ShortOnesAndMissingFilesAreRefused) {
  EXPECT_THAT(failure_of([] { Token("short", "--token x"); }).what(), HasSubstr("--token x: a token has 16"));
  const Error error = failure_of([] { read_token("/nonexistent/token"); });
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("--token /nonexistent/token"));
}

TEST(Token, ComesFromTheEnvironmentWhereNoFileIsNamed) {
  NEED_TOKENS;
  ::unsetenv("GDRPERF_TOKEN_FILE");
  ::unsetenv("GDRPERF_TOKEN");
  EXPECT_FALSE(read_token(""));
  ::setenv("GDRPERF_TOKEN", "0123456789abcdef", 1);
  EXPECT_TRUE(read_token(""));
  ::setenv("GDRPERF_TOKEN_FILE", "/nonexistent/token", 1);
  EXPECT_THAT(failure_of([] { read_token(""); }).what(), HasSubstr("GDRPERF_TOKEN_FILE=/nonexistent/token"));
  ::unsetenv("GDRPERF_TOKEN_FILE");
  ::unsetenv("GDRPERF_TOKEN");
}

TEST(Networks, HoldTheirAddresses) {
  EXPECT_TRUE(Networks().hold("192.0.2.1"));
  const Networks some = Networks::parse("10.0.0.0/8,192.168.1.5,172.16.0.0/12,fd00::/8,::1", "--allow");
  for (const char* address : {"10.255.0.1", "192.168.1.5", "172.31.255.255", "fd12::1", "::1", "::ffff:10.1.1.1"}) {
    EXPECT_TRUE(some.hold(address)) << address;
  }
  for (const char* address : {"11.0.0.1", "192.168.1.4", "172.32.0.0", "fe80::1", "::2", "127.0.0.1", "x"}) {
    EXPECT_FALSE(some.hold(address)) << address;
  }
  EXPECT_TRUE(Networks::parse("0.0.0.0/0", "--allow").hold("203.0.113.9"));
  EXPECT_FALSE(Networks::parse("0.0.0.0/0", "--allow").hold("2001:db8::1"));
}

TEST(Networks, WhatIsNoneIsNamed) {
  for (const char* text :
       {"", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/", "10.0.0.0/8,", "host", "1.2.3.4/8x"}) {
    const Error error = failure_of([&] { Networks::parse(text, "--allow"); });
    EXPECT_EQ(error.code(), ExitCode::kUsage) << text;
    EXPECT_THAT(error.what(), HasSubstr("--allow '")) << text;
  }
}

}  // namespace
}  // namespace gdrperf::proto
