#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gdrperf::mem {

/// Parameters that all messages of one queue share.
struct PatternKey {
  std::uint64_t seed = 1;
  std::uint32_t direction = 0;  ///< 0: data that leaves the client, 1: the server
  std::uint32_t qp = 0;
};

// Words of 8 bytes are arithmetic progressions: word i of the message in `slot`
// of `iteration` is
//   start(key) + i * kWordStep + slot * kSlotStep + iteration * kIterationStep,
// little-endian, the last one cut off. No byte of a step (nor of the sums and
// differences below) is 0x00 or 0xff, so that, carries included, every single
// byte changes from one iteration to the next two and from a slot to its
// neighbours: stale and misplaced data shows in messages of one byte, and in
// the last byte of longer ones.
inline constexpr std::uint64_t kWordStep = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t kSlotStep = 0x6b1f52c83d97a64d;
inline constexpr std::uint64_t kIterationStep = 0x2547365a1d2b4e13;

/// First word of the message in `slot` of `iteration`.
std::uint64_t pattern_start(const PatternKey& key, std::uint64_t slot, std::uint64_t iteration);

/// Messages that lie one after another: that of slot `first_slot` + k at
/// `offset` + k * `stride`, for k < `count`.
struct PatternRun {
  std::uint64_t offset = 0;      ///< a multiple of 8
  std::uint64_t stride = 0;      ///< a multiple of 8, at least `size_bytes`
  std::uint64_t count = 1;
  std::uint64_t size_bytes = 0;  ///< of each message
  PatternKey key;
  std::uint64_t first_slot = 0;
  std::uint64_t iteration = 0;   ///< counts modulo 2^64: ~0 comes before 0
  int last_byte = -1;            ///< from 0 on: what the last byte holds instead
};

/// The first word that is not what it should be.
struct Mismatch {
  std::uint64_t slot = 0;
  std::uint64_t offset = 0;    ///< of the word in its message, bytes
  std::uint64_t expected = 0;  ///< only the bytes that belong to the message,
  std::uint64_t found = 0;     ///< the rest zero
  std::uint64_t word_bytes = 8;
  std::uint64_t wrong_byte = 0;  ///< offset in the message of the first wrong byte
};

struct CheckResult {
  std::uint64_t wrong_messages = 0;
  std::optional<Mismatch> first;  ///< in the order of slots
};

/// Writes and compares `run` in memory the CPU reaches. `memory` is 8-byte
/// aligned. On all SIMD lanes; memory's speed for messages of some KiB.
void fill_pattern(std::byte* memory, const PatternRun& run);
CheckResult check_pattern(const std::byte* memory, const PatternRun& run);

/// `word_index`-th word of a message as `run` expects it in `slot`, cut to the
/// message's end; the last byte replaced where the run says so.
std::uint64_t expected_word(const PatternRun& run, std::uint64_t slot, std::uint64_t word_index);
/// The mismatch of two words; both cut to the message's end.
Mismatch mismatch_of(const PatternRun& run, std::uint64_t slot, std::uint64_t word_index,
                     std::uint64_t found);

/// Content found instead, as far as it can be told: an earlier iteration,
/// another slot, a flipped bit.
std::string explain(const PatternRun& run, const Mismatch& mismatch);

}  // namespace gdrperf::mem
