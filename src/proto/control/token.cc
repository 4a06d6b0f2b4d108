#include "gdrperf/proto/token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#ifdef GDRPERF_NETTLE
#include <nettle/hmac.h>
#include <nettle/memops.h>
#endif

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/reason.h"

namespace gdrperf::proto {
namespace {

constexpr std::size_t kNonceBytes = 32;
constexpr std::chrono::seconds kProofTimeout{4};
std::string give_token() {
  return fmt::format(
      "give {} FILE (or GDRPERF_TOKEN_FILE, GDRPERF_TOKEN) with the secret that the server was started with",
      flags::kToken);
}

std::string hex(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

bool same(const std::string& one, const std::string& other) {
#ifdef GDRPERF_NETTLE
  // In constant time: how long it took must not tell how far a guess was right.
  return one.size() == other.size() && nettle_memeql_sec(one.data(), other.data(), one.size()) != 0;
#else
  return one == other;
#endif
}

// Nonces of any length would let one pair pass for another.
void check_nonces(const Channel& channel, const Hello& own, const Hello& peer) {
  const bool whole = peer.nonce.size() == 2 * kNonceBytes &&
                     peer.nonce.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!whole || peer.nonce == own.nonce) {
    throw peer_error(fmt::format("{}: its greeting has no proper nonce", channel.peer()));
  }
}

void refuse(Channel& channel, const std::string& reason) {
  channel.send(Failure{static_cast<int>(ExitCode::kPeer), reason, give_token()});
  throw peer_error(fmt::format("{}: {}", channel.peer(), reason));
}

}  // namespace

Token::Token(std::string_view text, const std::string& where)
    : secret_(text.substr(0, text.find_last_not_of(" \t\r\n") + 1)) {
  if (secret_.size() < kMinBytes || secret_.size() > kMaxBytes) {
    throw usage_error(fmt::format("{}: a token has {} to {} bytes, this one {}", where, kMinBytes, kMaxBytes,
                                  secret_.size()),
                      "make one with 'openssl rand -hex 32 > FILE' and give client and server the same");
  }
#ifndef GDRPERF_NETTLE
  throw Error(ExitCode::kEnvironment, fmt::format("{}: this gdrperf was built without nettle", where),
              "install nettle-dev and build again");
#endif
}

std::string Token::proof(End end, const Hello& client, const Hello& server) const {
#ifdef GDRPERF_NETTLE
  const std::string text =
      fmt::format("gdrperf token 1 {} {} {}", end == End::kClient ? "client" : "server", client.nonce, server.nonce);
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret_.size(), reinterpret_cast<const std::uint8_t*>(secret_.data()));
  hmac_sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return hex(digest.data(), digest.size());
#else
  static_cast<void>(end);
  return client.nonce + server.nonce;
#endif
}

Token read_token(const std::string& file) {
  std::string path = file;
  std::string where = fmt::format("{} {}", flags::kToken, file);
  if (path.empty()) {
    if (const char* named = std::getenv("GDRPERF_TOKEN_FILE"); named != nullptr && *named != '\0') {
      path = named;
      where = "GDRPERF_TOKEN_FILE=" + path;
    } else if (const char* text = std::getenv("GDRPERF_TOKEN"); text != nullptr && *text != '\0') {
      return Token(text, "GDRPERF_TOKEN");
    } else {
      return {};
    }
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(Token::kMaxBytes + 3, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in && !in.eof()) {
    throw usage_error(fmt::format("{}: cannot be read: {}", where, reason_of(errno)),
                      "name a file with the shared secret");
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return Token(text, where);
}

std::string new_nonce() {
  std::array<std::uint8_t, kNonceBytes> bytes;
  // Requests of up to 256 bytes are answered whole (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw call_error("getrandom", errno);
  }
  return hex(bytes.data(), bytes.size());
}

Admission prove_as_client(Channel& channel, const Token& token, const Hello& own, const Hello& server) {
  if (!token && !server.token) return Admission();
  if (!token) throw peer_error(channel.peer() + ": serves only clients that have its token", give_token());
  if (!server.token) {
    throw peer_error(channel.peer() + ": has no token, so it cannot prove that it is the server you mean",
                     fmt::format("start it with 'gdrperf serve {} FILE', or leave the token out here", flags::kToken));
  }
  check_nonces(channel, own, server);
  channel.send(Proof{token.proof(Token::End::kClient, own, server)});
  const auto proof = expect<Proof>(channel, kProofTimeout);
  if (!same(proof.hmac, token.proof(Token::End::kServer, own, server))) {
    throw peer_error(channel.peer() + ": does not have the token: it may be another server than you mean");
  }
  return Admission();
}

Admission prove_as_server(Channel& channel, const Token& token, const Hello& own, const Hello& client) {
  if (!token) return Admission();
  if (!client.token) refuse(channel, "this server serves only clients that have its token");
  check_nonces(channel, own, client);
  const auto proof = expect<Proof>(channel, kProofTimeout);
  if (!same(proof.hmac, token.proof(Token::End::kClient, client, own))) {
    refuse(channel, "the client's token is not the server's");
  }
  channel.send(Proof{token.proof(Token::End::kServer, client, own)});
  return Admission();
}

Admission admit_perftest(const Channel& channel, const Token& token) {
  if (token) {
    throw peer_error(
        channel.peer() + ": speaks as perftest, whose protocol cannot prove a token",
        fmt::format("use gdrperf on both hosts, or leave {} out (GDRPERF_TOKEN_FILE and GDRPERF_TOKEN, too)",
                    flags::kToken));
  }
  return Admission();
}

Admission admit_own_process() { return Admission(); }

}  // namespace gdrperf::proto
