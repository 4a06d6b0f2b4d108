#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/device.h"
#include "model/faults.h"
#include "model/link.h"
#include "shared/ring.h"

/// Requests of a QP whose device has a link model or faults: they lie in the
/// QP's slots until they are due, each with a stamp.
namespace gdrperf::softnic {

/// Messages up to this size are moved as a whole when they arrive.
inline constexpr std::uint64_t kWhole = 512;
/// Of a stream, where more than kFew messages are under way, up to kTallied are
/// not yet in the port's counters.
inline constexpr std::uint32_t kFew = 8;
inline constexpr std::uint64_t kTallied = 64;
/// How fast copying is taken to be when a piece has to be done by some time.
inline constexpr std::uint64_t kCopyBytesPerNs = 6;

inline const Clock& the_clock() noexcept {
  static const Clock& clock = Clock::get();
  return clock;
}
inline Instant instant() noexcept { return instant_now(the_clock()); }

/// Counts of requests wrap around.
constexpr bool before(std::uint32_t one, std::uint32_t other) {
  return static_cast<std::int32_t>(one - other) < 0;
}

struct Stamp {
  Instant ready;    ///< when it counts as posted
  Instant arrival;  ///< at the target; READ and atomics: of the request
  Instant done;     ///< completion; READ and atomics: known once arrived
  std::uint64_t total;   ///< bytes
  std::uint64_t copied;  ///< bytes in front that were moved ahead of time
  Fault fault;
  const RecvCell* peeked;  ///< SEND: where they were moved to
  ibv_wc_status status;
  bool told;          ///< the program is told of its completion
  bool copy_stopped;  ///< nothing is moved ahead
  bool late;          ///< had to wait for a receive: its due time says nothing
};

struct Flight {
  std::unique_ptr<Stamp[]> stamps;
  PortShared* port = nullptr;
  PortShared* peer_port = nullptr;  ///< null: the peer's device has no model
  // Counts like Qp::posted_: completed <= arrived <= sent <= posted.
  std::uint32_t sent = 0;
  std::uint32_t arrived = 0;
  std::uint32_t copying = 0;        ///< up to this one all is moved that can be
  std::uint32_t copied_sends = 0;   ///< of these, not yet arrived and consuming a receive
  std::uint32_t reads_sent = 0;     ///< READ and atomics
  std::uint32_t reads_done = 0;
  std::array<Instant, kMaxRdAtomic> read_done{};  ///< when the last ones completed, by their number
  // Counts of requests that the program knows are done, see Qp::completion_answered().
  std::uint32_t polled = 0;         ///< when it polled last
  std::uint32_t polled_before = 0;  ///< before its last poll that found something
  std::uint32_t answered = 0;       ///< up to this one posts have stood in for them
  std::uint32_t told = 0;           ///< the one whose completion told of that one
  std::uint32_t mtu = 4096;
  Instant last_ready = 0;
  Instant last_arrival = 0;
  Instant last_done = 0;
  Instant time = 0;                 ///< the last reading of the clock
  Instant polled_at = 0;            ///< when the program moved things on
  std::uint32_t polls = 0;          ///< by the program
  std::uint32_t polls_before = 0;   ///< of these, before the last post
  std::uint32_t watched = 0;        ///< posts after which it polled, less those that it left alone
  std::uint32_t burst = 0;          ///< posts since its last poll, none of them left alone
  std::uint32_t ignored = 0;        ///< posts that it left alone, since one after which it polled
  bool attended = false;            ///< it polls for what it posts: not the thread's business
  bool listed = false;              ///< with its CQs
  bool broken = false;              ///< a request failed: what follows stays
  PortTally tally;

  ~Flight() { show_counts(); }
  /// The port's counters have everything that this QP counted.
  void show_counts() noexcept {
    if (port != nullptr) tally.move_to(port->counters);
  }
  void show_counts_but_of_a_stream(std::uint32_t under_way) noexcept {
    if (under_way <= kFew || tally.messages >= kTallied) show_counts();
  }
  void clear(std::uint32_t posted) noexcept {
    show_counts();
    sent = arrived = copying = polled = polled_before = answered = told = posted;
    copied_sends = reads_sent = reads_done = 0;
    broken = false;
  }
  std::uint32_t reads() const noexcept { return reads_sent - reads_done; }
};

}  // namespace gdrperf::softnic
