// What goes wrong where a barrier is missing, thousands of times: softnic/docs/ordering.md has the proofs, by number. A
// machine that keeps stores in order (x86) shows only some of it.

#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "memory/copy.h"
#include "shared/segment/lanes.h"
#include "shared/sync/notice.h"
#include "shared/sync/ring.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {
namespace {

template <typename T>
struct LitmusMemory {
  explicit LitmusMemory(std::uint64_t bytes) : bytes(bytes) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    at = static_cast<T*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  }
  ~LitmusMemory() { ::munmap(at, bytes); }
  LitmusMemory(const LitmusMemory&) = delete;
  LitmusMemory& operator=(const LitmusMemory&) = delete;
  std::uint64_t bytes;
  T* at;
};

void pause_until(const std::function<bool()>& there) {
  for (int looks = 0; !there(); ++looks) {
    if (looks % 256 == 255) ::sched_yield();
    cpu_relax();
  }
}

/// Two threads that begin each round together and meet at its end.
class Rounds {
 public:
  /// `one` and `other` at the same time, then `judge` alone, `count` times.
  template <typename One, typename Other, typename Judge>
  void run(int count, One one, Other other, Judge judge) {
    std::thread second([&] {
      for (int round = 1; round <= count; ++round) {
        pause_until([&] { return begun_.load() == round; });
        other();
        ended_.store(round);
      }
    });
    for (int round = 1; round <= count; ++round) {
      begun_.store(round);
      one();
      pause_until([&] { return ended_.load() == round; });
      judge();
    }
    second.join();
  }

 private:
  alignas(128) std::atomic<int> begun_{0};
  alignas(128) std::atomic<int> ended_{0};
};

constexpr int kLitmusRounds = 20'000;

struct LitmusCq {
  explicit LitmusCq(unsigned shift) : memory(CqRing::bytes(shift)) {
    ring.memory = memory.at;
    ring.mask = (1u << shift) - 1;
    ring.shift = shift;
  }
  LitmusMemory<CqRingMemory> memory;
  CqRing ring;
};

struct LitmusReceives {
  explicit LitmusReceives(unsigned shift) : memory(RecvRing::bytes(shift, 4)) {
    ring = {memory.at, (1u << shift) - 1, RecvRing::cell_bytes(4), 4, shift};
  }
  LitmusMemory<RecvRingMemory> memory;
  RecvRing ring;
};

// 1: a completion is whole when it is seen, and its cell is read no more when it is written anew.
TEST(Litmus, ACompletionIsWholeWhenItIsSeen) {
  const LitmusCq own(1);
  constexpr std::uint32_t kEach = 20'000;
  std::thread producer([&] {
    for (std::uint32_t i = 1; i <= kEach; ++i) {
      CqCell* cell = nullptr;
      pause_until([&] { return (cell = own.ring.claim(claim_tag(1, Side::kSend))) != nullptr; });
      cell->wr_id = i;
      cell->byte_len = i;
      cell->imm = ~i;
      cell->qpn = i ^ 0x5555;
      cell->sq_count = i + 7;
      CqRing::publish(*cell);
    }
  });
  std::uint32_t torn = 0;
  for (std::uint64_t pos = 0; pos < kEach; ++pos) {
    pause_until([&] { return own.ring.ready(pos); });
    const CqCell& cell = own.ring.cell(pos);
    const auto i = static_cast<std::uint32_t>(pos + 1);
    torn += cell.wr_id != i || cell.byte_len != i || cell.imm != ~i || cell.qpn != (i ^ 0x5555) ||
            cell.sq_count != i + 7;
    own.ring.release(pos);
  }
  producer.join();
  EXPECT_EQ(torn, 0u);
}

// 2: the same of a receive, and of the memory that it leads to.
TEST(Litmus, AReceiveIsWholeWhenItIsTaken) {
  const LitmusReceives own(1);
  constexpr std::uint64_t kEach = 20'000;
  std::thread poster([&] {
    for (std::uint64_t i = 1; i <= kEach; ++i) {
      const ibv_sge sges[4] = {{i, static_cast<std::uint32_t>(i), 1}, {i + 1, 2, 2}, {i + 2, 3, 3}, {i + 3, 4, 4}};
      pause_until([&] { return own.ring.post(i, sges, 4); });
    }
  });
  std::uint32_t torn = 0;
  for (std::uint64_t i = 1; i <= kEach; ++i) {
    RecvCell* cell = nullptr;
    pause_until([&] { return (cell = own.ring.take(claim_tag(2, Side::kReceive))) != nullptr; });
    const TakenReceive taken(own.ring, *cell);
    torn += cell->wr_id != i || taken.num_sge != 4 || taken.sges[0].addr != i || taken.sges[3].addr != i + 3 ||
            taken.sges[0].length != static_cast<std::uint32_t>(i);
    RecvRing::release(*cell);
  }
  poster.join();
  EXPECT_EQ(torn, 0u);
}

