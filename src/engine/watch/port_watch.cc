#include "engine/watch/port_watch.h"

#include <fcntl.h>
#include <poll.h>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

using std::chrono::steady_clock;

/// Shorter than the other end waits for an explanation of what failed there (Peer::throw_fault).
constexpr std::chrono::milliseconds kDownFor{300};

}  // namespace

PortWatch::PortWatch(const verbs::Context& context, int port) : context_(context), port_(port) {
  const int fd = context.get()->async_fd;
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void PortWatch::take_events() {
  pollfd readable{context_.get()->async_fd, POLLIN, 0};
  ibv_async_event event{};
  while (::poll(&readable, 1, 0) > 0 && ::ibv_get_async_event(context_.get(), &event) == 0) {
    const bool own = event.element.port_num == port_;
    if (own && event.event_type == IBV_EVENT_PORT_ERR && !down_since_) down_since_ = steady_clock::now();
    if (own && event.event_type == IBV_EVENT_PORT_ACTIVE) down_since_.reset();
    ::ibv_ack_async_event(&event);
  }
}

void PortWatch::look() {
  take_events();
  if (down_since_ && steady_clock::now() - *down_since_ >= kDownFor) throw_down();
}

void PortWatch::require_up() {
  take_events();
  if (down_since_) throw_down();
}

void PortWatch::throw_down() const {
  const verbs::PortInfo port = verbs::query_port(context_, port_);
  throw Error(ExitCode::kEnvironment,
              fmt::format("{} port {} went down in the middle of the run{}", context_.name(), port_,
                          port.active() ? " and came back" : fmt::format(" and is {}", port.state_name())),
              verbs::state_hint(context_, port));
}

}  // namespace gdrperf::engine
