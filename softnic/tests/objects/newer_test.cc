#include <cerrno>
#include <cstring>

#include "fixture.h"

/// Null MRs, and objects of later versions of libibverbs: found by name, since the
/// headers here may not have them.
namespace softnic_test {
namespace {

TEST(SoftnicNullMr, ReadsAsZerosAndTakesWhatIsWritten) {
  Pair pair;
  ibv_mr* const nowhere = ibv_alloc_null_mr(pair.client.pd.get());
  ASSERT_NE(nowhere, nullptr);
  // Between two pieces of memory, at any address.
  pair.client.memory->fill(5);
  pair.server.memory->fill(9);
  ibv_sge pieces[] = {
      pair.client.memory->sge(0, 16), {0x123456789ull, 100, nowhere->lkey}, pair.client.memory->sge(16, 16)};
  ibv_send_wr request = pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), pieces[0]);
  request.num_sge = 3;
  ASSERT_EQ(pair.client.post(request), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  const std::uint8_t* const there = pair.server.memory->data();
  EXPECT_EQ(std::memcmp(there, pair.client.memory->data(), 16), 0);
  for (int i = 16; i < 116; ++i) EXPECT_EQ(there[i], 0) << i;
  EXPECT_EQ(std::memcmp(there + 116, pair.client.memory->data() + 16, 16), 0);
  // The other way only the ends arrive, and later reads find zeros.
  pair.server.memory->fill(7);
  request.opcode = IBV_WR_RDMA_READ;
  ASSERT_EQ(pair.client.post(request), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(there + 116, pair.client.memory->data() + 16, 16), 0);
  EXPECT_EQ(pair.client.memory->data()[40], static_cast<std::uint8_t>(5 + 40 * 7));
  request.opcode = IBV_WR_RDMA_WRITE;
  ASSERT_EQ(pair.client.post(request), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(there[50], 0);
  EXPECT_EQ(ibv_dereg_mr(nowhere), 0);
  ASSERT_EQ(pair.client.post(request), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_LOC_PROT_ERR);
}

TEST(SoftnicNullMr, AReceiveDropsWhatGoesThere) {
  Pair pair;
  ibv_mr* const nowhere = ibv_alloc_null_mr(pair.server.pd.get());
  ASSERT_NE(nowhere, nullptr);
  pair.client.memory->fill(5);
  ibv_sge pieces[] = {{0, 4096, nowhere->lkey}, pair.server.memory->sge(0, 32)};
  ibv_recv_wr receive{};
  receive.sg_list = pieces;
  receive.num_sge = 2;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.server.qp.get(), &receive, &bad), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 4096 + 32), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(pair.server.memory->data(), pair.client.memory->data() + 4096, 32), 0);
  // It is no memory for others.
  Address wrong = pair.server.address();
  wrong.rkey = nowhere->lkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, wrong, 0, 8), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(nowhere), 0);
}

struct LaterBuffer;
struct LaterHandle;
/// As ibv_dmah_init_attr and ibv_mr_init_attr.
struct LaterHandleRequest {
  std::uint32_t comp_mask, cpu_id;
  std::uint8_t ph, tph_mem_type;
};
struct LaterMrRequest {
  std::size_t length;
  int access;
  std::uint64_t comp_mask, iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  LaterHandle* dmah;
  LaterBuffer* buf;
};

TEST(SoftnicNewer, BuffersAreAllocatedAndRegistered) {
  End end;
  const auto alloc_buf = later<void*(ibv_pd*, std::size_t, LaterBuffer**)>("ibv_alloc_buf");
  const auto reg_buf_mr = later<ibv_mr*(ibv_pd*, LaterBuffer*, void*, std::size_t, int)>("ibv_reg_buf_mr");
  LaterBuffer* buffer = nullptr;
  auto* const memory = static_cast<std::uint8_t*>(alloc_buf(end.pd.get(), 8192, &buffer));
  ASSERT_NE(memory, nullptr);
  ibv_mr* const mr = reg_buf_mr(end.pd.get(), buffer, memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory + 4096);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(reg_buf_mr(end.pd.get(), buffer, memory + 4096, 4097, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  const Owned<ibv_pd> other(ibv_alloc_pd(end.context.get()));
  EXPECT_EQ(reg_buf_mr(other.get(), buffer, memory, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(later<int(LaterBuffer*)>("ibv_export_buf_dmabuf_fd")(buffer), -1);
  EXPECT_EQ(errno, ENODATA);
  later<void(LaterBuffer*)>("ibv_free_buf")(buffer);
}

TEST(SoftnicNewer, DmaHandlesGoWithRegions) {
  End end;
  const auto alloc_dmah = later<LaterHandle*(ibv_context*, LaterHandleRequest*)>("ibv_alloc_dmah");
  LaterHandleRequest request{7, 0, 3, 1};
  LaterHandle* const handle = alloc_dmah(end.context.get(), &request);
  ASSERT_NE(handle, nullptr);
  LaterMrRequest region{4096, IBV_ACCESS_LOCAL_WRITE, 2 | 16, 0, end.memory->data(), -1, 0, handle, nullptr};
  const auto reg_mr_ex = later<ibv_mr*(ibv_pd*, LaterMrRequest*)>("ibv_reg_mr_ex");
  ibv_mr* const mr = reg_mr_ex(end.pd.get(), &region);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  region.access |= IBV_ACCESS_ON_DEMAND;
  EXPECT_EQ(reg_mr_ex(end.pd.get(), &region), nullptr);
  EXPECT_EQ(later<int(LaterHandle*)>("ibv_dealloc_dmah")(handle), 0);
  for (const LaterHandleRequest& wrong : {LaterHandleRequest{2, 0, 4, 0}, {4, 0, 0, 2}, {1, 0xffff, 0, 0}}) {
    LaterHandleRequest copy = wrong;
    EXPECT_EQ(alloc_dmah(end.context.get(), &copy), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST(SoftnicNewer, DeviceMemoryIsNoDmaBuf) {
  End end;
  ibv_alloc_dm_attr attr{};
  attr.length = 64;
  ibv_dm* const memory = ibv_alloc_dm(end.context.get(), &attr);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(later<int(ibv_dm*)>("ibv_dm_export_dmabuf_fd")(memory), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_free_dm(memory), 0);
}

}  // namespace
}  // namespace softnic_test
