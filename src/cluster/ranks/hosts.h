#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cluster/ranks/gate.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/engine/account.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/networks.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// A server that is asked to be a rank.
struct HostPort {
  std::string host;
  int port = 0;
};

/// "n1,n2:19000,[fd00::1]:19000" of --hosts. Throws usage_error.
std::vector<HostPort> parse_hosts(const std::string& text, int default_port);

/// Asks each of `hosts`, rank 1 first, all at once, to be a rank, and hands them to `put`, one at a time. A host that
/// does not agree comes with a card that gives the reason.
void invite_hosts(const std::vector<HostPort>& hosts, const proto::Token& token, std::chrono::nanoseconds patience,
                  std::chrono::nanoseconds deadline, const std::function<void(Arrival)>& put);

/// What a server that is made a rank goes by.
struct RankTerms {
  proto::Token token;
  proto::Networks allow;                 ///< where ranks may be that it becomes a client of
  std::chrono::nanoseconds max_time{0};  ///< of one run; 0: no limit
  engine::Account* account = nullptr;    ///< of the server. Borrowed
};

/// The other end: this server as a rank until the client ends it. Throws Error.
void serve_as_rank(proto::Channel& channel, const proto::Admission& admission, const proto::Cluster& first,
                   const RankTerms& terms);

}  // namespace gdrperf::app
