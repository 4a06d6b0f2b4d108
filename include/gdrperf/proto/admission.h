#pragma once

#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::proto {

/// Evidence that a peer has passed the gate: it proved the token, or no token is wanted. Every service and every
/// dialect takes one, so none can be reached without passing here; only the functions below make one.
class Admission {
 public:
  Admission(Admission&&) noexcept = default;
  Admission& operator=(Admission&&) noexcept = default;
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

 private:
  Admission() = default;
  friend Admission prove_as_client(Channel&, const Token&, const Hello&, const Hello&);
  friend Admission prove_as_server(Channel&, const Token&, const Hello&, const Hello&);
  friend Admission admit_perftest(const Channel&, const Token&);
  friend Admission admit_own_process();
};

/// Called by each side after the hellos, `own.token` telling the peer whether there is one; frames stay short until
/// then. Throws peer_error, with what to do, where one side has a token that the other lacks, or another one. The
/// server has told the client by then.
[[nodiscard]] Admission prove_as_client(Channel& channel, const Token& token, const Hello& own, const Hello& server);
[[nodiscard]] Admission prove_as_server(Channel& channel, const Token& token, const Hello& own, const Hello& client);
/// perftest's protocol has no way to prove a token: throws peer_error where there is one, on either side.
[[nodiscard]] Admission admit_perftest(const Channel& channel, const Token& token);
/// Both sides are threads of this process.
[[nodiscard]] Admission admit_own_process();

}  // namespace gdrperf::proto
