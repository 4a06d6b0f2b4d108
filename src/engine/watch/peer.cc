#include "engine/watch/peer.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPollInterval{5};
/// Short: time asleep looks like standing still (StandstillWatch).
constexpr milliseconds kSlice{20};
/// How long a failed work request waits for the peer's explanation.
constexpr milliseconds kExplanation{500};

}  // namespace

void Peer::begin_run(Limits limits) {
  running_ = true;
  limits_ = std::move(limits);
  run_start_ = steady_clock::now();
  in_company_ = Patience(limits_.no_progress);
  at_work_.restart();
}

void Peer::check_time() const {
  if (limits_.max_time.count() == 0 || steady_clock::now() - run_start_ <= limits_.max_time) return;
  throw peer_error(fmt::format("the run took longer than the {} s that this server allows",
                               plain_digits(std::chrono::duration<double>(limits_.max_time).count())),
                   fmt::format("make it shorter ({}, {}), or raise {} of 'gdrperf serve'",
                               stop_flag<&StopRule::duration>(), stop_flag<&StopRule::iterations>(), flags::kMaxTime));
}

/// A heartbeat comes from a thread of its own: it goes on where the run does not.
void Peer::check_progress() {
  if (!limits_.others_wait) return;
  if (const std::uint64_t steps = channel_.peers_steps(); steps != steps_) {
    steps_ = steps;
    in_company_.restart();
    at_work_.restart();
  }
  if (!channel_.peers_work().empty()) in_company_.restart();
  const bool late = channel_.peers_work().empty() ? in_company_.over() : at_work_.over();
  if (!late || !limits_.others_wait()) return;
  const Patience& limit = channel_.peers_work().empty() ? in_company_ : at_work_;
  throw NoProgress(peer_error(fmt::format("{}: its run made no progress for {} s while others wait", channel_.peer(),
                                          plain_digits(std::chrono::duration<double>(limit.limit()).count())),
                              "the client's process hangs, or its program only sends heartbeats: repeat the run"));
}

std::optional<proto::Message> Peer::poll() {
  watch_.look();
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) {
    throw Error(ExitCode::kPeer, "the run was cancelled: this process is shutting down");
  }
  if (running_) {
    channel_.note_step();
    check_time();
  }
  if (port_ != nullptr) port_->look();
  if (put_back_) return std::exchange(put_back_, std::nullopt);
  if (interpreter_) return interpreter_();
  std::optional<proto::Message> message = channel_.try_receive();
  if (message) {
    failed_ = std::holds_alternative<proto::Failure>(*message) || std::holds_alternative<proto::Reject>(*message);
    if (failed_ && port_ != nullptr) port_->require_up();
    proto::throw_if_failure(channel_, *message);
  } else if (running_) {
    channel_.check_taken();
    check_progress();
  }
  return message;
}

std::optional<proto::Message> Peer::poll_now_and_then() {
  const auto now = steady_clock::now();
  // One put back was taken by somebody it was not for: who looks next gets it, else the first
  // to look every 5 ms could always be the same one.
  if (now < next_poll_ && !put_back_) return std::nullopt;
  next_poll_ = now + kPollInterval;
  return poll();
}

std::optional<proto::Message> Peer::poll_or_rest() {
  std::optional<proto::Message> message = poll();
  if (message) return message;
  pollfd readable{channel_.fd(), POLLIN, 0};
  ::poll(&readable, 1, static_cast<int>(kSlice.count()));
  return poll();
}

proto::Message Peer::wait(std::chrono::nanoseconds timeout, const char* awaited) {
  Patience patience(timeout);
  while (true) {
    if (std::optional<proto::Message> message = poll()) return std::move(*message);
    const bool over = patience.over();
    const auto left = std::chrono::ceil<milliseconds>(patience.left());
    if (over) {
      throw peer_error(fmt::format("{}: no {} within {} s", channel_.peer(), awaited,
                                   std::chrono::duration<double>(timeout).count()));
    }
    pollfd readable{channel_.fd(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(std::min(left, kSlice).count()));
  }
}

proto::Message Peer::answer(const char* awaited) {
  Patience in_all(kWorkTimeout);
  Patience idle(kAnswerTimeout);
  while (true) {
    if (std::optional<proto::Message> message = poll()) return std::move(*message);
    const Outside& work = channel_.peers_work();
    if (!work.empty()) idle.restart();
    // A peer that is not heard is told as silent, soon.
    if (idle.over() && channel_.heard_lately()) {
      throw peer_error(fmt::format("{}: no '{}' for {} s, though it is up", channel_.peer(), awaited,
                                   plain_digits(std::chrono::duration<double>(kAnswerTimeout).count(), 3)));
    }
    if (in_all.over()) {
      throw peer_error(fmt::format("{}: no '{}' for {} s: it is {}", channel_.peer(), awaited, kWorkTimeout.count(),
                                   printable(work)));
    }
    pollfd readable{channel_.fd(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(kSlice.count()));
  }
}

void Peer::throw_fault(const Fault& fault, const std::string& device, const char* what) {
  if (port_ != nullptr) port_->require_up();
  const auto deadline = steady_clock::now() + kExplanation;
  // The peer's own words, or its silence, say more than our completion status.
  while (steady_clock::now() < deadline) {
    poll();
    pollfd readable{channel_.fd(), POLLIN, 0};
    ::poll(&readable, 1, 50);
  }
  if (fault.post_errno != 0) throw call_error(fault.call, fault.post_errno, device);
  const char* preload = std::getenv("LD_PRELOAD");
  const bool softnic = preload != nullptr && std::strstr(preload, "libgdrperf_softnic") != nullptr;
  if (softnic && fault.status == IBV_WC_RETRY_EXC_ERR) {
    throw peer_error(
        fmt::format("{}: {} failed: the peer's software device does not let this one in, or has gone", device, what),
        "it reaches processes of its own user on its own host only: run client and server as one user, or let each "
        "allow the other with peers= in SOFTNIC (softnic/docs/softnic.md)");
  }
  throw peer_error(fmt::format("{}: {} failed: {} (vendor error 0x{:x})", device, what,
                               verbs::describe(fault.status), fault.vendor_error));
}

void look_at(Peer& peer) {
  if (auto message = peer.poll()) peer.put_back(std::move(*message));
}

void StallWatch::check(std::uint64_t progress) {
  if (progress != progress_) {
    progress_ = progress;
    patience_.restart();
  } else if (patience_.over() && !acknowledged(transport_)) {
    throw peer_error(fmt::format("{}: nothing came for {} s: a message over {} was lost, or all of them are", device_,
                                 plain_digits(std::chrono::duration<double>(limit_).count(), 3), to_string(transport_)),
                     fmt::format("nothing is sent again there: {} rc does so", flag<&TestSpec::transport>()));
  } else if (patience_.over()) {
    throw peer_error(fmt::format("{}: nothing completed for {} s, though client and server are up", device_,
                                 plain_digits(std::chrono::duration<double>(limit_).count(), 3)),
                     fmt::format("the network between the two ports may drop RoCE traffic: check the GIDs ('gdrperf "
                                 "devices'), the path MTU ({}) and flow control",
                                 flag<&TestSpec::mtu_bytes>()));
  }
}

}  // namespace gdrperf::engine
