#include "gdrperf/mem/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#if defined(__x86_64__)
#define GDRPERF_X86 1
#endif

namespace gdrperf::mem {
namespace {

static_assert(std::endian::native == std::endian::little, "words are compared as they lie in memory");

constexpr bool every_byte_changes(std::uint64_t step) {
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t byte = step >> (8 * i) & 0xff;
    // A carry from below turns 0xff into no change at all.
    if (byte == 0 || byte == 0xff) return false;
  }
  return true;
}
static_assert(every_byte_changes(kIterationStep) && every_byte_changes(2 * kIterationStep));
static_assert(every_byte_changes(kSlotStep) && every_byte_changes(2 * kSlotStep));
static_assert(every_byte_changes(kSlotStep + kIterationStep) && every_byte_changes(kSlotStep - kIterationStep));
static_assert(every_byte_changes(kWordStep));

/// Bijective, so that different keys start differently.
std::uint64_t scatter(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Eight words side by side: the compiler makes two, four or eight registers of
// them, as the function's target allows. The bodies are inlined into one
// function per target.
typedef std::uint64_t Lanes __attribute__((vector_size(64)));
constexpr std::size_t kLanes = 8;
/// Words compared between two looks at the result.
constexpr std::size_t kStretch = 512;

#define GDRPERF_BODY inline __attribute__((always_inline))

GDRPERF_BODY void lanes_from(std::uint64_t start, Lanes& lanes) {
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = start + i * kWordStep;
}

GDRPERF_BODY void fill_body(std::byte* to, std::size_t words, std::uint64_t start) {
  std::size_t i = 0;
  if (words >= kLanes) {
    Lanes value;
    lanes_from(start, value);
    for (; i + kLanes <= words; i += kLanes) {
      std::memcpy(to + i * 8, &value, sizeof value);
      value += kLanes * kWordStep;
    }
  }
  for (; i < words; ++i) {
    const std::uint64_t word = start + i * kWordStep;
    std::memcpy(to + i * 8, &word, 8);
  }
}

/// The number of words that are right from the start on, rounded down to where
/// the scalar search takes over.
GDRPERF_BODY std::size_t compare_body(const std::byte* at, std::size_t words, std::uint64_t start) {
  std::size_t i = 0;
  while (i + kLanes <= words) {
    const std::size_t stretch_end = std::min(words - words % kLanes, i + kStretch);
    const std::size_t stretch_begin = i;
    Lanes expected;
    lanes_from(start + i * kWordStep, expected);
    Lanes differences = {};
    for (; i < stretch_end; i += kLanes) {
      Lanes found;
      std::memcpy(&found, at + i * 8, sizeof found);
      differences |= found ^ expected;
      expected += kLanes * kWordStep;
    }
    std::uint64_t any = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) any |= differences[lane];
    if (any != 0) return stretch_begin;
  }
  return i;
}

void fill_plain(std::byte* to, std::size_t words, std::uint64_t start) { fill_body(to, words, start); }
std::size_t compare_plain(const std::byte* at, std::size_t words, std::uint64_t start) {
  return compare_body(at, words, start);
}

#ifdef GDRPERF_X86
__attribute__((target("avx2"))) void fill_avx2(std::byte* to, std::size_t words, std::uint64_t start) {
  fill_body(to, words, start);
}
__attribute__((target("avx2"))) std::size_t compare_avx2(const std::byte* at, std::size_t words,
                                                         std::uint64_t start) {
  return compare_body(at, words, start);
}
__attribute__((target("avx512f"))) void fill_avx512(std::byte* to, std::size_t words, std::uint64_t start) {
  fill_body(to, words, start);
}
__attribute__((target("avx512f"))) std::size_t compare_avx512(const std::byte* at, std::size_t words,
                                                              std::uint64_t start) {
  return compare_body(at, words, start);
}
#endif

struct Functions {
  void (*fill)(std::byte*, std::size_t, std::uint64_t) = fill_plain;
  std::size_t (*compare)(const std::byte*, std::size_t, std::uint64_t) = compare_plain;
};

const Functions& functions() {
  static const Functions chosen = [] {
    Functions f;
#ifdef GDRPERF_X86
    if (__builtin_cpu_supports("avx2")) f = {fill_avx2, compare_avx2};
    if (__builtin_cpu_supports("avx512f")) f = {fill_avx512, compare_avx512};
#endif
    return f;
  }();
  return chosen;
}

std::uint64_t mask_of(std::uint64_t bytes) { return bytes >= 8 ? ~0ull : (1ull << (8 * bytes)) - 1; }

std::uint64_t bytes_of_word(const PatternRun& run, std::uint64_t word_index) {
  return std::min<std::uint64_t>(8, run.size_bytes - word_index * 8);
}

/// The first wrong word of a message from word `from` on; nullopt: all right.
std::optional<Mismatch> search(const std::byte* message, const PatternRun& run, std::uint64_t slot,
                               std::uint64_t from) {
  for (std::uint64_t i = from; i * 8 < run.size_bytes; ++i) {
    std::uint64_t found = 0;
    std::memcpy(&found, message + i * 8, bytes_of_word(run, i));
    if (found != expected_word(run, slot, i)) return mismatch_of(run, slot, i, found);
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t pattern_start(const PatternKey& key, std::uint64_t slot, std::uint64_t iteration) {
  const std::uint64_t queue = static_cast<std::uint64_t>(key.qp) << 1 | (key.direction & 1);
  return scatter(scatter(key.seed) + queue) + slot * kSlotStep + iteration * kIterationStep;
}

std::uint64_t expected_word(const PatternRun& run, std::uint64_t slot, std::uint64_t word_index) {
  const std::uint64_t bytes = bytes_of_word(run, word_index);
  std::uint64_t word = pattern_start(run.key, slot, run.iteration) + word_index * kWordStep;
  if (run.last_byte >= 0 && word_index * 8 + bytes == run.size_bytes) {
    const auto shift = 8 * (bytes - 1);
    word = (word & ~(0xffull << shift)) | static_cast<std::uint64_t>(run.last_byte & 0xff) << shift;
  }
  return word & mask_of(bytes);
}

Mismatch mismatch_of(const PatternRun& run, std::uint64_t slot, std::uint64_t word_index, std::uint64_t found) {
  Mismatch mismatch;
  mismatch.slot = slot;
  mismatch.offset = word_index * 8;
  mismatch.word_bytes = bytes_of_word(run, word_index);
  mismatch.expected = expected_word(run, slot, word_index);
  mismatch.found = found & mask_of(mismatch.word_bytes);
  const std::uint64_t difference = mismatch.expected ^ mismatch.found;
  mismatch.wrong_byte = mismatch.offset + static_cast<std::uint64_t>(std::countr_zero(difference)) / 8;
  return mismatch;
}

void fill_pattern(std::byte* memory, const PatternRun& run) {
  const Functions& f = functions();
  const std::uint64_t tail = run.size_bytes % 8;
  for (std::uint64_t k = 0; k < run.count; ++k) {
    const std::uint64_t slot = run.first_slot + k;
    std::byte* message = memory + run.offset + k * run.stride;
    f.fill(message, run.size_bytes / 8, pattern_start(run.key, slot, run.iteration));
    if (tail != 0) {
      const std::uint64_t word = expected_word(run, slot, run.size_bytes / 8);
      std::memcpy(message + (run.size_bytes - tail), &word, tail);
    }
    if (run.last_byte >= 0) message[run.size_bytes - 1] = static_cast<std::byte>(run.last_byte);
  }
}

CheckResult check_pattern(const std::byte* memory, const PatternRun& run) {
  const Functions& f = functions();
  // The last word may differ from the progression: it is looked at by itself.
  const std::uint64_t whole = (run.size_bytes - 1) / 8;
  CheckResult result;
  for (std::uint64_t k = 0; k < run.count; ++k) {
    const std::uint64_t slot = run.first_slot + k;
    const std::byte* message = memory + run.offset + k * run.stride;
    const std::uint64_t right = f.compare(message, whole, pattern_start(run.key, slot, run.iteration));
    const std::optional<Mismatch> wrong = search(message, run, slot, right);
    if (!wrong) continue;
    ++result.wrong_messages;
    if (!result.first) result.first = wrong;
  }
  return result;
}

std::string explain(const PatternRun& run, const Mismatch& mismatch) {
  const std::uint64_t mask = mask_of(mismatch.word_bytes);
  const std::uint64_t word =
      pattern_start(run.key, mismatch.slot, run.iteration) + mismatch.offset / 8 * kWordStep;
  const auto holds = [&](std::uint64_t step) { return ((word + step) & mask) == mismatch.found; };
  const char* tail = mismatch.wrong_byte == 0 ? "" : "from this byte on ";
  for (std::uint64_t back = 1; back <= 8; ++back) {
    if (holds(0 - back * kIterationStep)) {
      return fmt::format("{}stale: it holds what iteration {} left there", tail,
                         static_cast<std::int64_t>(run.iteration - back));
    }
  }
  for (std::uint64_t away = 1; away <= 4096; ++away) {
    for (const std::uint64_t step : {away, 0 - away}) {
      const auto other = static_cast<std::int64_t>(mismatch.slot + step);
      if (other < 0 || !holds(step * kSlotStep)) continue;
      return fmt::format("{}misplaced: it holds the message of slot {}", tail, other);
    }
  }
  // A word whose first bytes are right and whose others are the previous
  // iteration's: the end of the message never came.
  const std::uint64_t right_bits = 8 * (mismatch.wrong_byte - mismatch.offset);
  const std::uint64_t stale = word - kIterationStep;
  if (right_bits != 0 && ((stale ^ mismatch.found) & mask) >> right_bits == 0) {
    return "from this byte on stale: the message's end was not written";
  }
  if (std::popcount(mismatch.expected ^ mismatch.found) == 1) return "one bit is flipped";
  return "it holds neither an earlier message nor a neighbour's";
}

}  // namespace gdrperf::mem
