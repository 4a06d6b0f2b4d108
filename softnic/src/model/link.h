#pragma once

#include <atomic>
#include <cstdint>

#include "gdrperf/base/clock.h"
#include "model/config.h"
#include "model/counters.h"

/// The arithmetic of the link model: when a message leaves and arrives. Due
/// times are computed from due times, so rounding and lateness do not add up.
namespace gdrperf::softnic {

/// A moment, or a span of time, in 1/64 ticks of the clock that all processes
/// of the host share.
using Instant = std::uint64_t;
inline constexpr unsigned kSubTickBits = 6;

inline Instant instant_now(const Clock& clock) noexcept { return clock.ticks() << kSubTickBits; }
inline std::uint64_t to_ns(const Clock& clock, Instant span) noexcept {
  // Signed: one instruction each way.
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(
      static_cast<double>(static_cast<std::int64_t>(span)) * clock.ns_per_tick() / (1u << kSubTickBits)));
}
inline Instant from_ns(const Clock& clock, double ns) noexcept {
  return static_cast<Instant>(ns / clock.ns_per_tick() * (1u << kSubTickBits) + 0.5);
}

/// A few years.
inline constexpr double kMostInstants = 0x1p62;

/// Time that messages occupy a port. Also told to peers, whose READs this port
/// answers: in shared memory, written before anybody posts.
struct PortSpeed {
  std::atomic<double> instants_per_byte{0};
  std::atomic<Instant> per_message{0};
  std::atomic<std::uint32_t> header{0};
  std::atomic<bool> ingress{false};  ///< what comes in occupies the port as what goes out does

  /// `mtu` is that of the QP's path.
  Instant occupancy(std::uint64_t bytes, std::uint32_t mtu) const noexcept {
    std::uint64_t wire = bytes;
    if (const std::uint32_t each = header.load(std::memory_order_relaxed); each != 0) {
      wire += (bytes == 0 ? 1 : (bytes + mtu - 1) / mtu) * each;
    }
    const double instants =
        static_cast<double>(static_cast<std::int64_t>(wire)) * instants_per_byte.load(std::memory_order_relaxed);
    // Others write here as well: not every bit pattern is a number of instants.
    const double bounded = instants >= 0 && instants < kMostInstants ? instants : 0;
    return static_cast<Instant>(static_cast<std::int64_t>(bounded + 0.5)) +
           per_message.load(std::memory_order_relaxed);
  }
};

/// A modelled port as all processes that use the device share it.
struct PortShared {
  std::atomic<std::uint64_t> magic;
  PortSpeed speed;
  alignas(64) std::atomic<Instant> egress_free;
  alignas(64) std::atomic<Instant> ingress_free;
  alignas(64) PortCounters counters;

  /// Queues a message that is ready at `ready` and occupies the port for
  /// `length`; returns when its last byte has left.
  Instant reserve(Instant ready, Instant length) noexcept { return queue(egress_free, ready, length); }
  /// A message whose last byte would be in at `arrival`, were it alone, and occupies the way in for `length`: when it
  /// is in, behind those of other senders.
  Instant take_in(Instant arrival, Instant length) noexcept {
    if (!speed.ingress.load(std::memory_order_relaxed)) return arrival;
    return queue(ingress_free, arrival - length, length);
  }
  /// The port does nothing for `length` from `from` on.
  void stall(Instant from, Instant length) noexcept { reserve(from, length); }

 private:
  static Instant queue(std::atomic<Instant>& queue_free, Instant ready, Instant length) noexcept {
    Instant free = queue_free.load(std::memory_order_relaxed);
    Instant end;
    do {
      end = (free > ready ? free : ready) + length;
    } while (!queue_free.compare_exchange_weak(free, end, std::memory_order_relaxed));
    return end;
  }
};
inline constexpr std::uint64_t kPortMagic = 0x74726f70736f6675ull;

/// The rest of a device's link, as this process uses it.
struct LinkModel {
  Instant latency = 0;
  Instant ack = 0;
  Instant react = 0;
  std::uint32_t mtu = 4096;
  bool edges_only = false;
  int slow_sport = 0;            ///< UDP source port of a slower path; 0: none
  double slow_sport_per_byte = 0;  ///< Instants
  double strict_per_byte = 0;  ///< Instants that a byte of memory without relaxed ordering takes at least
};

LinkModel make_link_model(const LinkConfig& config, const Clock& clock);
void publish_speed(const LinkConfig& config, const Clock& clock, PortSpeed& speed);

}  // namespace gdrperf::softnic
