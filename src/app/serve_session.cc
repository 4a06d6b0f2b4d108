#include "gdrperf/app/serve_session.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/engine/session.h"

namespace gdrperf::app {
namespace {

// The next message, or nothing when the server is to stop.
std::optional<proto::Message> next_message(proto::Channel& channel, const StopSignal& stop) {
  while (!stop.triggered()) {
    if (auto message = channel.try_receive()) return message;
    pollfd entries[] = {{channel.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    if (::poll(entries, std::size(entries), -1) < 0 && errno != EINTR) {
      throw call_error("poll", errno);
    }
  }
  return std::nullopt;
}

void say_stopped(proto::Channel& channel) {
  channel.send(proto::Failure{static_cast<int>(ExitCode::kPeer), "the server was stopped",
                              "start it again and repeat the run"});
}

// "client 10.0.0.2:4000: write_bw 64 KiB: ..."; the peer once, also where it is
// what failed.
std::string failure_text(const std::string& peer, const TestSpec& spec, std::string_view what) {
  const std::string prefix = peer + ": ";
  if (what.starts_with(prefix)) what.remove_prefix(prefix.size());
  return fmt::format("{}{} {}: {}", prefix, to_string(spec.test), format_size(spec.size_bytes),
                     what);
}

// Refuses what no engine could run, then hands over.
void serve_one(proto::Channel& channel, const proto::RunRequest& request, const StopSignal& stop) {
  try {
    validate(request.spec);
  } catch (const Error& error) {
    channel.send(proto::Reject{static_cast<int>(error.code()), error.what(), error.hint()});
    throw;
  }
  try {
    engine::serve_run(channel, request, stop.flag());
  } catch (const std::bad_alloc&) {
    const Error error(ExitCode::kEnvironment, "out of memory",
                      "use a smaller size, depth or number of QPs");
    channel.send(proto::Failure{static_cast<int>(error.code()), error.what(), error.hint()});
    throw error;
  }
}

}  // namespace

SessionResult serve_session(proto::Channel& channel, const StopSignal& stop, const Log& log) {
  SessionResult result;
  try {
    while (true) {
      const auto message = next_message(channel, stop);
      if (!message) {
        say_stopped(channel);
        return result;
      }
      if (std::holds_alternative<proto::Bye>(*message)) return result;
      // What else may still come belongs to a run that has failed here.
      const auto* request = std::get_if<proto::RunRequest>(&*message);
      if (request == nullptr) continue;
      ++result.runs;
      try {
        serve_one(channel, *request, stop);
      } catch (const Error& error) {
        ++result.failed;
        result.worst = std::max(result.worst, error.code());
        log(failure_text(channel.peer(), request->spec, error.what()));
      }
    }
  } catch (const Error& error) {
    // Nobody is there to be told.
    result.hung_up = true;
    if (result.failed == 0 && !stop.triggered()) log(error.what());
  }
  return result;
}

}  // namespace gdrperf::app
