#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/compat/bits.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/perftest/link.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/perftest_peer.h"
#include "gdrperf/proto/reason.h"

namespace gdrperf::proto {
namespace {

using std::chrono::milliseconds;

/// perftest rests for a second after it has connected, and registers memory between two steps.
constexpr milliseconds kPatience{30'000};
constexpr milliseconds kGreetingPatience{3500};
constexpr int kLookMs = 100;
constexpr int kCacheLine = 64;
constexpr std::size_t kIntBytes = 4;
constexpr std::size_t kLongBytes = 8;

std::string big_endian(std::uint64_t value, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[bytes - 1 - i] = static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::uint64_t from_big_endian(std::string_view text) {
  std::uint64_t value = 0;
  for (const char byte : text) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::string big_endian(double value) { return big_endian(bit_cast<std::uint64_t>(value), kLongBytes); }

double double_from(std::string_view text) { return bit_cast<double>(from_big_endian(text)); }

std::string alike() {
  return fmt::format(
      "client and server need the same test, {}, {} and {} or {}; perftest's own output may have the reason",
      flag<&TestSpec::size_bytes>(), flag<&TestSpec::qps>(), stop_flag<&StopRule::iterations>(),
      stop_flag<&StopRule::duration>());
}

}  // namespace

FirstWords await_first_words(const Channel& channel, milliseconds patience) {
  Patience left(patience);
  while (!left.over()) {
    pollfd entry{channel.fd(), POLLIN, 0};
    if (::poll(&entry, 1, kLookMs) <= 0) continue;
    char words[kPerftestVersionBytes] = {};
    const ssize_t came = ::recv(channel.fd(), words, sizeof words, MSG_PEEK | MSG_DONTWAIT);
    if (came <= 0 || words[0] == '\0') return FirstWords::kGdrperf;
    const std::string_view text(words, static_cast<std::size_t>(came));
    if (text.substr(std::min(kPerftestSpoken.size() + 1, text.size())).starts_with(kPerftestMarker))
      return FirstWords::kGdrperfAsPerftest;
    // Whatever else it is, gdrperf's greeting tells.
    return perftest_version(text).empty() ? FirstWords::kGdrperf : FirstWords::kPerftest;
  }
  return FirstWords::kGdrperf;
}

PerftestLink::PerftestLink(const Channel& channel, const Admission& /*admission*/, PerftestRole role,
                           const std::atomic<bool>* stop)
    : fd_(channel.fd()), peer_(channel.peer()), role_(role), stop_(stop) {}

bool PerftestLink::greet() {
  const std::string theirs = swap(encode_perftest_version(), "version");
  // A frame's length, of less than 16 MiB.
  if (theirs.front() == '\0') return false;
  try {
    version_ = decode_perftest_version(theirs);
  } catch (const Error& error) {
    throw error.in(peer_);
  }
  return true;
}

void PerftestLink::agree(int own_mtu_bytes) {
  const auto own_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t kMostPage = 1u << 20;
  const std::uint64_t page = from_big_endian(swap(big_endian(own_page, kIntBytes), "page size"));
  if (!std::has_single_bit(page) || page > kMostPage)
    throw peer_error(fmt::format("{}: perftest {} gave {} as its page size", peer_, version_, page));
  page_bytes_ = std::max(page, own_page);
  swap(big_endian(kCacheLine, kIntBytes), "cache line");
  const int mtu = decode_perftest_mtu(swap(encode_perftest_mtu(own_mtu_bytes), "MTU"));
  mtu_bytes_ = mtu == 0 ? own_mtu_bytes : std::min(mtu, own_mtu_bytes);
}

PerftestAddress PerftestLink::exchange(const std::function<PerftestAddress(const PerftestAddress*)>& own,
                                       const char* step) {
  if (role_ == PerftestRole::kServer) {
    const PerftestAddress theirs = receive_address(step);
    send(encode_perftest_address(own(&theirs)));
    return theirs;
  }
  send(encode_perftest_address(own(nullptr)));
  return receive_address(step);
}

PerftestAddress PerftestLink::exchange(const PerftestAddress& own, const char* step) {
  return exchange([&](const PerftestAddress*) { return own; }, step);
}

PerftestReport PerftestLink::exchange(const PerftestReport& own) {
  constexpr const char* kStep = "figures";
  PerftestReport theirs;
  theirs.size_bytes = from_big_endian(swap(big_endian(own.size_bytes, kLongBytes), kStep));
  theirs.iterations = from_big_endian(swap(big_endian(own.iterations, kLongBytes), kStep));
  theirs.peak = double_from(swap(big_endian(own.peak), kStep));
  theirs.average = double_from(swap(big_endian(own.average), kStep));
  theirs.mpps = double_from(swap(big_endian(own.mpps), kStep));
  return theirs;
}

bool PerftestLink::has_left() const {
  char byte = 0;
  const ssize_t came = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool PerftestLink::has_spoken() const {
  if (has_left()) gone("end of the run");
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool PerftestLink::await_end(milliseconds patience) {
  Patience left(patience);
  char rest[64];
  while (!left.over()) {
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, kLookMs) <= 0) continue;
    if (::recv(fd_, rest, sizeof rest, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

/// One write for each step: perftest takes a step by a single read().
void PerftestLink::send(std::string_view bytes) const {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return;
  if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
    throw peer_error(fmt::format("{}: {}", peer_, reason_of(errno)));
  gone("next step");
}

std::string PerftestLink::receive(std::size_t bytes, const char* step) {
  const milliseconds patience = version_.empty() ? kGreetingPatience : kPatience;
  Patience left(patience);
  std::string text;
  while (text.size() < bytes) {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed))
      throw peer_error("stopped while waiting for perftest");
    pollfd entry{fd_, POLLIN, 0};
    const int ready = ::poll(&entry, 1, kLookMs);
    if (ready <= 0 && left.over()) {
      const auto seconds = std::chrono::duration<double>(patience).count();
      if (version_.empty())
        throw peer_error(fmt::format("{}: no answer for {:g} s", peer_, seconds),
                         "neither 'gdrperf serve' nor perftest answers there");
      throw peer_error(fmt::format("{}: perftest {} sent nothing for {:g} s; gdrperf waited for its {}", peer_,
                                   version_, seconds, step),
                       alike());
    }
    if (ready <= 0) continue;
    char some[128];
    const ssize_t came = ::recv(fd_, some, std::min(sizeof some, bytes - text.size()), MSG_DONTWAIT);
    if (came == 0 || (came < 0 && errno != EAGAIN && errno != EINTR)) gone(step);
    if (came > 0) text.append(some, static_cast<std::size_t>(came));
  }
  return text;
}

std::string PerftestLink::swap(const std::string& own, const char* step) {
  if (role_ == PerftestRole::kClient) send(own);
  std::string theirs = receive(own.size(), step);
  if (role_ == PerftestRole::kServer) send(own);
  return theirs;
}

PerftestAddress PerftestLink::receive_address(const char* step) {
  std::string bytes = receive(kPerftestAddressBytes, step);
  if (has_perftest_gid(bytes)) bytes += receive(kPerftestGidBytes, step);
  try {
    return decode_perftest_address(bytes);
  } catch (const Error& error) {
    throw peer_error(fmt::format("{}: perftest {}: {}", peer_, version_, error.what()), alike());
  }
}

void PerftestLink::gone(const char* step) const {
  if (version_.empty()) throw peer_error(fmt::format("{}: closed the connection", peer_));
  throw peer_error(fmt::format("{}: perftest {} hung up before the {}", peer_, version_, step), alike());
}

}  // namespace gdrperf::proto
