#pragma once

#include <string>
#include <vector>

#include "gdrperf/proto/messages.h"

/// One encoded message of each type, with every member in use.
inline std::vector<std::string> message_seeds() {
  using namespace gdrperf::proto;
  Endpoint endpoint;
  endpoint.device = "soft0";
  endpoint.gid_raw = "00000000000000000000ffff0a000001";
  endpoint.qps = {{17, 1}, {18, 2}};
  RunRequest request;
  request.gid_families = {"RoCE v2/IPv4"};
  request.spec.stop.iterations = 1000;
  Done done;
  done.series = {{1.5, 1}, {2.5, 2}};
  done.warnings = {"w"};
  std::vector<std::string> seeds;
  for (const Message& message :
       {Message(Hello{kProtocolMajor, 0, "0.1.0", "host", "ab", true}), Message(Busy{"x", 1, 1}), Message(Turn{}),
        Message(request), Message(Accept{endpoint, "{}"}), Message(Connect{endpoint}),
        Message(Reject{3, "r", "h"}), Message(Ready{}), Message(Start{}), Message(Ping{1}),
        Message(Pong{1, 2.5}), Message(Stop{{1, 2}}), Message(done), Message(Failure{5, "r", "h"}),
        Message(Bye{}), Message(Proof{"ff"}), Message(Enter{}), Message(Alive{0, 0})}) {
    seeds.push_back(encode(message));
  }
  return seeds;
}
