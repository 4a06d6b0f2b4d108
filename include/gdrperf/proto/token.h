#pragma once

#include <string>
#include <string_view>

#include "gdrperf/proto/messages.h"

namespace gdrperf::proto {

/// A secret that the two ends share. It is never sent: each end proves by HMAC-SHA-256 (RFC 2104) over
/// both ends' nonces that it has it, so that what is overheard proves nothing the next time. It says who
/// may use a server; it neither hides nor guards what is said afterwards (SECURITY.md).
class Token {
 public:
  static constexpr std::size_t kMinBytes = 16;
  static constexpr std::size_t kMaxBytes = 4096;

  /// No secret: anyone may come.
  Token() = default;
  /// `text` without the white space at its end; `where` names its origin in errors. Throws
  /// Error(kUsage) when it is too short or too long, Error(kEnvironment) when this gdrperf was built
  /// without nettle.
  Token(std::string_view text, const std::string& where);

  explicit operator bool() const { return !secret_.empty(); }
  enum class End { kClient, kServer };
  /// The proof that `end` of a connection with these nonces has the secret: 64 hex digits.
  std::string proof(End end, const Hello& client, const Hello& server) const;

 private:
  std::string secret_;
};

/// Reads the token of `file`; of GDRPERF_TOKEN_FILE, or GDRPERF_TOKEN itself, where `file` is empty; none
/// where those are not set. Throws as Token, and Error(kUsage) for a file that cannot be read.
Token read_token(const std::string& file);

/// 64 random hex digits. Throws Error(kEnvironment).
std::string new_nonce();

}  // namespace gdrperf::proto
