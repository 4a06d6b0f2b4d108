// A program that registers a page of doorbells with CUDA, as a device's registers: with a libcuda that refuses those.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlx5/devx.h"

namespace softnic_test {
namespace {

using Register = int(void* memory, std::size_t bytes, unsigned flags);
using Export = int(void* handle, std::uintptr_t memory, std::size_t bytes, int type, unsigned long long flags);
using Look = int(const char* name, void** found, int version, std::uint64_t flags, int* status);

TEST(SoftnicMlx5Cuda, ADoorbellsPageIsRegisteredAsMemory) {
  // Of a program that is linked to libcuda: its functions are found before all others of their names.
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(cuda, nullptr) << ::dlerror();
  // What is not of the device's business is libcuda's.
  ASSERT_NE(::dlsym(cuda, "cuInit"), nullptr);
  auto* const flags = static_cast<unsigned*>(::dlsym(cuda, "fake_cuda_flags"));
  ASSERT_NE(flags, nullptr);
  auto* const look = reinterpret_cast<Look*>(::dlsym(cuda, "cuGetProcAddress_v2"));
  ASSERT_NE(look, nullptr);
  void* again = nullptr;
  ASSERT_EQ(look("cuGetProcAddress", &again, 12000, 0, nullptr), 0);
  void* found = nullptr;
  ASSERT_EQ(reinterpret_cast<Look*>(again)("cuMemHostRegister", &found, 12000, 0, nullptr), 0);
  // As CUDA's runtime asks where a program is linked to libcuda.
  void* const there = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(::dlsym(there, "cuMemHostRegister_v2"), ::dlsym(cuda, "cuMemHostRegister_v2"));
  HandPair hand;
  void* const page = hand.qp.rings().bf.reg;
  void* const other = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (Register* const it :
       {reinterpret_cast<Register*>(found), reinterpret_cast<Register*>(::dlsym(cuda, "cuMemHostRegister_v2"))}) {
    ASSERT_NE(it, nullptr);
    EXPECT_EQ(it(page, 8, 1 | 2 | 4), 0);
    EXPECT_EQ(*flags, 3u);
    EXPECT_EQ(it(page, 8, 3), 0);
    // Of all other memory nothing is changed.
    EXPECT_EQ(it(other, 4096, 4), 1);
    EXPECT_EQ(*flags, 4u);
    EXPECT_EQ(it(hand.qp.rings().sq.buf, 64, 4), 1);
  }
  ::munmap(other, 4096);
}

TEST(SoftnicMlx5Cuda, QueuesInMemoryThatADmabufNames) {
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(cuda, nullptr) << ::dlerror();
  auto* const look = reinterpret_cast<Look*>(::dlsym(cuda, "cuGetProcAddress_v2"));
  void* found = nullptr;
  ASSERT_EQ(look("cuMemGetHandleForAddressRange", &found, 11070, 0, nullptr), 0);
  constexpr std::size_t kBefore = 4096;
  const Mlx5Library& library = Mlx5Library::get();
  for (Export* const it : {reinterpret_cast<Export*>(found),
                           reinterpret_cast<Export*>(::dlsym(cuda, "cuMemGetHandleForAddressRange"))}) {
    ASSERT_NE(it, nullptr);
    const auto by_dmabuf = [&](ibv_context* context, void* memory, std::size_t bytes) {
      int dmabuf = -1;
      EXPECT_EQ(it(&dmabuf, reinterpret_cast<std::uintptr_t>(memory) - kBefore, kBefore + bytes, 1, 0), 0);
      UmemIn in{reinterpret_cast<void*>(kBefore), bytes, IBV_ACCESS_LOCAL_WRITE, 4096, 1, dmabuf};
      mlx5dv_devx_umem* const umem = library.umem_reg_ex(context, &in);
      // Beyond its end; and a file that is of no memory that is known.
      ++in.bytes;
      EXPECT_EQ(library.umem_reg_ex(context, &in), nullptr);
      in.dmabuf = ::memfd_create("other", MFD_CLOEXEC);
      EXPECT_EQ(library.umem_reg_ex(context, &in), nullptr);
      EXPECT_EQ(errno, EOPNOTSUPP);
      ::close(in.dmabuf);
      ::close(dmabuf);
      return umem;
    };
    DevxEnd client("mlx0", false, false, by_dmabuf), server;
    connect(client, server);
    HandQp qp = client.hand();
    HandCq done = client.hand_cq();
    client.memory.fill(7);
    Wqe write;
    write.remote = server.memory.address();
    write.rkey = server.memory.mr()->rkey;
    write.sges = {client.memory.sge(0, 64)};
    qp.post(write);
    const auto cqe = done.next();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe_opcode(*cqe), MLX5_CQE_REQ) << int(syndrome(*cqe));
    EXPECT_TRUE(server.memory.holds(7, 0, 64));
  }
}

/// Programs round lengths up, beyond what they have allocated: a NIC maps the GPU's whole pages.
TEST(SoftnicMlx5Cuda, ADmabufOfMoreThanWasAllocated) {
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(cuda, nullptr) << ::dlerror();
  constexpr std::size_t kPage = 65536, kAllocated = 1032, kRounded = 1040;
  void* const memory = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::uint64_t address = (reinterpret_cast<std::uint64_t>(memory) + kPage - 1) / kPage * kPage;
  *static_cast<std::uint64_t*>(::dlsym(cuda, "fake_cuda_begin")) = address;
  *static_cast<std::size_t*>(::dlsym(cuda, "fake_cuda_bytes")) = kAllocated;
  const auto context = open_device("mlx0");
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  const int dmabuf = ::memfd_create("dmabuf", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(dmabuf, 2 * kPage), 0);
  ibv_mr* const mr = reg_dmabuf_mr(pd.get(), 0, kRounded, address, dmabuf, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_NE(mr, nullptr);
  if (mr != nullptr) {
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
  EXPECT_EQ(reg_dmabuf_mr(pd.get(), 0, kPage + 1, address, dmabuf, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  *static_cast<std::size_t*>(::dlsym(cuda, "fake_cuda_bytes")) = 0;
  ::close(dmabuf);
  ::munmap(memory, 2 * kPage);
}

/// A program may give its region another address: what memory the dma-buf is, CUDA's answer said.
TEST(SoftnicMlx5Cuda, ARegionOfADmabufAtAnAddressOfItsOwn) {
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(cuda, nullptr) << ::dlerror();
  constexpr std::size_t kBytes = 65536, kAt = 4096;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  *static_cast<std::uint64_t*>(::dlsym(cuda, "fake_cuda_begin")) = reinterpret_cast<std::uint64_t>(memory);
  *static_cast<std::size_t*>(::dlsym(cuda, "fake_cuda_bytes")) = kBytes;
  auto* const give = reinterpret_cast<Export*>(::dlsym(cuda, "cuMemGetHandleForAddressRange"));
  int dmabuf = -1;
  ASSERT_EQ(give(&dmabuf, reinterpret_cast<std::uintptr_t>(memory), kBytes, 1, 0), 0);
  HandPair hand;
  ibv_pd* const pd = hand.pair.server.pd.get();
  EXPECT_EQ(reg_dmabuf_mr(pd, kAt, kBytes, 0, dmabuf, kAllAccess), nullptr) << "beyond its end";
  const Owned<ibv_mr> mr(reg_dmabuf_mr(pd, kAt, kBytes - kAt, 0, dmabuf, kAllAccess));
  ASSERT_NE(mr, nullptr) << std::strerror(errno);
  hand.pair.client.memory->fill(7);
  Wqe write;
  write.remote = 64;
  write.rkey = mr->rkey;
  write.sges = {hand.pair.client.memory->sge(0, 32)};
  hand.qp.post(write);
  const auto cqe = hand.cq.next();
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe_opcode(*cqe), MLX5_CQE_REQ) << int(syndrome(*cqe));
  const auto* bytes = static_cast<const std::uint8_t*>(memory) + kAt;
  EXPECT_EQ(bytes[63], 0);
  EXPECT_EQ(std::memcmp(bytes + 64, hand.pair.client.memory->data(), 32), 0);
  EXPECT_EQ(bytes[96], 0);
  *static_cast<std::size_t*>(::dlsym(cuda, "fake_cuda_bytes")) = 0;
  ::close(dmabuf);
  ::munmap(memory, kBytes);
}

/// GPU memory that CUDA does not share with other processes is reached through its owner's: also by atomics.
TEST(SoftnicMlx5Cuda, MemoryOfAnotherProcessThatCannotBeShared) {
  constexpr std::size_t kBytes = 65536;
  // Here, too: who has no driver asks the owner for all memory of GPUs.
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(cuda, nullptr) << ::dlerror();
  SecondProcess other([cuda](int socket) {
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    *static_cast<std::uint64_t*>(::dlsym(cuda, "fake_cuda_begin")) = reinterpret_cast<std::uint64_t>(memory);
    *static_cast<std::size_t*>(::dlsym(cuda, "fake_cuda_bytes")) = kBytes;
    End end({.device = "mlx0"});
    const Owned<ibv_mr> mr(ibv_reg_mr_iova(end.pd.get(), memory, kBytes, 0, kAllAccess));
    ASSERT_NE(mr, nullptr) << std::strerror(errno);
    Address own = end.address();
    own.buffer = 0;
    own.rkey = mr->rkey;
    tell(socket, own);
    ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
    tell(socket, 1);
    hear<int>(socket);
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<std::uint8_t*>(memory) + 64, sizeof word);
    EXPECT_EQ(word, 10u);
    EXPECT_EQ(static_cast<std::uint8_t*>(memory)[128], 7);
  });
  End end({.device = "mlx0"});
  tell(other.socket(), end.address());
  const auto peer = hear<Address>(other.socket());
  ASSERT_EQ(end.connect(peer), 0);
  ASSERT_EQ(hear<int>(other.socket()), 1);
  end.memory->fill(7);
  ibv_sge sge = end.memory->sge(0, 1);
  ibv_send_wr write = end.request(IBV_WR_RDMA_WRITE, peer, sge);
  write.wr.rdma.remote_addr = 128;
  ASSERT_EQ(end.post(write), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    ibv_sge word = end.memory->sge(1024, 8);
    ibv_send_wr add = end.request(IBV_WR_ATOMIC_FETCH_AND_ADD, peer, word);
    add.wr.atomic.remote_addr = 64;
    add.wr.atomic.rkey = peer.rkey;
    add.wr.atomic.compare_add = 5;
    ASSERT_EQ(end.post(add), 0);
    EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  }
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace softnic_test
