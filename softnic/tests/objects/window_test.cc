// Memory windows: bound and withdrawn by requests, from either end.

#include <cerrno>

#include "fixture.h"

namespace softnic_test {
namespace {

struct DeallocMw {
  void operator()(ibv_mw* it) const { EXPECT_EQ(ibv_dealloc_mw(it), 0); }
};
using OwnedMw = std::unique_ptr<ibv_mw, DeallocMw>;

EndOptions windowed() {
  EndOptions options;
  // The region itself is closed to the peer.
  options.buffer_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
  return options;
}

/// A request that binds `mw` to [offset, offset + length) of the buffer.
ibv_send_wr bind_request(End& end, ibv_mw* mw, std::uint32_t key, std::size_t offset, std::size_t length,
                         unsigned access) {
  ibv_send_wr wr{};
  wr.wr_id = 77;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = key;
  wr.bind_mw.bind_info = {end.memory->mr(), end.memory->address(offset), length, access};
  return wr;
}

ibv_send_wr invalidate(ibv_wr_opcode opcode, std::uint32_t key) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = key;
  return wr;
}

/// A server whose window of type 2 covers bytes 4096 to 8192 of its buffer.
struct Bound {
  explicit Bound(unsigned access = IBV_ACCESS_REMOTE_WRITE) : pair({}, windowed()) {
    mw.reset(ibv_alloc_mw(pair.server.pd.get(), IBV_MW_TYPE_2));
    EXPECT_NE(mw, nullptr);
    key = ibv_inc_rkey(mw->rkey);
    EXPECT_EQ(pair.server.post(bind_request(pair.server, mw.get(), key, 4096, 4096, access)), 0);
    const auto done = next_completion(pair.server.send_cq.get());
    EXPECT_TRUE(done && done->status == IBV_WC_SUCCESS && done->opcode == IBV_WC_BIND_MW && done->wr_id == 77);
    target = pair.server.address();
    target.rkey = key;
  }
  Pair pair;
  OwnedMw mw;
  std::uint32_t key = 0;
  Address target;
};

TEST(SoftnicWindow, OpensItsPartOfARegion) {
  Bound it;
  it.pair.client.memory->fill(3);
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_WRITE, it.target, 4096, 4096), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(it.pair.server.memory->holds(3, 4096, 4096));
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_WRITE, it.target, 4095, 64), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, HasRightsOfItsOwn) {
  Bound it;
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_READ, it.target, 4096, 64), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, IsNoLocalKeyAndNobodyElsesKey) {
  Bound it;
  ibv_sge sge = it.pair.server.memory->sge(4096, 64);
  sge.lkey = it.key;
  ASSERT_EQ(it.pair.server.post(it.pair.server.request(IBV_WR_RDMA_WRITE, it.pair.client.address(), sge)), 0);
  EXPECT_EQ(status_of(it.pair.server.send_cq.get()), IBV_WC_LOC_PROT_ERR);

  // Another QP of the same domain: a window of type 2 belongs to one.
  Bound other;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = other.pair.server.send_cq.get();
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {4, 4, 1, 1, 0};
  other.pair.server.qp.swap(other.pair.client.qp);  // keeps the first alive at the other end's place
  Owned<ibv_qp> first = std::move(other.pair.client.qp);
  Owned<ibv_qp> old_client = std::move(other.pair.server.qp);
  other.pair.server.qp.reset(ibv_create_qp(other.pair.server.pd.get(), &attr));
  attr.send_cq = attr.recv_cq = other.pair.client.send_cq.get();
  other.pair.client.qp.reset(ibv_create_qp(other.pair.client.pd.get(), &attr));
  ASSERT_EQ(other.pair.server.to_init(), 0);
  ASSERT_EQ(other.pair.client.to_init(), 0);
  ASSERT_EQ(other.pair.server.connect(other.pair.client.address()), 0);
  ASSERT_EQ(other.pair.client.connect(other.pair.server.address()), 0);
  ibv_sge from = other.pair.client.memory->sge(0, 64);
  ibv_send_wr wr = other.pair.client.request(IBV_WR_RDMA_WRITE, other.target, from);
  wr.wr.rdma.remote_addr += 4096;
  ASSERT_EQ(other.pair.client.post(wr), 0);
  EXPECT_EQ(status_of(other.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, ClosesWhenItsOwnerSaysSo) {
  Bound it;
  ASSERT_EQ(it.pair.server.post(invalidate(IBV_WR_LOCAL_INV, it.key)), 0);
  const auto done = next_completion(it.pair.server.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_SUCCESS);
  EXPECT_EQ(done->opcode, IBV_WC_LOCAL_INV);
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_WRITE, it.target, 4096, 64), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, ClosesWithASendOfThePeer) {
  Bound it;
  ASSERT_EQ(it.pair.server.post_recv(0, 64, 5), 0);
  ibv_sge sge = it.pair.client.memory->sge(0, 64);
  ibv_send_wr wr = invalidate(IBV_WR_SEND_WITH_INV, it.key);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ASSERT_EQ(it.pair.client.post(wr), 0);
  const auto sent = next_completion(it.pair.client.send_cq.get());
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent->opcode, IBV_WC_SEND);
  const auto received = next_completion(it.pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->wc_flags & IBV_WC_WITH_INV, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(received->invalidated_rkey, it.key);
  EXPECT_EQ(received->byte_len, 64u);
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_WRITE, it.target, 4096, 64), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, APeerMayCloseNothingElse) {
  Bound it;
  ASSERT_EQ(it.pair.server.post_recv(0, 64, 5), 0);
  // A region is not to be withdrawn by a peer.
  ASSERT_EQ(it.pair.client.post(invalidate(IBV_WR_SEND_WITH_INV, it.pair.server.memory->mr()->rkey)), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(status_of(it.pair.server.recv_cq.get()), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(it.pair.server.state(), IBV_QPS_ERR);
}

TEST(SoftnicWindow, WrongBindsFail) {
  enum class Why { kBoundAlready, kRange, kNoRight, kOtherKey, kUnknownKeyWithdrawn };
  for (const Why why : {Why::kBoundAlready, Why::kRange, Why::kNoRight, Why::kOtherKey, Why::kUnknownKeyWithdrawn}) {
    Bound it;
    End& server = it.pair.server;
    OwnedMw fresh(ibv_alloc_mw(server.pd.get(), IBV_MW_TYPE_2));
    Memory closed(server.pd.get(), 4096, IBV_ACCESS_LOCAL_WRITE);
    ibv_send_wr wr = bind_request(server, fresh.get(), ibv_inc_rkey(fresh->rkey), 0, 64, IBV_ACCESS_REMOTE_READ);
    if (why == Why::kBoundAlready) wr = bind_request(server, it.mw.get(), it.key, 0, 64, IBV_ACCESS_REMOTE_READ);
    if (why == Why::kRange) wr.bind_mw.bind_info.length = server.memory->size() + 1;
    if (why == Why::kNoRight) wr.bind_mw.bind_info = {closed.mr(), closed.address(), 64, IBV_ACCESS_REMOTE_READ};
    if (why == Why::kOtherKey) wr.bind_mw.rkey ^= 0x100;
    if (why == Why::kUnknownKeyWithdrawn) wr = invalidate(IBV_WR_LOCAL_INV, fresh->rkey);
    ASSERT_EQ(server.post(wr), 0);
    EXPECT_EQ(status_of(server.send_cq.get()), IBV_WC_MW_BIND_ERR) << static_cast<int>(why);
    EXPECT_EQ(server.state(), IBV_QPS_ERR);
  }
}

TEST(SoftnicWindow, ARegionWithWindowsStays) {
  Bound it;
  ibv_mr* region = it.pair.server.memory->mr();
  EXPECT_EQ(ibv_dereg_mr(region), EBUSY);
  errno = 0;
  EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EBUSY);
  it.mw.reset();
  ASSERT_EQ(it.pair.client.post(IBV_WR_RDMA_WRITE, it.target, 4096, 64), 0);
  EXPECT_EQ(status_of(it.pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, TypeOneIsBoundByACallAndRebound) {
  Pair pair({}, windowed());
  End& server = pair.server;
  OwnedMw mw(ibv_alloc_mw(server.pd.get(), IBV_MW_TYPE_1));
  ASSERT_NE(mw, nullptr);
  // Type 1 is not for requests, type 2 not for the call.
  EXPECT_EQ(server.post(bind_request(server, mw.get(), mw->rkey, 0, 64, IBV_ACCESS_REMOTE_WRITE)), EINVAL);
  ibv_mw_bind bind{};
  bind.wr_id = 9;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {server.memory->mr(), server.memory->address(), 4096, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(server.qp.get(), mw.get(), &bind), 0);
  EXPECT_EQ(status_of(server.send_cq.get()), IBV_WC_SUCCESS);
  Address target = server.address();
  target.rkey = mw->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);

  bind.bind_info.addr += 8192;
  ASSERT_EQ(ibv_bind_mw(server.qp.get(), mw.get(), &bind), 0);
  EXPECT_EQ(status_of(server.send_cq.get()), IBV_WC_SUCCESS);
  target.rkey = mw->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 8192, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);

  bind.bind_info = {nullptr, 0, 0, 0};
  ASSERT_EQ(ibv_bind_mw(server.qp.get(), mw.get(), &bind), 0);
  EXPECT_EQ(status_of(server.send_cq.get()), IBV_WC_SUCCESS);
  target.rkey = mw->rkey;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, target, 8192, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
}

TEST(SoftnicWindow, WorksBetweenProcesses) {
  SecondProcess other([](int socket) {
    End end(windowed());
    tell(socket, end.address());
    ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
    OwnedMw mw(ibv_alloc_mw(end.pd.get(), IBV_MW_TYPE_2));
    const std::uint32_t key = ibv_inc_rkey(mw->rkey);
    ASSERT_EQ(end.post(bind_request(end, mw.get(), key, 0, 8192, IBV_ACCESS_REMOTE_WRITE)), 0);
    ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    ASSERT_EQ(end.post_recv(8192, 64), 0);
    tell(socket, key);
    const auto received = next_completion(end.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->invalidated_rkey, key);
    EXPECT_TRUE(end.memory->holds(6, 0, 8192));
    tell(socket, 1);
    hear<int>(socket);
  });
  End end;
  auto peer = hear<Address>(other.socket());
  tell(other.socket(), end.address());
  ASSERT_EQ(end.connect(peer), 0);
  end.memory->fill(6);
  peer.rkey = hear<std::uint32_t>(other.socket());
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 8192), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(end.post(invalidate(IBV_WR_SEND_WITH_INV, peer.rkey)), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(hear<int>(other.socket()), 1);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace softnic_test
