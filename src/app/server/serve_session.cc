#include "app/server/serve_session.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/patience.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/session.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

/// Between two looks at the channel.
constexpr int kLookMs = 200;

/// Message for the client, or the reason why a silent client is dropped.
class Waiting {
 public:
  Waiting(proto::Channel& channel, const StopSignal& stop, const SessionTerms& terms)
      : channel_(channel), stop_(stop), terms_(terms), alone_(terms.idle_timeout) {}

  /// The next message, or nothing when the server is to stop. Throws peer_error when the client has asked
  /// for no run for too long.
  std::optional<proto::Message> next() {
    while (!stop_.triggered()) {
      if (auto message = channel_.try_receive()) return message;
      pollfd entries[] = {{channel_.fd(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
      if (::poll(entries, std::size(entries), kLookMs) < 0 && errno != EINTR) {
        throw call_error("poll", errno);
      }
      check_idle();
    }
    return std::nullopt;
  }

 private:
  void check_idle() {
    const bool late = alone_.over() && terms_.idle_timeout.count() > 0;
    const bool late_for_others = in_company_.over() && terms_.others_wait && terms_.others_wait();
    if (!late && !late_for_others) return;
    const auto limit = std::chrono::duration<double>(late_for_others ? in_company_.limit() : alone_.limit());
    const Error error =
        peer_error(fmt::format("{}: asked for no run for {} s{}", channel_.peer(), plain_digits(limit.count()),
                               late_for_others ? " while others wait" : ""),
                   "connect again for further runs");
    throw error;
  }

  proto::Channel& channel_;
  const StopSignal& stop_;
  const SessionTerms& terms_;
  Patience alone_;
  Patience in_company_{SessionTerms::kIdleWhileOthersWait};
};

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
void serve_one(proto::Channel& channel, const proto::RunRequest& request, const StopSignal& stop,
               const engine::Terms& terms) {
  try {
    validate(request.spec);
  } catch (const Error& error) {
    channel.send(proto::Reject{static_cast<int>(error.code()), error.what(), error.hint()});
    throw;
  }
  try {
    engine::serve_run(channel, request, stop.flag(), terms);
  } catch (const std::bad_alloc&) {
    const Error error = out_of_memory();
    channel.send(proto::Failure{static_cast<int>(error.code()), error.what(), error.hint()});
    throw error;
  }
}

/// The next request for a run; nothing after Bye or when the server is to stop. `failed`: the client's run has
/// failed after it was over here, or failed here, too.
std::optional<proto::RunRequest> next_request(proto::Channel& channel, const proto::Admission& admission,
                                              const StopSignal& stop, const SessionTerms& terms,
                                              const std::function<void(const proto::Failure&)>& failed) {
  Waiting waiting(channel, stop, terms);
  while (true) {
    auto message = waiting.next();
    if (!message) say_stopped(channel);
    if (!message || std::holds_alternative<proto::Bye>(*message)) return std::nullopt;
    if (auto* request = std::get_if<proto::RunRequest>(&*message)) return std::move(*request);
    if (const auto* failure = std::get_if<proto::Failure>(&*message)) failed(*failure);
    if (const auto* result = std::get_if<proto::Result>(&*message); result != nullptr && terms.on_result)
      terms.on_result(*result);
    if (const auto* cluster = std::get_if<proto::Cluster>(&*message)) {
      if (!terms.as_rank)
        throw Error(ExitCode::kEnvironment, "this server is no rank of clusters",
                    "start it with 'gdrperf serve --cluster'");
      terms.as_rank(channel, admission, *cluster);
      return std::nullopt;
    }
    // Later messages belong to a run that has failed here.
  }
}

}  // namespace

SessionResult serve_session(proto::Channel& channel, const proto::Admission& admission, const StopSignal& stop,
                            const Log& log, const SessionTerms& terms) {
  SessionResult result;
  std::optional<proto::RunRequest> request;
  bool told = true;
  const auto tell = [&](std::string_view what) {
    if (!std::exchange(told, true)) log(failure_text(channel.peer(), request->spec, what));
  };
  const auto failed_there = [&](const proto::Failure& failure) {
    if (told) return;
    ++result.failed;
    result.worst = std::max(result.worst, ExitCode::kPeer);
    tell(printable(failure.reason));
  };
  try {
    while ((request = next_request(channel, admission, stop, terms, failed_there))) {
      ++result.runs;
      told = false;
      engine::Terms run = terms.run;
      run.others_wait = terms.others_wait;
      run.on_failure = [&](const Error& error) { tell(error.what()); };
      const auto failed_here = [&](const Error& error) {
        ++result.failed;
        result.worst = std::max(result.worst, error.code());
        run.on_failure(error);
      };
      try {
        serve_one(channel, *request, stop, run);
      } catch (const engine::NoProgress& error) {
        failed_here(error);
        return result;
      } catch (const Error& error) {
        failed_here(error);
      }
    }
  } catch (const Error& error) {
    // Nobody may be there to be told; one that was stopped reads it when it goes on.
    try {
      channel.send(proto::Failure{static_cast<int>(error.code()), error.what(), error.hint()});
    } catch (const Error&) {
    }
    result.hung_up = true;
    if (result.failed == 0 && !stop.triggered()) log(error.what());
  }
  return result;
}

}  // namespace gdrperf::app
