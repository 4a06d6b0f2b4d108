// A Channel whose peer writes arbitrary bytes, in pieces, and hangs up: it
// yields messages and then throws gdrperf::Error, soon.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "fuzz.h"
#include "gdrperf/proto/channel.h"
#include "proto_seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrperf;
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  proto::Channel channel(UniqueFd{fds[0]}, "peer");
  UniqueFd raw{fds[1]};
  std::size_t messages = 0;
  try {
    // The first byte says how the rest is cut up.
    const std::size_t step = size == 0 ? 1 : 1u + data[0];
    for (std::size_t at = 1; at < size; at += step) {
      const std::size_t piece = std::min(step, size - at);
      if (::send(raw.get(), data + at, piece, MSG_NOSIGNAL) != static_cast<ssize_t>(piece))
        std::abort();
      while (channel.try_receive()) ++messages;
    }
    raw.reset();
    while (true) {
      static_cast<void>(channel.receive(std::chrono::seconds(1)));
      ++messages;
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::kPeer) std::abort();
  }
  if (messages > size / 4) std::abort();
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  std::string all = "\x07";
  for (const std::string& text : message_seeds()) {
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8)
      frame += static_cast<char>((text.size() >> shift) & 0xff);
    frame += text;
    all += frame;
    seeds.push_back("\x40" + frame);
  }
  seeds.push_back(all);
  return seeds;
}