// 3: two producers that each have room for one completion never find the ring full.
TEST(Litmus, WhoHasRoomFindsIt) {
  const LitmusCq own(1);
  constexpr std::uint32_t kEach = 10'000;
  std::array<std::atomic<std::uint32_t>, 2> room{1, 1};
  std::atomic<std::uint32_t> full{0};
  const auto produce = [&](std::uint32_t me) {
    for (std::uint32_t i = 0; i < kEach; ++i) {
      pause_until([&] { return room[me].load(std::memory_order_acquire) != 0; });
      room[me].store(0, std::memory_order_relaxed);
      CqCell* cell = own.ring.claim(claim_tag(me, Side::kSend));
      for (; cell == nullptr; cell = own.ring.claim(claim_tag(me, Side::kSend))) ++full;
      cell->qpn = me;
      CqRing::publish(*cell);
    }
  };
  std::thread one(produce, 0);
  std::thread other(produce, 1);
  for (std::uint64_t pos = 0; pos < 2 * kEach; ++pos) {
    pause_until([&] { return own.ring.ready(pos); });
    const std::uint32_t who = own.ring.cell(pos).qpn & 1;
    own.ring.release(pos);
    room[who].store(1, std::memory_order_release);
  }
  one.join();
  other.join();
  EXPECT_EQ(full.load(), 0u);
}

// 4: either the consumer finds the completion, or the producer the request for an event.
TEST(Litmus, NoEventIsLost) {
  const LitmusCq own(1);
  const LitmusMemory<CqShared> shared(sizeof(CqShared));
  shared.at->has_channel = 1;
  const std::uint64_t tag = claim_tag(1, Side::kSend);
  std::uint64_t pos = 0;
  bool raised = false;
  bool seen = false;
  int lost = 0;
  Rounds().run(
      kLitmusRounds,
      [&] {
        arm_queue(*shared.at, false);
        std::atomic_thread_fence(std::memory_order_seq_cst);  // Cq::arm()
        seen = own.ring.ready(pos);
      },
      [&] {
        CqRing::publish(*own.ring.claim(tag));
        raised = take_event(*shared.at, tag, false);
      },
      [&] {
        lost += !raised && !seen;
        own.ring.release(pos++);
        shared.at->notice = 0;
      });
  EXPECT_EQ(lost, 0);
}

// 5: an owner that changes a QP waits for whoever is in it; both ways of keeping the two in order.
void expect_nobody_is_missed(bool light) {
  const LitmusMemory<Segment> segment(sizeof(Segment));
  QpShared& qp = segment.at->qps[3];
  Lane lane;
  ASSERT_TRUE(lane.take(*segment.at, 1, light));
  const LaneShared& shown = segment.at->lanes[0];
  std::uint64_t epoch = 0;
  bool entered = false;
  bool waits = false;
  int missed = 0;
  Rounds().run(
      light ? kLitmusRounds / 10 : kLitmusRounds, [&] { entered = lane.enter(qp, 3, epoch); },
      [&] {
        qp.epoch.store(epoch + 8);
        if (light) {
          heavy_barrier();
        } else {
          std::atomic_thread_fence(std::memory_order_seq_cst);
        }
        waits = (shown.turns.load(std::memory_order_acquire) & 1) != 0 && shown.qp.load() == 3;
      },
      [&] {
        missed += entered && !waits;
        if (entered) lane.leave();
        epoch += 8;
      });
  EXPECT_EQ(missed, 0);
}

TEST(Litmus, AnOwnerSeesWhoIsInside) { expect_nobody_is_missed(false); }

TEST(Litmus, AnOwnerWithAHeavyBarrierSeesWhoIsInside) {
  if (!register_for_heavy_barriers()) GTEST_SKIP() << "this kernel has no membarrier for several processes";
  expect_nobody_is_missed(true);
}

