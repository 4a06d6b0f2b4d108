// Memory that is not just an area of its own: unaligned, a stack, a file, shared. What the program unmaps is still
// the device's where its pages are pinned; where they cannot be, a request fails and nobody crashes.

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "fixture.h"

namespace softnic_test {
namespace {

constexpr std::size_t kAreaBytes = 64 << 10;
constexpr std::size_t kUsed = 8000;
constexpr std::uint8_t kInArea = 0xa1;

enum class Place { kUnaligned, kSharedAnonymous, kSharedFile, kPrivateFile, kStays, kOnDemand };

struct Spot {
  const char* name;
  Place place;
  bool pinned;
};
const Spot kSpots[] = {
    {"Unaligned", Place::kUnaligned, true},
    {"SharedAnonymous", Place::kSharedAnonymous, true},
    {"SharedFile", Place::kSharedFile, true},
    {"PrivateFile", Place::kPrivateFile, false},
    {"MoveNever", Place::kStays, false},
    {"OnDemand", Place::kOnDemand, false},
};

EndOptions options_for(Place place) {
  EndOptions options;
  options.device = place == Place::kStays ? "stay0" : "soft0";
  options.buffer_bytes = kAreaBytes;
  return options;
}

/// An area of kAreaBytes at that place, kUsed of which from byte 100 on are registered.
struct Area {
  Area(Place place, ibv_pd* pd) {
    const bool file = place == Place::kSharedFile || place == Place::kPrivateFile;
    const bool shared = place == Place::kSharedFile || place == Place::kSharedAnonymous;
    if (file) {
      fd = ::memfd_create("softnic-test", 0);
      EXPECT_EQ(::ftruncate(fd, kAreaBytes), 0);
    }
    const int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | (file ? 0 : MAP_ANONYMOUS);
    at = map_apart(kAreaBytes, flags, fd);
    std::memset(at, kInArea, kAreaBytes);
    mr.reset(register_memory(pd, at + 100, kUsed, kAllAccess | (place == Place::kOnDemand ? IBV_ACCESS_ON_DEMAND : 0)));
    EXPECT_NE(mr, nullptr);
  }
  ~Area() {
    mr.reset();
    ::munmap(at, kAreaBytes);
    if (fd >= 0) ::close(fd);
  }
  Address of(End& end) const {
    Address address = end.address();
    address.buffer = reinterpret_cast<std::uint64_t>(at) + 100;
    address.rkey = mr->rkey;
    return address;
  }
  ibv_sge sge() const { return {reinterpret_cast<std::uint64_t>(at) + 100, kUsed, mr->lkey}; }
  int fd = -1;
  std::uint8_t* at;
  Owned<ibv_mr> mr;
};

bool area_holds(const std::uint8_t* bytes, std::uint8_t value) {
  for (std::size_t i = 0; i < kUsed; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

class SoftnicPlaces : public ::testing::TestWithParam<Spot> {};

TEST_P(SoftnicPlaces, AllGoesThere) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  pair.client.memory->fill(5);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, area.of(pair.server), 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(area.at + 100, pair.client.memory->data(), kUsed), 0);
  EXPECT_EQ(area.at[99], kInArea);
  EXPECT_EQ(area.at[100 + kUsed], kInArea);
  std::memset(area.at + 100, 0x77, kUsed);
  ibv_sge sge = area.sge();
  EXPECT_EQ(pair.client.post_recv(0, kUsed), 0);
  EXPECT_EQ(pair.server.post(pair.server.request(IBV_WR_SEND, pair.client.address(), sge)), 0);
  EXPECT_EQ(status_of(pair.server.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(pair.client.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(area_holds(pair.client.memory->data(), 0x77));
}

TEST_P(SoftnicPlaces, UnmappedAndReadByTheRemoteKey) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  ASSERT_EQ(::munmap(area.at, kAreaBytes), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_READ, area.of(pair.server), 0, kUsed), 0);
  const ibv_wc_status status = status_of(pair.client.send_cq.get());
  EXPECT_EQ(status, GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
  if (GetParam().pinned) {
    EXPECT_TRUE(area_holds(pair.client.memory->data(), kInArea));
  }
}

TEST_P(SoftnicPlaces, UnmappedAndWrittenByTheRemoteKey) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  ASSERT_EQ(::munmap(area.at, kAreaBytes), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, area.of(pair.server), 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
}

TEST_P(SoftnicPlaces, UnmappedAndSentByTheLocalKey) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  ASSERT_EQ(::munmap(area.at, kAreaBytes), 0);
  ibv_sge sge = area.sge();
  EXPECT_EQ(pair.server.post(pair.server.request(IBV_WR_RDMA_WRITE, pair.client.address(), sge)), 0);
  EXPECT_EQ(status_of(pair.server.send_cq.get()), GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
  if (GetParam().pinned) {
    EXPECT_TRUE(area_holds(pair.client.memory->data(), kInArea));
  }
  // The peer hears nothing of the sender's own mistake.
  EXPECT_EQ(pair.client.state(), IBV_QPS_RTS);
}

TEST_P(SoftnicPlaces, UnmappedAndReadInto) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  ASSERT_EQ(::munmap(area.at, kAreaBytes), 0);
  ibv_sge sge = area.sge();
  EXPECT_EQ(pair.server.post(pair.server.request(IBV_WR_RDMA_READ, pair.client.address(), sge)), 0);
  EXPECT_EQ(status_of(pair.server.send_cq.get()), GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
}

TEST_P(SoftnicPlaces, UnmappedAndReceivedInto) {
  const Place place = GetParam().place;
  Pair pair(options_for(place), options_for(place));
  const Area area(place, pair.server.pd.get());
  ASSERT_EQ(::munmap(area.at, kAreaBytes), 0);
  ibv_sge sge = area.sge();
  ibv_recv_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.server.qp.get(), &wr, &bad), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), GetParam().pinned ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
}

INSTANTIATE_TEST_SUITE_P(Places, SoftnicPlaces, ::testing::ValuesIn(kSpots),
                         [](const ::testing::TestParamInfo<Spot>& it) { return std::string(it.param.name); });

TEST(SoftnicPlace, AStackAndAtomicsOnIt) {
  Pair pair;
  alignas(8) std::array<std::uint64_t, 4> words{7, 0, 0, 0};
  Owned<ibv_mr> mr(register_memory(pair.server.pd.get(), words.data(), sizeof words, kAllAccess));
  Address target = pair.server.address();
  target.buffer = reinterpret_cast<std::uint64_t>(words.data());
  target.rkey = mr->rkey;
  ibv_sge sge = pair.client.memory->sge(0, 8);
  ibv_send_wr wr = pair.client.request(IBV_WR_ATOMIC_FETCH_AND_ADD, target, sge);
  wr.wr.atomic.remote_addr = target.buffer;
  wr.wr.atomic.rkey = target.rkey;
  wr.wr.atomic.compare_add = 3;
  ASSERT_EQ(pair.client.post(wr), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(words[0], 10u);
}

// A file that becomes shorter takes its pages along; a NIC would have kept them.
TEST(SoftnicPlace, ATruncatedFileIsAnErrorAndNoSignal) {
  Pair pair(options_for(Place::kSharedFile), options_for(Place::kSharedFile));
  const Area area(Place::kSharedFile, pair.server.pd.get());
  ASSERT_EQ(::ftruncate(area.fd, 0), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_READ, area.of(pair.server), 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_OP_ERR);
}

// A userfaultfd of the program's: its pages are not moved from under its handler.
TEST(SoftnicPlace, UnderAUserfaultfdOfThePrograms) {
  const int watcher = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  if (watcher < 0) GTEST_SKIP() << "userfaultfd: " << std::strerror(errno);
  uffdio_api api{};
  api.api = UFFD_API;
  ASSERT_EQ(::ioctl(watcher, UFFDIO_API, &api), 0);
  Pair pair(options_for(Place::kUnaligned), options_for(Place::kUnaligned));
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* const at = static_cast<std::uint8_t*>(::mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  std::memset(at, kInArea, kAreaBytes);
  uffdio_register area{};
  area.range = {reinterpret_cast<std::uint64_t>(at), kAreaBytes};
  area.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(::ioctl(watcher, UFFDIO_REGISTER, &area), 0);
  Owned<ibv_mr> mr(register_memory(pair.server.pd.get(), at, kAreaBytes, kAllAccess));
  ASSERT_NE(mr, nullptr);
  Address target = pair.server.address();
  target.buffer = reinterpret_cast<std::uint64_t>(at);
  target.rkey = mr->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, target, 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(area_holds(pair.client.memory->data(), kInArea));
  EXPECT_EQ(::ioctl(watcher, UFFDIO_UNREGISTER, &area.range), 0);
  mr.reset();
  ::munmap(at, kAreaBytes);
  ::close(watcher);
}

// Implicit paging on demand: a key for whatever the program has, and nothing behind it is an error.
TEST(SoftnicPlace, AllOfTheProgramsMemory) {
  Pair pair;
  const int rights = kAllAccess | IBV_ACCESS_ON_DEMAND;
  EXPECT_EQ(register_memory(pair.server.pd.get(), pair.server.memory->data(), SIZE_MAX, rights), nullptr);
  Owned<ibv_mr> mr(register_memory(pair.server.pd.get(), nullptr, SIZE_MAX, rights));
  ASSERT_NE(mr, nullptr) << std::strerror(errno);
  std::vector<std::uint8_t> later(kUsed, kInArea);
  Address target = pair.server.address();
  target.buffer = reinterpret_cast<std::uint64_t>(later.data());
  target.rkey = mr->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, target, 0, kUsed), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(area_holds(pair.client.memory->data(), kInArea));
  ibv_sge sge{target.buffer, kUsed, mr->lkey};
  ASSERT_EQ(pair.server.post(pair.server.request(IBV_WR_RDMA_READ, pair.client.address(), sge)), 0);
  EXPECT_EQ(status_of(pair.server.send_cq.get()), IBV_WC_SUCCESS);
  target.buffer = 4096;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_OP_ERR);
}

TEST(SoftnicPlace, ANullRegionDoesNotKeepItsDomain) {
  const Owned<ibv_context> context = open_device("soft0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  Owned<ibv_mr> mr(ibv_alloc_null_mr(pd.get()));
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd.release()), 0);
  mr.reset();
}

// Two regions that share a page, and what the program keeps beside them.
TEST(SoftnicPlace, RegionsOfOnePage) {
  End end;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* page = static_cast<std::uint8_t*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  std::memset(page, 1, 8192);
  Owned<ibv_mr> first(register_memory(end.pd.get(), page + 8, 64, kAllAccess));
  Owned<ibv_mr> second(register_memory(end.pd.get(), page + 4090, 64, kAllAccess));
  std::memset(page, 2, 8192);
  first.reset();
  EXPECT_EQ(page[0], 2);
  page[1] = 3;
  second.reset();
  EXPECT_EQ(page[1], 3);
  EXPECT_EQ(page[8191], 2);
  ::munmap(page, 8192);
}

constexpr std::size_t kHugePage = 2u << 20;

std::uint8_t* aligned_area(int flags, int fd) {
  void* const all = ::mmap(nullptr, 3 * kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto at = (reinterpret_cast<std::uintptr_t>(all) + kHugePage - 1) / kHugePage * kHugePage;
  return static_cast<std::uint8_t*>(
      ::mmap(reinterpret_cast<void*>(at), kHugePage, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0));
}

/// KiB of the mapping at `address` that are huge pages of a memfd.
long huge_kib(const std::uint8_t* address) {
  std::ifstream file("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(file, line)) {
    unsigned long begin = 0;
    unsigned long end = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= at && at < end;
    if (here && line.starts_with("ShmemPmdMapped:")) return std::stol(line.substr(15));
  }
  return 0;
}

bool kernel_makes_huge_pages() {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  const int fd = ::memfd_create("softnic-test", 0);
  EXPECT_EQ(::ftruncate(fd, kHugePage), 0);
  std::uint8_t* const at = aligned_area(MAP_SHARED, fd);
  *at = 1;
  const bool made = ::madvise(at, kHugePage, kCollapse) == 0 && huge_kib(at) > 0;
  ::munmap(at, kHugePage);
  ::close(fd);
  return made;
}

// Moved pages lie in huge ones, where a whole one is moved and the kernel has them: copies take fewer entries of the
// TLB.
TEST(SoftnicPlace, WholeHugePagesAreMovedToHugePages) {
  if (!kernel_makes_huge_pages()) GTEST_SKIP() << "no MADV_COLLAPSE of shared memory here (Linux 6.1)";
  End end;
  std::uint8_t* const at = aligned_area(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  std::memset(at, kInArea, kHugePage);
  Owned<ibv_mr> mr(register_memory(end.pd.get(), at, kHugePage, kAllAccess));
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(std::count(at, at + kHugePage, kInArea), static_cast<std::ptrdiff_t>(kHugePage));
  EXPECT_EQ(huge_kib(at), static_cast<long>(kHugePage / 1024));
  mr.reset();
  EXPECT_EQ(std::count(at, at + kHugePage, kInArea), static_cast<std::ptrdiff_t>(kHugePage));
  ::munmap(at, kHugePage);
}

}  // namespace
}  // namespace softnic_test
