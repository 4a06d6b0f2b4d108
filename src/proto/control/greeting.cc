#include <unistd.h>

#include <fmt/format.h>

#include "gdrperf/base/version.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::proto {

Hello server_hello() {
  Hello hello;
  hello.tool_version = tool_version();
  hello.nonce = new_nonce();
  return hello;
}

Hello own_hello() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  Hello hello = server_hello();
  hello.host = name;
  return hello;
}

Hello exchange_hello(Channel& channel, std::chrono::nanoseconds timeout, const Hello& own) {
  channel.send(own);
  Hello peer = expect<Hello>(channel, timeout);
  if (peer.major != own.major) {
    throw peer_error(
        fmt::format("{}: runs gdrperf {} (protocol {}.{}), this host runs gdrperf {} (protocol {}.{})",
                    channel.peer(), printable(peer.tool_version), peer.major, peer.minor,
                    printable(own.tool_version), own.major, own.minor),
        "install the same gdrperf on both hosts");
  }
  return peer;
}

}  // namespace gdrperf::proto
