#include "shared/sync/ring.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::softnic {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// A ring in memory of its own, all zero: empty, in lap 0.
template <typename Ring, typename Memory>
struct Own {
  std::unique_ptr<void, Free> memory;
  Ring ring;

  Own(std::uint64_t bytes, unsigned shift) : memory(std::aligned_alloc(64, (bytes + 63) & ~std::uint64_t{63})) {
    std::memset(memory.get(), 0, bytes);
    ring.memory = static_cast<Memory*>(memory.get());
    ring.mask = (1u << shift) - 1;
    ring.shift = shift;
  }
};

struct OwnCq : Own<CqRing, CqRingMemory> {
  explicit OwnCq(unsigned shift) : Own(CqRing::bytes(shift), shift) {}
};

struct OwnReceives : Own<RecvRing, RecvRingMemory> {
  explicit OwnReceives(unsigned shift) : Own(RecvRing::bytes(shift, 1), shift) {
    ring.stride = RecvRing::cell_bytes(1);
    ring.max_sge = 1;
  }
  bool post(std::uint64_t id) const {
    const ibv_sge sge{0x1000, 64, 7};
    return ring.post(id, &sge, 1);
  }
};

constexpr std::uint64_t kTag = claim_tag(5, Side::kReceive);

TEST(RingPlace, IsOneWordAndStaysInTheSegment) {
  const RingPlace place{(sizeof(Segment) + 8192) & RingPlace::kOffsetMask, 16, 12};
  const RingPlace again = RingPlace::of(place.word());
  EXPECT_EQ(again.offset, place.offset);
  EXPECT_EQ(again.max_sge, 16u);
  EXPECT_EQ(again.shift, 12u);
  EXPECT_FALSE((RingPlace{0, 1, 1}).holds(64));
  EXPECT_FALSE((RingPlace{kSegmentBytes - 4096, 1, 1}).holds(8192));
  EXPECT_FALSE((RingPlace{~std::uint64_t{4095}, 1, 1}).holds(1));
}

TEST(CqRing, FillsEmptiesAndGoesRound) {
  const OwnCq own(2);
  const CqRing& ring = own.ring;
  std::uint64_t taken = 0;
  for (std::uint64_t lap = 0; lap < 5; ++lap) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      CqCell* cell = ring.claim(kTag);
      ASSERT_NE(cell, nullptr);
      cell->wr_id = lap * 4 + i;
      CqRing::publish(*cell);
    }
    EXPECT_EQ(ring.claim(kTag), nullptr) << "full";
    for (int i = 0; i < 4; ++i, ++taken) {
      ASSERT_TRUE(ring.ready(taken));
      EXPECT_EQ(ring.cell(taken).wr_id, taken);
      ring.release(taken);
    }
    EXPECT_TRUE(ring.is_end(taken));
  }
}

TEST(CqRing, AClaimedCellNamesItsQueuePairAndIsNotReady) {
  const OwnCq own(1);
  CqCell* cell = own.ring.claim(kTag);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->seq.load() & ~kLapMask, kTag);
  EXPECT_FALSE(own.ring.ready(0));
  EXPECT_FALSE(own.ring.is_end(0));
}

// Whoever stored the hint may have been stopped long ago, or mean ill.
TEST(CqRing, AnyHintLeadsToACellOrNowhere) {
  const OwnCq own(2);
  for (const std::uint64_t hint : {0ull, 1ull, 3ull, 1000ull, ~0ull, 1ull << 47}) {
    own.ring.memory->tail.store(hint);
    CqCell* cell = own.ring.claim(kTag);
    if (cell != nullptr) {
      EXPECT_GE(cell, own.ring.memory->cells);
      EXPECT_LT(cell, own.ring.memory->cells + 4);
    }
  }
}

TEST(CqRing, ManyProducersLoseNothing) {
  const OwnCq own(4);
  constexpr std::uint64_t kEach = 20'000;
  constexpr std::uint64_t kProducers = 3;
  std::vector<std::thread> producers;
  for (std::uint64_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&, producer] {
      for (std::uint64_t i = 0; i < kEach;) {
        CqCell* cell = own.ring.claim(claim_tag(static_cast<std::uint32_t>(producer), Side::kSend));
        if (cell == nullptr) {
          std::this_thread::yield();
          continue;
        }
        cell->wr_id = producer * kEach + i++;
        CqRing::publish(*cell);
      }
    });
  }
  std::vector<std::uint64_t> next(kProducers);
  for (std::uint64_t pos = 0; pos < kProducers * kEach;) {
    if (!own.ring.ready(pos)) {
      std::this_thread::yield();
      continue;
    }
    const std::uint64_t id = own.ring.cell(pos).wr_id;
    const std::uint64_t producer = id / kEach;
    ASSERT_LT(producer, kProducers);
    EXPECT_EQ(id % kEach, next[producer]++) << "in the order of its producer";
    own.ring.release(pos++);
  }
  for (std::thread& producer : producers) producer.join();
}

TEST(RecvRing, ReceivesAreTakenInTheOrderOfPosting) {
  const OwnReceives own(2);
  EXPECT_EQ(own.ring.take(kTag), nullptr);
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_TRUE(own.post(id));
  EXPECT_FALSE(own.post(4)) << "full";
  EXPECT_FALSE(own.ring.has_room(4));
  for (std::uint64_t id = 0; id < 4; ++id) {
    const RecvCell* ahead = own.ring.peek(0);
    ASSERT_NE(ahead, nullptr);
    EXPECT_EQ(ahead->wr_id, id);
    RecvCell* cell = own.ring.take(kTag);
    ASSERT_NE(cell, nullptr);
    EXPECT_EQ(cell->wr_id, id);
    RecvRing::release(*cell);
  }
  EXPECT_EQ(own.ring.take(kTag), nullptr);
  EXPECT_TRUE(own.ring.has_room(4));
}

// Peers of an SRQ give back in another order than they took: the producer leaves out what is held.
TEST(RecvRing, AHeldCellIsLeftOutAndPassedOver) {
  const OwnReceives own(2);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_TRUE(own.post(id));
  RecvCell* held = own.ring.take(kTag);
  for (int i = 0; i < 3; ++i) RecvRing::release(*own.ring.take(kTag));
  std::set<std::uint64_t> posted, taken;
  for (std::uint64_t id = 10; own.post(id); ++id) posted.insert(id);
  EXPECT_EQ(posted.size(), 3u);
  while (RecvCell* cell = own.ring.take(kTag)) {
    EXPECT_NE(cell, held);
    taken.insert(cell->wr_id);
  }
  EXPECT_EQ(taken, posted);
}

TEST(RecvRing, NothingIsNeverTaken) {
  EXPECT_EQ(RecvRing::nothing().take(kTag), nullptr);
  EXPECT_EQ(RecvRing::nothing().peek(0), nullptr);
}

// The value in the cell may change at any time, and be any number.
TEST(TakenReceive, HasAtMostTheRingsElements) {
  const OwnReceives own(1);
  ASSERT_TRUE(own.post(1));
  RecvCell* cell = own.ring.take(kTag);
  cell->num_sge = 4'000'000'000u;
  EXPECT_EQ(TakenReceive(own.ring, *cell).num_sge, 1u);
}

}  // namespace
}  // namespace gdrperf::softnic
