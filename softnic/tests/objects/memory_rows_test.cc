// What a program does to registered memory: a NIC has pinned the pages, so that it still has those that were
// registered, whatever the program sees in their place. Each row in one process and between two.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "fixture.h"

namespace softnic_test {
namespace {

constexpr std::size_t kBytes = 64 << 10;
constexpr std::size_t kHalf = kBytes / 2;
constexpr std::uint8_t kBefore = 0xa1;  ///< what the program wrote before it registered
constexpr std::uint8_t kWritten = 0xb2;  ///< what the device writes into the second half
constexpr int kNone = -1;  ///< the program has nothing there

bool all(const std::uint8_t* bytes, std::size_t length, int value) {
  for (std::size_t i = 0; i < length; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

/// The rights in /proc/self/maps, with the path behind them; empty: not mapped.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const auto at = reinterpret_cast<std::uint64_t>(address);
    if (at >= begin && at < end) return line.substr(line.find(' ') + 1);
  }
  return "";
}

bool in_window(const void* address) { return mapping_of(address).find("softnic-window") != std::string::npos; }

struct Row {
  const char* name;
  /// Returns where the program has its memory afterwards.
  std::function<std::uint8_t*(std::uint8_t*)> act;
  int sees;         ///< of what it wrote
  int sees_writes;  ///< of what the device writes then
};

std::uint8_t* remap(std::uint8_t* at, std::size_t bytes, std::size_t to, int flags, void* place = nullptr) {
  void* moved = ::mremap(at, bytes, to, flags, place);
  EXPECT_NE(moved, MAP_FAILED) << std::strerror(errno);
  return static_cast<std::uint8_t*>(moved);
}

std::uint8_t* reserve(std::size_t bytes) {
  return static_cast<std::uint8_t*>(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

const Row kRows[] = {
    {"Nothing", [](std::uint8_t* at) { return at; }, kBefore, kWritten},
    {"MadviseDontneed",
     [](std::uint8_t* at) {
       EXPECT_EQ(::madvise(at, kBytes, MADV_DONTNEED), 0);
       return at;
     },
     0, 0},
    {"MadviseFree",
     [](std::uint8_t* at) {
       EXPECT_EQ(::madvise(at, kBytes, MADV_FREE), 0);
       return at;
     },
     kBefore, kWritten},
    {"MadviseRemove",
     [](std::uint8_t* at) {
       EXPECT_EQ(::madvise(at, kBytes, MADV_REMOVE), -1);
       EXPECT_EQ(errno, EINVAL);
       return at;
     },
     kBefore, kWritten},
    {"MadviseHuge",
     [](std::uint8_t* at) {
       ::madvise(at, kBytes, MADV_HUGEPAGE);
       return at;
     },
     kBefore, kWritten},
    {"Munmap",
     [](std::uint8_t* at) {
       EXPECT_EQ(::munmap(at, kBytes), 0);
       return at;
     },
     kNone, kNone},
    {"MmapFixed",
     [](std::uint8_t* at) {
       EXPECT_EQ(::mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
       return at;
     },
     0, 0},
    {"MprotectRead",
     [](std::uint8_t* at) {
       EXPECT_EQ(::mprotect(at, kBytes, PROT_READ), 0);
       return at;
     },
     kBefore, kWritten},
    {"MprotectNone",
     [](std::uint8_t* at) {
       EXPECT_EQ(::mprotect(at, kBytes, PROT_NONE), 0);
       return at;
     },
     kNone, kNone},
    {"MremapMoves",
     [](std::uint8_t* at) { return remap(at, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, reserve(kBytes)); },
     kBefore, kWritten},
    {"MremapGrows",
     [](std::uint8_t* at) {
       std::uint8_t* const now = remap(at, kBytes, 4 * kBytes, MREMAP_MAYMOVE);
       EXPECT_TRUE(all(now + kBytes, 3 * kBytes, 0));
       now[4 * kBytes - 1] = 7;
       return now;
     },
     kBefore, kWritten},
    {"MremapGrowsElsewhere",
     [](std::uint8_t* at) {
       std::uint8_t* const now = remap(at, kBytes, 4 * kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, reserve(4 * kBytes));
       EXPECT_TRUE(all(now + kBytes, 3 * kBytes, 0));
       return now;
     },
     kBefore, kWritten},
    {"MremapShrinks",
     [](std::uint8_t* at) {
       EXPECT_EQ(remap(at, kBytes, 4096, 0), at);
       EXPECT_EQ(mapping_of(at + 4096).find("softnic-window"), std::string::npos);
       // Whole again, for what follows.
       EXPECT_NE(
           ::mmap(at + 4096, kBytes - 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
           MAP_FAILED);
       std::memset(at + 4096, kBefore, kBytes - 4096);
       return at;
     },
     kBefore, kBefore},
    {"Mlock",
     [](std::uint8_t* at) {
       if (::mlock(at, kBytes) == 0) {
         EXPECT_EQ(::munlock(at, kBytes), 0);
       }
       return at;
     },
     kBefore, kWritten},
    {"Mincore",
     [](std::uint8_t* at) {
       unsigned char pages[kBytes / 4096] = {};
       EXPECT_EQ(::mincore(at, kBytes, pages), 0);
       for (const unsigned char page : pages) EXPECT_EQ(page & 1, 1);
       return at;
     },
     kBefore, kWritten},
};

bool read_is(End& end, const Address& peer, std::size_t from, std::uint8_t value) {
  std::memset(end.memory->data(), 0, kBytes);
  EXPECT_EQ(end.post(IBV_WR_RDMA_READ, peer, from, kHalf), 0);
  return status_of(end.send_cq.get()) == IBV_WC_SUCCESS && all(end.memory->data() + from, kHalf, value);
}

bool write_half(End& end, const Address& peer) {
  std::memset(end.memory->data(), kWritten, kBytes);
  EXPECT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, kHalf, kHalf), 0);
  return status_of(end.send_cq.get()) == IBV_WC_SUCCESS;
}

EndOptions small(std::string device) {
  EndOptions options;
  options.device = std::move(device);
  options.buffer_bytes = kBytes;
  return options;
}

/// The memory's owner: with an area of its own, which it treats as it likes.
struct Owner {
  explicit Owner(End& end) {
    at = map_apart(kBytes, MAP_PRIVATE | MAP_ANONYMOUS);
    std::memset(at, kBefore, kBytes);
    mr.reset(register_memory(end.pd.get(), at, kBytes, kAllAccess));
  }
  std::uint8_t* at;
  Owned<ibv_mr> mr;
};

/// What the program finds must be what it would find with a NIC; and once the region has ended, its own
/// memory as it left it.
void check_row(const Row& row, Owner& owner, const std::function<bool(std::size_t, std::uint8_t)>& reads,
               const std::function<bool()>& writes) {
  std::uint8_t* const now = row.act(owner.at);
  const auto program_has = [&](int value, std::size_t from) { return value == kNone || all(now + from, kHalf, value); };
  EXPECT_TRUE(program_has(row.sees, 0));
  EXPECT_TRUE(reads(0, kBefore));
  EXPECT_TRUE(writes());
  EXPECT_TRUE(reads(kHalf, kWritten));
  EXPECT_TRUE(program_has(row.sees_writes, kHalf));
  const std::string before = mapping_of(now).substr(0, 3);
  owner.mr.reset();
  EXPECT_EQ(mapping_of(now).substr(0, 3), before);
  EXPECT_FALSE(in_window(now));
  EXPECT_TRUE(program_has(row.sees, 0));
  EXPECT_TRUE(program_has(row.sees_writes, kHalf));
  if (!before.empty()) ::munmap(now, kBytes);
}

class SoftnicMemory : public ::testing::TestWithParam<Row> {};

TEST_P(SoftnicMemory, InOneProcess) {
  Pair pair(small("soft0"), small("soft0"));
  Owner owner(pair.server);
  if (!in_window(owner.at)) GTEST_SKIP() << "pages cannot be moved here";
  Address target = pair.server.address();
  target.buffer = reinterpret_cast<std::uint64_t>(owner.at);
  target.rkey = owner.mr->rkey;
  check_row(GetParam(), owner,
            [&](std::size_t from, std::uint8_t value) {
              // By the remote key, and by the local one.
              ibv_sge sge{target.buffer + from, kHalf, owner.mr->lkey};
              std::memset(pair.client.memory->data(), 0, kBytes);
              EXPECT_EQ(pair.server.post(pair.server.request(IBV_WR_RDMA_WRITE, pair.client.address(), sge)), 0);
              return status_of(pair.server.send_cq.get()) == IBV_WC_SUCCESS &&
                     all(pair.client.memory->data(), kHalf, value) && read_is(pair.client, target, from, value);
            },
            [&] { return write_half(pair.client, target); });
}

TEST_P(SoftnicMemory, BetweenProcesses) {
  SecondProcess other([](int socket) {
    End end(small("soft0"));
    meet_parent(end, socket);
    const auto target = hear<Address>(socket);
    for (int from = hear<int>(socket); from >= 0; from = hear<int>(socket)) {
      const auto value = hear<std::uint8_t>(socket);
      tell(socket, value == 0 ? write_half(end, target) : read_is(end, target, static_cast<std::size_t>(from), value));
    }
  });
  End end(small("soft0"));
  meet(end, other);
  Owner owner(end);
  const bool moved = in_window(owner.at);
  Address target = end.address();
  target.buffer = reinterpret_cast<std::uint64_t>(owner.at);
  target.rkey = owner.mr->rkey;
  tell(other.socket(), target);
  const auto ask = [&](std::size_t from, std::uint8_t value) {
    tell(other.socket(), static_cast<int>(from));
    tell(other.socket(), value);
    return hear<bool>(other.socket());
  };
  if (moved) check_row(GetParam(), owner, ask, [&] { return ask(0, 0); });
  tell(other.socket(), -1);
  EXPECT_EQ(other.wait(), 0);
  if (!moved) GTEST_SKIP() << "pages cannot be moved here";
}

INSTANTIATE_TEST_SUITE_P(Rows, SoftnicMemory, ::testing::ValuesIn(kRows),
                         [](const ::testing::TestParamInfo<Row>& it) { return std::string(it.param.name); });

// An allocator that gives back what a registration cache still has registered, and counts on zeros.
TEST(SoftnicMemoryCache, FreedBlocksComeBackZeroed) {
  End end(small("soft0"));
  constexpr int kBlocks = 80;
  int dirty = 0;
  std::vector<std::unique_ptr<Owner>> owners;
  for (int i = 0; i < kBlocks; ++i) {
    owners.push_back(std::make_unique<Owner>(end));
    // Half of them only in part.
    std::uint8_t* const at = owners.back()->at + (i % 2 == 0 ? 0 : 4096);
    const std::size_t bytes = i % 2 == 0 ? kBytes : kHalf;
    ASSERT_EQ(::madvise(at, bytes, MADV_DONTNEED), 0);
    if (!all(at, bytes, 0)) ++dirty;
    // Used again, under a registration of its own.
    std::memset(at, 0x33, bytes);
    Owned<ibv_mr> again(register_memory(end.pd.get(), at, bytes, kAllAccess));
    EXPECT_TRUE(all(at, bytes, 0x33));
  }
  EXPECT_EQ(dirty, 0);
  for (int i = 0; i < kBlocks; ++i) {
    Owner& owner = *owners[static_cast<std::size_t>(i)];
    owner.mr.reset();
    EXPECT_TRUE(all(owner.at + 4096, kHalf, 0x33));
    ::munmap(owner.at, kBytes);
  }
}

// After whatever the program did before it: the child has what the program sees, and the parent's alone.
TEST(SoftnicMemoryFork, AChildHasCopiesOfWhatTheProgramSees) {
  End end(small("soft0"));
  Owner owner(end);
  if (!in_window(owner.at)) GTEST_SKIP() << "pages cannot be moved here";
  ASSERT_EQ(::madvise(owner.at, kBytes, MADV_DOFORK), 0);
  ASSERT_EQ(::madvise(owner.at, 4096, MADV_DONTNEED), 0);
  ASSERT_EQ(::munmap(owner.at + 8192, 4096), 0);
  ASSERT_EQ(::mprotect(owner.at + 16384, 4096, PROT_READ), 0);
  std::uint8_t* const away = remap(owner.at + kHalf, kHalf, kHalf, MREMAP_MAYMOVE | MREMAP_FIXED, reserve(kHalf));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = all(owner.at, 4096, 0) && all(owner.at + 4096, 4096, kBefore) &&
                       mapping_of(owner.at + 8192).empty() && mapping_of(owner.at + 16384).rfind("r--p", 0) == 0 &&
                       all(away, kHalf, kBefore);
    std::memset(away, 1, kHalf);
    std::memset(owner.at + 4096, 1, 4096);
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all(away, kHalf, kBefore));
  EXPECT_TRUE(all(owner.at + 4096, 4096, kBefore));
  owner.mr.reset();
  EXPECT_TRUE(all(away, kHalf, kBefore));
  ::munmap(away, kHalf);
  ::munmap(owner.at, kHalf);
}

}  // namespace
}  // namespace softnic_test
