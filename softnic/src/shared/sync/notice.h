#pragma once

#include <atomic>
#include <cstdint>

#include "shared/sync/ring.h"

namespace gdrperf::softnic {

/// CqShared::notice, one word, as each change of one part depends on the others. Its raiser is who raised
/// the last event and may not have told the channel yet: one who dies in between leaves that to the owner.
struct Notice {
  std::uint32_t raised = 0;  ///< events so far, modulo 2^32
  std::uint64_t raiser = 0;  ///< a claim's tag, or 0
  std::uint32_t armed = 0;   ///< 0, or what the next completion must be to raise an event

  static constexpr std::uint64_t kArmedMask = 0xffff;
  static constexpr Notice of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), (word >> 16 & 0xffff) << kTagShift,
            static_cast<std::uint32_t>(word & kArmedMask)};
  }
  constexpr std::uint64_t word() const {
    return static_cast<std::uint64_t>(raised) << 32 | raiser >> kTagShift << 16 | armed;
  }
};
inline constexpr std::uint32_t kArmedNext = 1;
inline constexpr std::uint32_t kArmedSolicited = 2;

inline bool is_armed(const CqShared& cq) noexcept {
  return (cq.notice.load(std::memory_order_relaxed) & Notice::kArmedMask) != 0;
}

/// A request for any completion is not weakened by a later one for solicited.
inline void arm_queue(CqShared& cq, bool solicited_only) noexcept {
  std::uint64_t word = cq.notice.load();
  while (true) {
    Notice notice = Notice::of(word);
    if (notice.armed == kArmedNext) return;
    notice.armed = solicited_only ? kArmedSolicited : kArmedNext;
    if (cq.notice.compare_exchange_weak(word, notice.word())) return;
  }
}

/// After a push: true when the completion channel is to be told, and then event_told(). `urgent`:
/// solicited, or an error.
inline bool take_event(CqShared& cq, std::uint64_t tag, bool urgent) noexcept {
  if (cq.has_channel.load(std::memory_order_relaxed) == 0) return false;
  // The consumer arms, then polls; here the completion comes before the look
  // at `armed`. Without the fence both could miss each other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::uint64_t word = cq.notice.load(std::memory_order_relaxed);
  while (true) {
    const Notice notice = Notice::of(word);
    if (notice.armed == 0 || (notice.armed == kArmedSolicited && !urgent)) return false;
    // Another may have changed the word: who raised the event before has told it now. The queue is still armed then.
    if (cq.notice.compare_exchange_weak(word, Notice{notice.raised + 1, tag, 0}.word())) return true;
  }
}

/// True when the event was still this one's to tell.
inline bool event_told(CqShared& cq, std::uint64_t tag) noexcept {
  std::uint64_t word = cq.notice.load();
  while (true) {
    Notice notice = Notice::of(word);
    if (notice.raiser != tag || tag == 0) return false;
    notice.raiser = 0;
    if (cq.notice.compare_exchange_weak(word, notice.word())) return true;
  }
}

}  // namespace gdrperf::softnic
