// Registered memory that moves, while others write to it, unmap it and fork.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"

namespace softnic_test {
namespace {

using Clock = std::chrono::steady_clock;

/// The name of the file behind the mapping that holds an address.
std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long long begin, end;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2) continue;
    const auto at = reinterpret_cast<unsigned long long>(address);
    if (at >= begin && at < end) return line.find('/') == std::string::npos ? "" : line.substr(line.find('/'));
  }
  return "not mapped";
}

bool is_moved(const void* address) { return mapped_file(address).find("softnic-window") != std::string::npos; }

TEST(SoftnicMove, PagesMoveAndComeBack) {
  auto context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  Memory memory(nullptr, 1 << 20);
  memory.fill(4);
  // Pages at either end belong to it in part: a NIC would pin them as well.
  Owned<ibv_mr> mr(register_memory(pd.get(), memory.data() + 100, memory.size() - 200, kAllAccess));
  ASSERT_NE(mr, nullptr);
  if (!is_moved(memory.data() + 8192)) GTEST_SKIP() << "pages cannot be moved here";
  EXPECT_TRUE(is_moved(memory.data()));
  EXPECT_TRUE(is_moved(memory.data() + memory.size() - 1));
  EXPECT_TRUE(memory.holds(4, 0, memory.size()));
  // A second region over a part: both have to end.
  Owned<ibv_mr> second(register_memory(pd.get(), memory.data() + 65536, 65536, kAllAccess));
  mr.reset();
  EXPECT_FALSE(is_moved(memory.data() + 8192));
  EXPECT_TRUE(is_moved(memory.data() + 65536));
  second.reset();
  EXPECT_FALSE(is_moved(memory.data() + 65536));
  EXPECT_TRUE(memory.holds(4, 0, memory.size()));
}

