#include "proto/control/channel_link.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <exception>
#include <utility>

#include <fmt/format.h>
#include "gdrperf/base/units.h"

namespace gdrperf::proto {

using std::chrono::nanoseconds;

std::string framed(const std::string& text) {
  std::string frame;
  frame.reserve(kHeaderBytes + text.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((text.size() >> shift) & 0xff);
  return frame + text;
}

std::string seconds_text(nanoseconds timeout) {
  return fmt::format("{} s", plain_digits(std::chrono::duration<double>(timeout).count(), 3));
}

namespace {
constexpr auto kBeatInterval = std::chrono::milliseconds(500);
}  // namespace

void Channel::Link::set_work(const std::string& what) {
  const MutexLock lock(sending);
  work = what;
  working = !what.empty();
}

void Channel::Link::expect(std::chrono::nanoseconds after) {
  const MutexLock lock(listening);
  silence = Patience(after);
}

void Channel::Link::heard() {
  const MutexLock lock(listening);
  silence.restart();
  unread = 0;
  told = false;
}

std::optional<nanoseconds> Channel::Link::silent() {
  const MutexLock lock(listening);
  return silence.over() ? std::optional(silence.limit()) : std::nullopt;
}

bool Channel::Link::heard_lately() {
  const MutexLock lock(listening);
  return silence.left() > silence.limit() / 2;
}

/// A socket that is full has a peer that does not read: it misses nothing.
void Channel::Link::beat() noexcept {
  try {
    const MutexLock lock(sending);
    const std::string frame = framed(encode(Alive{sent, taken, work, steps}));
    pollfd entry{socket.get(), POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0 || (entry.revents & POLLOUT) == 0) return;
    const ssize_t put = ::send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // Half a frame would garble all that follows.
    if (put > 0 && static_cast<std::size_t>(put) < frame.size()) ::shutdown(socket.get(), SHUT_RDWR);
  } catch (const std::exception&) {  // out of memory: the next beat may come through
  }
}

/// Bytes that nobody reads grow while the peer beats.
void Channel::Link::listen() noexcept {
  int count = 0;
  if (::ioctl(socket.get(), FIONREAD, &count) != 0) return;
  MutexLock quiet(listening);
  if (count > unread) {
    silence.restart();
    told = false;
  }
  unread = count;
  if (!silence.over() || !working || !tell || std::exchange(told, true)) return;
  const nanoseconds limit = silence.limit();
  quiet.unlock();
  try {
    MutexLock lock(sending);
    const std::string what = work;
    lock.unlock();
    tell(fmt::format("{}: nothing heard from it for {} while this host was {}", peer, seconds_text(limit), what));
  } catch (const std::exception&) {  // who works finds out when it is done
  }
}

void Channel::Link::run(const std::stop_token& stop) {
  std::unique_lock lock(pausing);
  while (!stop.stop_requested()) {
    beat();
    listen();
    pause.wait_for(lock, stop, kBeatInterval, [] { return false; });
  }
}

}  // namespace gdrperf::proto