// 6: who left a QP for another one has finished: what was written there is there.
TEST(Litmus, WhoIsSeenInAnotherQueueHasFinished) {
  const LitmusMemory<Segment> segment(sizeof(Segment));
  QpShared* const qps = segment.at->qps;
  Lane lane;
  ASSERT_TRUE(lane.take(*segment.at, 1, false));
  const LaneShared& shown = segment.at->lanes[0];
  std::array<std::atomic<std::uint64_t>, 2> written{0, 0};
  std::atomic<bool> stop{false};
  std::thread acting([&] {
    for (std::uint64_t i = 1; i <= 200'000; ++i) {
      const auto index = static_cast<std::uint32_t>(i & 1);
      if (!lane.enter(qps[index], index, 0)) continue;
      written[index].store(i, std::memory_order_relaxed);
      lane.leave();
    }
    stop = true;
  });
  int early = 0;
  while (!stop.load()) {
    const std::uint64_t turn = shown.turns.load(std::memory_order_acquire);
    if ((turn & 1) == 0) continue;
    // Turn 2i - 1 wrote i into one of the two; in it, or past it.
    const std::uint64_t i = (turn + 1) / 2;
    if (shown.qp.load(std::memory_order_acquire) == (i & 1)) continue;
    early += written[i & 1].load(std::memory_order_relaxed) < i;
  }
  acting.join();
  EXPECT_EQ(early, 0);
}

// 7: who sees the last byte of a message sees all of it, whichever way it was copied.
using CopyOnce = std::function<void(std::uint8_t* to, const std::uint8_t* from, std::size_t length)>;

void expect_whole_messages(const CopyOnce& copy, int rounds) {
  constexpr std::size_t kBytes = 256;
  alignas(128) static std::array<std::uint8_t, kBytes> to;
  int torn = 0;
  for (const std::size_t length : {std::size_t{9}, std::size_t{64}, std::size_t{200}, kBytes}) {
    to.fill(0);
    std::atomic<int> seen{0};
    std::thread writer([&] {
      std::array<std::uint8_t, kBytes> from;
      for (int round = 1; round <= rounds; ++round) {
        from.fill(static_cast<std::uint8_t>(round % 250 + 1));
        copy(to.data(), from.data(), length);
        pause_until([&] { return seen.load() == round; });
      }
    });
    for (int round = 1; round <= rounds; ++round) {
      const auto value = static_cast<std::uint8_t>(round % 250 + 1);
      pause_until([&] { return std::atomic_ref(to[length - 1]).load(std::memory_order_acquire) == value; });
      for (std::size_t i = 0; i < length; ++i) torn += to[i] != value;
      seen.store(round);
    }
    writer.join();
  }
  EXPECT_EQ(torn, 0);
}

TEST(Litmus, TheLastByteIsTheLastOfACopy) {
  expect_whole_messages([](auto* to, const auto* from, auto length) { copy_last_byte_last(to, from, length); }, 2'000);
}

TEST(Litmus, TheLastByteIsTheLastOfTheKernelsCopy) {
  const int refusal = kernel_refusal(::getpid());
  if (refusal != 0) GTEST_SKIP() << "the kernel refuses: " << std::strerror(refusal);
  for (const Stores stores : {kStores, Stores::kInAnyOrder}) {
    expect_whole_messages(
        [&](auto* to, const auto* from, auto length) {
          // An empty piece at the end has no last byte.
          const Piece pieces[3] = {{const_cast<std::uint8_t*>(from), 4, nullptr},
                                   {const_cast<std::uint8_t*>(from) + 4, length - 4, nullptr},
                                   {const_cast<std::uint8_t*>(from), 0, nullptr}};
          const int error = copy_to_process(::getpid(), reinterpret_cast<std::uint64_t>(to), pieces, 3, length, stores);
          if (error != 0) ADD_FAILURE() << std::strerror(error);
        },
        500);
  }
}

// 8: of the favoured thread and one that ends its favour only one is inside.
TEST(Litmus, AFavouredThreadIsWaitedFor) {
  if (!register_for_heavy_barriers()) GTEST_SKIP() << "this kernel has no membarrier for several processes";
  std::unique_ptr<FavouringSpin> lock;
  std::uint64_t count = 0;
  int wrong = 0;
  const auto renew = [&] {
    lock = std::make_unique<FavouringSpin>(true);
    count = 0;
  };
  const auto count_up = [&](int times, void (FavouringSpin::*take)() noexcept) {
    for (int i = 0; i < times; ++i) {
      ((*lock).*take)();
      lock->is_held();
      count = count + 1;
      lock->unlock();
    }
  };
  renew();
  Rounds().run(
      2'000,
      [&] { count_up(40, &FavouringSpin::lock_favoured); }, [&] { count_up(10, &FavouringSpin::lock); },
      [&] {
        wrong += count != 50;
        renew();
      });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gdrperf::softnic
