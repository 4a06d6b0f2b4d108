#include "gdrperf/mem/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace gdrperf::mem {
namespace {

constexpr std::uint64_t kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 1000, 4096, 4097, 65537};

struct Region {
  explicit Region(std::uint64_t size, std::uint64_t slots = 16) {
    run.stride = (size + 63) / 64 * 64;
    run.count = slots;
    run.size_bytes = size;
    run.key = {7, 0, 3};
    run.iteration = 5;
    // On a 64-byte boundary, as buffers are.
    memory.resize((run.stride * slots + 64) / 8);
    at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  }
  std::byte* message(std::uint64_t slot) { return at + slot * run.stride; }
  CheckResult check() const { return check_pattern(at, run); }

  PatternRun run;
  std::vector<std::uint64_t> memory;
  std::byte* at = nullptr;
};

TEST(Pattern, WhatWasFilledPasses) {
  for (const std::uint64_t size : kSizes) {
    Region region(size);
    fill_pattern(region.at, region.run);
    const CheckResult result = region.check();
    EXPECT_EQ(result.wrong_messages, 0u) << size;
    EXPECT_FALSE(result.first);
  }
}

TEST(Pattern, FillKeepsWithinItsMessages) {
  for (const std::uint64_t size : kSizes) {
    Region region(size, 4);
    std::fill(region.memory.begin(), region.memory.end(), 0xa5a5a5a5a5a5a5a5);
    fill_pattern(region.at, region.run);
    for (std::uint64_t slot = 0; slot < 4; ++slot) {
      for (std::uint64_t i = size; i < region.run.stride; ++i) {
        ASSERT_EQ(region.message(slot)[i], std::byte{0xa5}) << size << ' ' << i;
      }
    }
  }
}

TEST(Pattern, EveryBitFlippedIsFound) {
  for (const std::uint64_t size : {1u, 9u, 64u, 200u}) {
    Region region(size, 2);
    fill_pattern(region.at, region.run);
    for (std::uint64_t bit = 0; bit < 8 * size; ++bit) {
      region.message(1)[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const CheckResult result = region.check();
      ASSERT_EQ(result.wrong_messages, 1u) << size << ' ' << bit;
      EXPECT_EQ(result.first->slot, 1u);
      EXPECT_EQ(result.first->wrong_byte, bit / 8);
      if (size >= 8 && bit < 64) {
        EXPECT_EQ(explain(region.run, *result.first), "one bit is flipped");
      }
      region.message(1)[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
  }
}

// Each of the last laps' messages differs from this one in every single byte: no lost write hides.
TEST(Pattern, StaleDataDiffersInEveryByte) {
  for (const std::uint64_t size : kSizes) {
    for (const std::uint64_t back : {1u, 2u}) {
      Region now(size);
      Region before(size);
      before.run.iteration -= back;
      fill_pattern(now.at, now.run);
      fill_pattern(before.at, before.run);
      for (std::uint64_t slot = 0; slot < now.run.count; ++slot) {
        for (std::uint64_t i = 0; i < size; ++i) {
          ASSERT_NE(now.message(slot)[i], before.message(slot)[i]) << size << " slot " << slot << " byte " << i;
        }
      }
      const CheckResult result = check_pattern(before.at, now.run);
      EXPECT_EQ(result.wrong_messages, now.run.count);
      EXPECT_NE(explain(now.run, *result.first).find("stale: it holds what iteration"), std::string::npos);
    }
  }
}

TEST(Pattern, BeforeTheFirstIterationComesOneMore) {
  Region region(100, 4);
  region.run.iteration = ~0ull;
  fill_pattern(region.at, region.run);
  region.run.iteration = 0;
  const CheckResult result = region.check();
  EXPECT_EQ(result.wrong_messages, 4u);
  EXPECT_EQ(explain(region.run, *result.first), "stale: it holds what iteration -1 left there");
}

TEST(Pattern, EveryTenthMessageLostIsCounted) {
  Region region(4097, 64);
  region.run.iteration = 4;
  fill_pattern(region.at, region.run);
  std::vector<std::byte> old(region.at, region.at + region.run.stride * 64);
  region.run.iteration = 5;
  fill_pattern(region.at, region.run);
  for (std::uint64_t slot = 9; slot < 64; slot += 10) {
    std::memcpy(region.message(slot), old.data() + slot * region.run.stride, 4097);
  }
  const CheckResult result = region.check();
  EXPECT_EQ(result.wrong_messages, 6u);
  EXPECT_EQ(result.first->slot, 9u);
}

TEST(Pattern, ANeighboursMessageIsToldFromOnesOwn) {
  for (const std::uint64_t size : kSizes) {
    Region region(size);
    fill_pattern(region.at, region.run);
    std::memcpy(region.message(6), region.message(5), size);
    const CheckResult result = region.check();
    ASSERT_EQ(result.wrong_messages, 1u) << size;
    EXPECT_EQ(result.first->slot, 6u);
    EXPECT_EQ(result.first->wrong_byte, 0u);
    if (size >= 8) {
      EXPECT_EQ(explain(region.run, *result.first), "misplaced: it holds the message of slot 5");
    }
  }
}

TEST(Pattern, AMessageOfAnotherQueueOrDirectionIsWrong) {
  Region region(64, 4);
  fill_pattern(region.at, region.run);
  PatternRun other = region.run;
  other.key.qp = 2;
  EXPECT_EQ(check_pattern(region.at, other).wrong_messages, 4u);
  other = region.run;
  other.key.direction = 1;
  EXPECT_EQ(check_pattern(region.at, other).wrong_messages, 4u);
  other = region.run;
  other.key.seed = 8;
  EXPECT_EQ(check_pattern(region.at, other).wrong_messages, 4u);
}

TEST(Pattern, ATailThatWasNotWrittenIsFoundHoweverShort) {
  for (const std::uint64_t size : kSizes) {
    for (std::uint64_t missing = 1; missing < std::min<std::uint64_t>(size, 40); ++missing) {
      Region region(size, 2);
      --region.run.iteration;
      fill_pattern(region.at, region.run);
      const std::vector<std::byte> old(region.message(1), region.message(1) + size);
      ++region.run.iteration;
      fill_pattern(region.at, region.run);
      std::copy(old.end() - static_cast<std::ptrdiff_t>(missing), old.end(), region.message(1) + (size - missing));
      const CheckResult result = region.check();
      ASSERT_EQ(result.wrong_messages, 1u) << size << ' ' << missing;
      EXPECT_EQ(result.first->wrong_byte, size - missing);
      const std::string why = explain(region.run, *result.first);
      EXPECT_EQ(why.find("from this byte on "), 0u) << why;
    }
  }
}

TEST(Pattern, TheLastByteMayCarryTheRoundsNumber) {
  for (const std::uint64_t size : kSizes) {
    Region region(size, 1);
    region.run.last_byte = 0x42;
    fill_pattern(region.at, region.run);
    EXPECT_EQ(region.message(0)[size - 1], std::byte{0x42});
    EXPECT_EQ(region.check().wrong_messages, 0u);
    region.message(0)[size - 1] = std::byte{0x41};
    EXPECT_EQ(region.check().wrong_messages, 1u);
  }
}

}  // namespace
}  // namespace gdrperf::mem
