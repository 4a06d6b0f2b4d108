#pragma once

// A latency test's thread: one message there, one back.

#include <cstdint>

#include "mem/rings/loop.h"

namespace gdrperf::mem::rings {

/// Latency: what ends a round, and what is written where.
enum class RoundEnds : std::uint32_t { kMemory, kReceive, kOwnCompletion };
struct Bounce {
  RoundEnds ends = RoundEnds::kMemory;
  bool opens = false;                      ///< sends first, and times rounds
  std::uint8_t* outgoing_last = nullptr;   ///< null: nothing is to be written
  const std::uint8_t* incoming_last = nullptr;
  // A request behind each message that says that it is there; kNop: none.
  Message signal;
  std::uint8_t* stamps[2] = {};            ///< first and last byte of the message, which hold the round's number, too
  const std::uint8_t* expected_stamps[2] = {};
  // Receives, all of one place.
  std::uint8_t* receive_ring = nullptr;
  std::uint32_t receive_mask = 0;
  std::uint32_t receive_stride = 16;
  std::uint64_t receives_posted = 0;
  std::uint64_t receive_address = 0;
  std::uint32_t receive_bytes = 0;
  std::uint32_t receive_key = 0;
  std::uint8_t* completions = nullptr;
  std::uint32_t completion_mask = 0;
  std::uint32_t completion_shift = 6;
  std::uint32_t* completion_record = nullptr;
  // Ticks of each round, by its number.
  std::uint32_t* samples = nullptr;
  std::uint64_t sample_mask = 0;
};

/// The one thread of a latency test.
class Bouncer {
 public:
  GDRPERF_BOTH Bouncer(Queue& queue, const Bounce& bounce, const Orders* orders, Report* report)
      : queue_(queue), bounce_(bounce), orders_(orders), report_(report), receives_(bounce.receives_posted) {}

  /// Where its clocks begin, for the CPU.
  GDRPERF_BOTH void begin() { tell(); }

  GDRPERF_BOTH void run() {
    while (allowed()) {
      if (!(bounce_.opens ? open() : answer())) break;
      ++rounds_;
      tell_now_and_then();
    }
    tell();
    fence();
    store(&report_->over, std::uint64_t{1});
  }

 private:
  static constexpr std::uint32_t kLooks = 1024;
  static constexpr std::uint64_t kTellEvery = 32;
  /// Unsignalled requests in a row.
  GDRPERF_BOTH std::uint64_t signal_every() const { return queue_.signal_every; }

  GDRPERF_BOTH void tell() {
    const std::uint64_t now = now_ns();
    store(&report_->early_signals, early_);
    report(report_, ++reports_, rounds_, now, now);
  }
  GDRPERF_BOTH void tell_now_and_then() {
    if (rounds_ % kTellEvery == 0 || rounds_ >= limit_) tell();
  }
  /// False: the CPU wants no more.
  GDRPERF_BOTH bool allowed() {
    while (rounds_ >= limit_ || !known_) {
      const std::uint64_t order = load(&orders_->reach.first);
      if ((order & (kStop | kFinish)) != 0) return false;
      limit_ = order;
      known_ = true;
      operand_ = load(&orders_->operand);
      compare_ = load(&orders_->compare);
      if (rounds_ < limit_) break;
      rest();
    }
    return true;
  }

  GDRPERF_BOTH bool open() {
    const std::uint64_t start = now_ticks();
    ++number_;
    if (!post()) return false;
    if (!arrived()) return false;
    const std::uint64_t taken = now_ticks() - start;
    check_stamps();
    const std::uint64_t most = 0xffffffffu;
    store(&bounce_.samples[rounds_ & bounce_.sample_mask], static_cast<std::uint32_t>(taken < most ? taken : most));
    return receive_again();
  }
  GDRPERF_BOTH bool answer() {
    ++number_;
    if (!arrived()) return false;
    check_stamps();
    return post() && receive_again();
  }

  GDRPERF_BOTH bool post() {
    if (bounce_.stamps[0] != nullptr) {
      store(bounce_.stamps[0], number_);
      store(bounce_.stamps[1], number_);
    }
    if (bounce_.outgoing_last != nullptr) store(bounce_.outgoing_last, number_);
    const bool due = (posts_ + 1) % signal_every() == 0;
    // No round waits for its own acknowledgement.
    while (due && pending_) {
      if (!take_own()) return false;
    }
    Message message = queue_.message;
    if (is_atomic(message.opcode)) {
      const bool adds = message.opcode == Opcode::kFetchAdd;
      message.operand = adds ? operand_ : compare_ + operand_;
      message.compare = adds ? 0 : compare_;
    }
    const bool follows = bounce_.signal.opcode != Opcode::kNop;
    message.signalled = due && !follows;
    write_request(queue_, message, sent_++);
    if (follows) {
      Message signal = bounce_.signal;
      signal.signalled = due;
      write_request(queue_, signal, sent_++);
    }
    ring_for(queue_, sent_, follows ? bounce_.signal : message);
    ++posts_;
    pending_ = pending_ || due;
    return true;
  }

