#include <cerrno>

#include "modelled_link.h"

/// Unreliable connected QPs.
namespace softnic_test {
namespace {

EndOptions uc(const char* device = "soft0") {
  EndOptions options = on(device);
  options.type = IBV_QPT_UC;
  return options;
}

TEST(SoftnicUc, WritesAndSendsArrive) {
  Pair pair(uc(), uc());
  pair.client.memory->fill(3);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 70000, 1), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.server.memory->holds(3, 0, 70000));
  std::uint64_t id = 10;
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM}) {
    ASSERT_EQ(pair.server.post_recv(100000, 4096, ++id), 0);
    ASSERT_EQ(pair.client.post(opcode, pair.server.address(), 100000, 4096, id), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->wr_id, id);
    EXPECT_EQ(received->byte_len, 4096u);
    EXPECT_EQ(received->src_qp, pair.client.qp->qp_num);
    EXPECT_TRUE(pair.server.memory->holds(3, 100000, 4096));
  }
}

TEST(SoftnicUc, WithoutAReceiveAMessageIsLostAndNothingElse) {
  Pair pair(uc(), uc());
  pair.client.memory->fill(5);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 1), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE_WITH_IMM, pair.server.address(), 0, 64, 2), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(pair.server.memory->data()[1], 0);
  // Nobody waits for it: the next one takes the first receive.
  ASSERT_EQ(pair.server.post_recv(0, 8, 3), 0);
  EXPECT_TRUE(stays_empty(pair.server.recv_cq.get()));
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 4), 0);
  const auto received = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->wr_id, 3u);
}

TEST(SoftnicUc, WhatTheTargetRefusesIsLostWithoutAWord) {
  EndOptions closed = uc();
  closed.access = IBV_ACCESS_LOCAL_WRITE;
  for (const bool no_rights : {false, true}) {
    Pair pair(uc(), no_rights ? closed : uc());
    pair.client.memory->fill(7);
    Address wrong = pair.server.address();
    if (!no_rights) wrong.rkey ^= 0x55;
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, wrong, 0, 64, 1), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(pair.server.memory->data()[1], 0);
    EXPECT_EQ(pair.server.state(), IBV_QPS_RTS);
    EXPECT_EQ(pair.client.state(), IBV_QPS_RTS);
  }
}

TEST(SoftnicUc, NobodyThereIsNoError) {
  Pair pair(uc(), uc());
  ASSERT_EQ(pair.server.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 1), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  pair.server.qp.reset();
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 2), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicUc, ItsOwnFaultsAreTold) {
  Pair pair(uc(), uc());
  ibv_sge sge = pair.client.memory->sge(0, 64);
  sge.lkey ^= 0x55;
  ASSERT_EQ(pair.client.post(pair.client.request(IBV_WR_SEND, pair.server.address(), sge)), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair.client.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair.server.state(), IBV_QPS_RTS);
}

TEST(SoftnicUc, AReceiveThatIsTooSmallFailsWhereItWasPosted) {
  Pair pair(uc(), uc());
  ASSERT_EQ(pair.server.post_recv(0, 8, 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 64, 2), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(pair.server.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair.client.state(), IBV_QPS_RTS);
}

TEST(SoftnicUc, HasNoReadsAndNoAtomics) {
  Pair pair(uc(), uc());
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV}) {
    EXPECT_EQ(pair.client.post(opcode, pair.server.address(), 0, 8), EINVAL) << opcode;
  }
}

TEST(SoftnicUc, AttributesOfReliableQpsAreRefused) {
  End end(uc());
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = end.address().gid;
  attr.ah_attr.grh.sgid_index = kGidIndex;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, mask | IBV_QP_MIN_RNR_TIMER), EINVAL);
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, mask & ~IBV_QP_PATH_MTU), EINVAL);
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, mask), 0);
}

TEST(SoftnicUc, DoesNotSpeakWithReliableQps) {
  EndOptions rc;
  rc.timeout = 1;
  rc.retry_cnt = 0;
  Pair pair(rc, uc());
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
}

TEST(SoftnicUc, ALinkAndItsFaultsLoseMessages) {
  Pair lost(uc("drop0"), uc("drop0"));
  lost.client.memory->fill(9);
  ASSERT_EQ(lost.client.post(IBV_WR_RDMA_WRITE, lost.server.address(), 0, 64), 0);
  EXPECT_EQ(status_of(lost.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(lost.server.memory->data()[1], 0);
  Pair pair(uc("mid0"), uc("mid0"));
  pair.client.memory->fill(9);
  // No receive: lost at its arrival, and the next one is not.
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 1), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(pair.server.post_recv(0, 4096, 2), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 4096, 3), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.server.memory->holds(9, 0, 4096));
}

TEST(SoftnicUc, BetweenProcesses) {
  SecondProcess child([](int socket) {
    End end(uc());
    EXPECT_EQ(end.post_recv(0, 4096, 1), 0);
    meet_parent(end, socket);
    EXPECT_EQ(status_of(end.recv_cq.get()), IBV_WC_SUCCESS);
    EXPECT_TRUE(end.memory->holds(4, 0, 4096));
    tell(socket, 1);
  });
  End end(uc());
  end.memory->fill(4);
  meet(end, child);
  ASSERT_EQ(end.post(IBV_WR_SEND, {}, 0, 4096), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(hear<int>(child.socket()), 1);
  EXPECT_EQ(child.wait(), 0);
  // And after the end of that process.
  ASSERT_EQ(end.post(IBV_WR_SEND, {}, 0, 4096), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace softnic_test
