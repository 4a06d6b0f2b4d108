#include <cerrno>
#include <cstring>

#include "datagrams.h"

/// Unreliable datagrams.
namespace softnic_test {
namespace {

TEST(SoftnicUd, ADatagramComesBehindItsHeader) {
  // RoCE v1, v2 over IPv6, v2 over IPv4.
  for (std::uint8_t gid = 0; gid < 3; ++gid) {
    Sender client(ud("soft0", gid));
    Sender server(ud("soft1", gid));
    client.memory->fill(3);
    ASSERT_EQ(server.post_recv(0, kGrh + 4096, 5), 0);
    ASSERT_EQ(client.send(server.address(), 0, 1000, kQkey, IBV_WR_SEND_WITH_IMM), IBV_WC_SUCCESS);
    auto received = next_completion(server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->opcode, IBV_WC_RECV);
    EXPECT_EQ(received->wr_id, 5u);
    EXPECT_EQ(received->byte_len, kGrh + 1000);
    EXPECT_EQ(received->src_qp, client.qp->qp_num);
    EXPECT_EQ(received->qp_num, server.qp->qp_num);
    EXPECT_EQ(received->wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
    EXPECT_EQ(received->sl, gid == 2 ? 8 | 2 : gid == 1 ? 8 | 1 : 0) << "which header it came with";
    EXPECT_EQ(received->imm_data, 77u);
    EXPECT_EQ(std::memcmp(server.memory->data() + kGrh, client.memory->data(), 1000), 0);
    // The header says who sent it.
    auto* header = reinterpret_cast<ibv_grh*>(server.memory->data());
    ibv_ah_attr attr{};
    ASSERT_EQ(ibv_init_ah_from_wc(server.context.get(), 1, &*received, header, &attr), 0);
    const ibv_gid sender = client.address().gid;
    EXPECT_EQ(std::memcmp(&attr.grh.dgid, &sender, sizeof sender), 0);
    EXPECT_EQ(attr.grh.sgid_index, gid);
    EXPECT_EQ(attr.is_global, 1);
    const Owned<ibv_ah> back(ibv_create_ah_from_wc(server.pd.get(), &*received, header, 1));
    ASSERT_NE(back, nullptr);
    ASSERT_EQ(client.post_recv(8192, kGrh + 64, 6), 0);
    ibv_sge sge = server.memory->sge(kGrh, 64);
    ibv_send_wr answer = server.request(IBV_WR_SEND, {}, sge);
    answer.wr.ud.ah = back.get();
    answer.wr.ud.remote_qpn = received->src_qp;
    answer.wr.ud.remote_qkey = kQkey;
    ASSERT_EQ(server.post(answer), 0);
    EXPECT_EQ(status_of(client.recv_cq.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(client.memory->data() + 8192 + kGrh, client.memory->data(), 64), 0);
  }
}

TEST(SoftnicUd, WhatNobodyTakesIsLost) {
  Sender client;
  Sender server;
  Sender other(ud("soft1"));
  // No receive; another key; another device's address; a QP that is none, and one of another type.
  EXPECT_EQ(client.send(server.address(), 0, 8), IBV_WC_SUCCESS);
  ASSERT_EQ(server.post_recv(0, 4096, 1), 0);
  EXPECT_EQ(client.send(server.address(), 0, 8, kQkey + 1), IBV_WC_SUCCESS);
  Address elsewhere = server.address();
  elsewhere.gid = other.address().gid;
  EXPECT_EQ(client.send(elsewhere, 0, 8), IBV_WC_SUCCESS);
  Address nobody = server.address();
  nobody.qpn = 0x000001;
  EXPECT_EQ(client.send(nobody, 0, 8), IBV_WC_SUCCESS);
  Pair connected;
  Address reliable = connected.server.address();
  ASSERT_EQ(connected.server.post_recv(0, 4096), 0);
  EXPECT_EQ(client.send(reliable, 0, 8), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(connected.server.recv_cq.get()));
  EXPECT_TRUE(stays_empty(server.recv_cq.get()));
  // And then one that is not. The highest bit of a key means the sender's own.
  EXPECT_EQ(client.send(server.address(), 0, 8, 0x80000000u), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(server.state(), IBV_QPS_RTS);
}

// All that a process sends to another one over TCP keeps its order: what was lost is lost when a later one is there.
TEST(SoftnicUd, OverTcpWhatFindsNoReceiveIsLost) {
  Sender client(ud("tcp0", 2));
  Sender without(ud("tcp0", 2));
  Sender with(ud("tcp0", 2));
  client.memory->data()[0] = 1;
  ASSERT_EQ(with.post_recv(0, 4096, 1), 0);
  ASSERT_EQ(client.send(without.address(), 0, 8), IBV_WC_SUCCESS);
  ASSERT_EQ(client.send(with.address(), 0, 8, kQkey + 1), IBV_WC_SUCCESS);
  ASSERT_EQ(client.send(with.address(), 0, 8), IBV_WC_SUCCESS);
  ASSERT_EQ(status_of(with.recv_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(without.post_recv(0, 4096, 2), 0);
  ASSERT_EQ(with.post_recv(0, 4096, 3), 0);
  client.memory->data()[0] = 2;
  ASSERT_EQ(client.send(without.address(), 0, 8), IBV_WC_SUCCESS);
  const auto received = next_completion(without.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->byte_len, kGrh + 8);
  EXPECT_EQ(received->src_qp, client.qp->qp_num);
  EXPECT_EQ(without.memory->data()[kGrh], 2);
  ASSERT_EQ(client.send(with.address(), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(with.recv_cq.get()), IBV_WC_SUCCESS) << "only the one with the wrong key was lost";
}

TEST(SoftnicUd, NoMessageIsLargerThanThePort) {
  Sender client;
  Sender server;
  ASSERT_EQ(server.post_recv(0, 8192, 1), 0);
  EXPECT_EQ(client.send(server.address(), 0, 4097), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(server.recv_cq.get()));
  EXPECT_EQ(client.send(server.address(), 0, 4096), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicUd, AReceiveWithoutRoomForTheHeaderFails) {
  Sender client;
  Sender server;
  ASSERT_EQ(server.post_recv(0, 64, 1), 0);
  EXPECT_EQ(client.send(server.address(), 0, 64), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(server.state(), IBV_QPS_ERR);
  EXPECT_EQ(client.state(), IBV_QPS_RTS);
}

TEST(SoftnicUd, OnlySendsAndOnlyItsOwnAttributes) {
  Sender client;
  Sender server;
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV}) {
    EXPECT_EQ(client.post(opcode, server.address(), 0, 8), EINVAL) << opcode;
  }
  ibv_sge sge = client.memory->sge(0, 8);
  EXPECT_EQ(client.post(client.request(IBV_WR_SEND, {}, sge)), EINVAL);  // no address
  End fresh(ud());
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(fresh.qp.get(), &attr, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL);
  EXPECT_EQ(ibv_modify_qp(fresh.qp.get(), &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
}

TEST(SoftnicUd, BuiltRequestsCarryTheirAddress) {
  Sender server;
  End client(ud());
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = client.send_cq.get();
  attr.recv_cq = client.recv_cq.get();
  attr.qp_type = IBV_QPT_UD;
  attr.cap = {16, 16, 2, 2, 64};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = client.pd.get();
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
  EXPECT_EQ(ibv_create_qp_ex(client.context.get(), &attr), nullptr);
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  client.qp.reset(ibv_create_qp_ex(client.context.get(), &attr));
  ASSERT_NE(client.qp, nullptr);
  ASSERT_EQ(client.to_init(), 0);
  ASSERT_EQ(client.connect({}), 0);
  ibv_ah_attr there{};
  there.is_global = 1;
  there.port_num = 1;
  there.grh.dgid = server.address().gid;
  there.grh.sgid_index = kGidIndex;
  const Owned<ibv_ah> ah(ibv_create_ah(client.pd.get(), &there));
  ASSERT_EQ(server.post_recv(0, 4096, 1), 0);
  client.memory->fill(8);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client.qp.get());
  ibv_wr_start(qp);
  qp->wr_id = 4;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_ud_addr(qp, ah.get(), server.qp->qp_num, kQkey);
  ibv_wr_set_sge(qp, client.memory->mr()->lkey, client.memory->address(), 64);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(server.memory->data() + kGrh, client.memory->data(), 64), 0);
}

/// Sends numbered datagrams to the parent until it is told to stop, or killed.
void send_numbers(int socket, std::uint32_t who) {
  Sender end;
  const auto to = hear<Address>(socket);
  const Owned<ibv_ah> ah = end.handle(to.gid);
  auto* words = reinterpret_cast<std::uint32_t*>(end.memory->data());
  for (std::uint32_t number = 0; number < 2000; ++number) {
    words[0] = who;
    words[1] = number;
    EXPECT_EQ(end.send(to, 0, 8), IBV_WC_SUCCESS);
    if (number % 16 == 15) {
      EXPECT_EQ(hear<int>(socket), 1);
    }
  }
}

TEST(SoftnicUd, ManyProcessesSendToOneQpInOrder) {
  SecondProcess first([](int socket) { send_numbers(socket, 1); });
  SecondProcess second([](int socket) { send_numbers(socket, 2); });
  EndOptions options = ud();
  options.max_wr = 64;
  Sender server(options);
  // Both have sixteen under way at most, so that none is lost.
  for (std::uint64_t slot = 0; slot < 48; ++slot) ASSERT_EQ(server.post_recv(slot * 64, 64, slot), 0);
  SecondProcess* senders[] = {&first, &second};
  for (SecondProcess* sender : senders) tell(sender->socket(), server.address());
  std::uint32_t next[2] = {0, 0};
  for (int i = 0; i < 4000; ++i) {
    const auto received = next_completion(server.recv_cq.get());
    ASSERT_TRUE(received) << next[0] << " " << next[1];
    ASSERT_EQ(received->status, IBV_WC_SUCCESS);
    std::uint32_t words[2];
    std::memcpy(words, server.memory->data() + received->wr_id * 64 + kGrh, sizeof words);
    ASSERT_TRUE(words[0] == 1 || words[0] == 2);
    ASSERT_EQ(words[1], next[words[0] - 1]++);
    ASSERT_EQ(server.post_recv(received->wr_id * 64, 64, received->wr_id), 0);
    if (words[1] % 16 == 15) tell(senders[words[0] - 1]->socket(), 1);
  }
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(SoftnicUd, ASenderThatIsKilledHoldsNobodyUp) {
  for (int round = 0; round < 20; ++round) {
    Sender server;
    SecondProcess child([](int socket) {
      Sender end;
      const auto to = hear<Address>(socket);
      const Owned<ibv_ah> ah = end.handle(to.gid);
      ibv_sge sge = end.memory->sge(0, 4096);
      ibv_send_wr wr = end.request(IBV_WR_SEND, {}, sge);
      wr.wr.ud.ah = ah.get();
      wr.wr.ud.remote_qpn = to.qpn;
      wr.wr.ud.remote_qkey = kQkey;
      ibv_wc done{};
      while (true) {
        end.post(wr);
        while (ibv_poll_cq(end.send_cq.get(), 1, &done) > 0) {
        }
      }
    });
    for (std::uint64_t slot = 0; slot < 48; ++slot) ASSERT_EQ(server.post_recv(slot * 8192, 8192, slot), 0);
    tell(child.socket(), server.address());
    for (int i = 0; i < 40 + round; ++i) {
      const auto received = next_completion(server.recv_cq.get());
      ASSERT_TRUE(received);
      ASSERT_EQ(server.post_recv(received->wr_id * 8192, 8192, received->wr_id), 0);
    }
    child.kill();
    EXPECT_NE(child.wait(), 0);
    // Others go on, also where it left a cell that it had claimed: that one is flushed.
    Sender client;
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(client.send(server.address(), 0, 8), IBV_WC_SUCCESS);
      const auto received = next_completion(server.recv_cq.get());
      ASSERT_TRUE(received);
      ASSERT_TRUE(received->status == IBV_WC_SUCCESS || received->status == IBV_WC_WR_FLUSH_ERR);
      ASSERT_EQ(server.post_recv(received->wr_id * 8192, 8192, received->wr_id), 0);
    }
    EXPECT_EQ(server.to(IBV_QPS_ERR), 0);
  }
}

TEST(SoftnicUd, AProcessThatHasEndedIsNobody) {
  Sender client;
  {
    SecondProcess child([](int socket) {
      Sender end;
      EXPECT_EQ(end.post_recv(0, 4096), 0);
      tell(socket, end.address());
      EXPECT_EQ(status_of(end.recv_cq.get()), IBV_WC_SUCCESS);
    });
    const auto there = hear<Address>(child.socket());
    EXPECT_EQ(client.send(there, 0, 8), IBV_WC_SUCCESS);
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(client.send(there, 0, 8), IBV_WC_SUCCESS);
  }
  Sender server;
  ASSERT_EQ(server.post_recv(0, 4096), 0);
  EXPECT_EQ(client.send(server.address(), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicUd, TheLinkModelDelaysAndLosesThem) {
  Sender far(ud("mid0"));
  Sender there(ud("mid0"));
  far.memory->fill(2);
  ASSERT_EQ(there.post_recv(0, 4096), 0);
  EXPECT_EQ(far.send(there.address(), 0, 1000), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(there.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(there.memory->data() + kGrh, far.memory->data(), 1000), 0);
  Sender dropping(ud("drop0"));
  Sender missing(ud("drop0"));
  ASSERT_EQ(missing.post_recv(0, 4096), 0);
  EXPECT_EQ(dropping.send(missing.address(), 0, 8), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(missing.recv_cq.get()));
}

TEST(SoftnicUd, SharedReceiveQueueAndEvents) {
  EndOptions options = ud();
  options.srq = true;
  options.events = true;
  Sender server(options);
  Sender client;
  ASSERT_EQ(server.post_recv(0, 4096, 9), 0);
  ASSERT_EQ(ibv_req_notify_cq(server.recv_cq.get(), 0), 0);
  EXPECT_EQ(client.send(server.address(), 0, 8), IBV_WC_SUCCESS);
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(server.channel.get(), &queue, &user), 0);
  EXPECT_EQ(queue, server.recv_cq.get());
  ibv_ack_cq_events(queue, 1);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace softnic_test