  /// Waits for nothing long: false where the run is over.
  GDRPERF_BOTH bool take_own() {
    const Look seen = look_own();
    if (seen == Look::kFailed) return false;
    if (seen == Look::kCame) pending_ = false;
    return seen == Look::kCame || goes_on();
  }
  GDRPERF_BOTH Look look_own() {
    const std::uint8_t* const at =
        completion_at(queue_.completions, queue_.taken, queue_.completion_mask, queue_.completion_shift);
    const std::uint32_t last = load(reinterpret_cast<const std::uint32_t*>(at + kLastWord));
    if (!is_there(last, queue_.taken, queue_.completion_mask)) return Look::kNothing;
    ++queue_.taken;
    store(queue_.completion_record, cq_record_of(queue_.taken));
    if (kind_of(last) != Completed::kRequest) {
      report_error(report_, at);
      return Look::kFailed;
    }
    return Look::kCame;
  }
  GDRPERF_BOTH bool goes_on() {
    rest();
    return (load(&orders_->reach.first) & (kStop | kFinish)) == 0;
  }

  GDRPERF_BOTH bool arrived() {
    for (std::uint32_t looks = 1;; ++looks) {
      if (bounce_.ends == RoundEnds::kMemory) {
        if (load(bounce_.incoming_last) == number_) return true;
      } else if (bounce_.ends == RoundEnds::kReceive) {
        const Look seen = look_receive();
        if (seen != Look::kNothing) return seen == Look::kCame;
      } else {
        const Look seen = look_own();
        if (seen == Look::kCame) pending_ = false;
        if (seen != Look::kNothing) return seen == Look::kCame;
      }
#ifndef __CUDA_ARCH__
      if (looks % 64 == 0) rest();
#endif
      if (looks % kLooks != 0) continue;
      // A dead peer shows only on our own requests.
      if (bounce_.ends != RoundEnds::kOwnCompletion && pending_ && !take_own()) return false;
      if (!goes_on()) return false;
    }
  }

  GDRPERF_BOTH Look look_receive() {
    const std::uint8_t* const at =
        completion_at(bounce_.completions, received_, bounce_.completion_mask, bounce_.completion_shift);
    const std::uint32_t last = load(reinterpret_cast<const std::uint32_t*>(at + kLastWord));
    if (!is_there(last, received_, bounce_.completion_mask)) return Look::kNothing;
    ++received_;
    store(bounce_.completion_record, cq_record_of(received_));
    if (kind_of(last) == Completed::kRequestError || kind_of(last) == Completed::kReceiveError) {
      report_error(report_, at);
      return Look::kFailed;
    }
    return Look::kCame;
  }
  /// Posts the receive that was used once more.
  GDRPERF_BOTH bool receive_again() {
    if (bounce_.ends != RoundEnds::kReceive) return true;
    std::uint32_t words[8] = {};
    put_piece(words, bounce_.receive_bytes, bounce_.receive_key, bounce_.receive_address);
    put_piece(words + 4, 0, kNoKey, 0);
    std::uint8_t* const at = bounce_.receive_ring + (receives_ & bounce_.receive_mask) * bounce_.receive_stride;
    auto* const to = reinterpret_cast<std::uint32_t*>(at);
    for (std::uint32_t i = 0; i < 4; ++i) store(to + i, words[i]);
    for (std::uint32_t i = 4; i < 8 && bounce_.receive_stride > 16; ++i) store(to + i, words[i]);
    ++receives_;
    fence();
    store(queue_.records + kReceiveRecord, record_of(receives_));
    return true;
  }

  GDRPERF_BOTH void check_stamps() {
    if (bounce_.expected_stamps[0] == nullptr) return;
    const bool there = load(bounce_.expected_stamps[0]) == number_ && load(bounce_.expected_stamps[1]) == number_;
    early_ += there ? 0 : 1;
  }

  Queue& queue_;
  const Bounce& bounce_;
  const Orders* orders_;
  Report* report_;
  std::uint64_t rounds_ = 0;
  std::uint64_t limit_ = 0;
  bool known_ = false;
  std::uint64_t operand_ = 0;
  std::uint64_t compare_ = 0;
  std::uint8_t number_ = 0;
  std::uint64_t posts_ = 0;
  std::uint64_t sent_ = 0;      ///< requests
  bool pending_ = false;        ///< one signalled request has not completed
  std::uint64_t received_ = 0;  ///< completions of receives
  std::uint64_t receives_;
  std::uint64_t early_ = 0;
  std::uint64_t reports_ = 0;
};

}  // namespace gdrperf::mem::rings