/// What lies beside the memory that libc keeps of the thread is not a part of it.
TEST(SoftnicMove, PagesBesideTheThreadsOwnMove) {
  const std::uintptr_t own = reinterpret_cast<std::uintptr_t>(::pthread_self()) & ~std::uintptr_t{4095};
  void* memory = MAP_FAILED;
  for (int pages = 1; pages < 16 && memory == MAP_FAILED; ++pages) {
    memory = ::mmap(reinterpret_cast<void*>(own - static_cast<std::uintptr_t>(pages) * 4096), 4096,
                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (memory == MAP_FAILED) GTEST_SKIP() << "nothing is free there";
  auto context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  std::vector<std::uint8_t> elsewhere(1 << 16);
  {
    Owned<ibv_mr> far(register_memory(pd.get(), elsewhere.data(), elsewhere.size(), kAllAccess));
    if (!is_moved(elsewhere.data() + 8192)) GTEST_SKIP() << "pages cannot be moved here";
    Owned<ibv_mr> mr(register_memory(pd.get(), static_cast<std::uint8_t*>(memory), 4096, kAllAccess));
    ASSERT_NE(mr, nullptr);
    EXPECT_TRUE(is_moved(memory));
  }
  ::munmap(memory, 4096);
}

TEST(SoftnicMove, WritesOfOtherThreadsAreNotLost) {
  auto context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  Memory memory(nullptr, 1 << 20);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> lost{0};
  // Counts in every page, each from what it finds there.
  std::thread writer([&] {
    std::uint64_t count = 0;
    while (!stop) {
      for (std::size_t page = 0; page < memory.size(); page += 4096) {
        auto* word = reinterpret_cast<volatile std::uint64_t*>(memory.data() + page);
        if (*word != count) ++lost;
        *word = count + 1;
      }
      ++count;
    }
  });
  for (int i = 0; i < 100; ++i) {
    ibv_mr* mr = register_memory(pd.get(), memory.data(), memory.size(), kAllAccess);
    ASSERT_NE(mr, nullptr);
    ASSERT_EQ(ibv_dereg_mr(mr), 0);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(lost, 0u);
}

TEST(SoftnicMove, MemoryUnmappedBeforeDeregistrationIsLeftAlone) {
  auto context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  constexpr std::size_t kBytes = 1 << 20;
  void* mapped = map_apart(kBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  Owned<ibv_mr> mr(register_memory(pd.get(), mapped, kBytes, kAllAccess));
  ASSERT_NE(mr, nullptr);
  // Somebody else's memory at the same place by now.
  void* again = ::mmap(mapped, kBytes / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(again, mapped);
  std::memset(again, 0x77, kBytes / 2);
  ::munmap(static_cast<std::uint8_t*>(mapped) + kBytes / 2, kBytes / 2);
  // And registered anew, over the old region.
  Owned<ibv_mr> second(register_memory(pd.get(), again, kBytes / 2, kAllAccess));
  EXPECT_NE(second, nullptr);
  mr.reset();
  second.reset();
  for (std::size_t i = 0; i < kBytes / 2; ++i) ASSERT_EQ(static_cast<std::uint8_t*>(again)[i], 0x77);
  ::munmap(again, kBytes / 2);
}

// The device keeps the pages that it has: what the program maps in their place, and what its children have, is theirs.
TEST(SoftnicMove, MemoryUnmappedAndForkedWhileAPeerWritesIt) {
  SecondProcess other([](int socket) {
    End end;
    const Address peer = meet_parent(end, socket);
    std::uint64_t written = 0;
    const auto until = Clock::now() + std::chrono::milliseconds(500);
    while (Clock::now() < until) {
      ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 1u << 20), 0);
      ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
      ++written;
    }
    tell(socket, written);
    hear<int>(socket);
  });
  End end;
  meet(end, other);
  if (!is_moved(end.memory->data() + 8192)) GTEST_SKIP() << "pages cannot be moved here";
  constexpr std::size_t kBytes = 1u << 20;
  std::uint8_t* const half = end.memory->data() + kBytes / 2;
  const auto until = Clock::now() + std::chrono::milliseconds(400);
  for (std::uint8_t round = 1; Clock::now() < until; round = static_cast<std::uint8_t>(round % 200 + 1)) {
    ASSERT_EQ(::munmap(half, kBytes / 2), 0);
    constexpr int kAnew = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    ASSERT_EQ(::mmap(half, kBytes / 2, PROT_READ | PROT_WRITE, kAnew, -1, 0), half);
    std::memset(half, round, kBytes / 2);
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::size_t i = 0; i < kBytes / 2; ++i) {
        if (half[i] != round) ::_exit(2);
      }
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    for (std::size_t i = 0; i < kBytes / 2; ++i) ASSERT_EQ(half[i], round);
  }
  EXPECT_GT(hear<std::uint64_t>(other.socket()), 0u);
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicMove, HeapAndStackSurvive) {
  auto context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{20'000}, std::size_t{300'000}}) {
    std::vector<std::uint8_t> heap(bytes, 0x31);
    Owned<ibv_mr> mr(register_memory(pd.get(), heap.data(), bytes, kAllAccess));
    ASSERT_NE(mr, nullptr);
    heap.assign(bytes, 0x32);
    mr.reset();
    for (const std::uint8_t byte : heap) ASSERT_EQ(byte, 0x32);
  }
  // On the thread's own stack: sanitizers may put arrays on one of their own, in the heap.
  constexpr std::size_t kStackBytes = 20'000;
  auto* const stack = static_cast<std::uint8_t*>(__builtin_alloca(kStackBytes));
  std::memset(stack, 0x11, kStackBytes);
  Owned<ibv_mr> mr(register_memory(pd.get(), stack, kStackBytes, kAllAccess));
  ASSERT_NE(mr, nullptr);
  EXPECT_FALSE(is_moved(stack + 8192));
  mr.reset();
  EXPECT_EQ(stack[19'999], 0x11);
}

}  // namespace
}  // namespace softnic_test
