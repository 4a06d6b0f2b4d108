// Send queues, receive queues, and the ways to post to them.

#include <atomic>
#include <cerrno>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

TEST(SoftnicQueue, OnlySignalledRequestsComplete) {
  EndOptions options;
  options.signal_all = false;
  Pair pair(options);
  for (std::uint64_t i = 1; i <= 200; ++i) {
    ibv_sge sge = pair.client.memory->sge(0, 8);
    ibv_send_wr wr = pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge);
    wr.wr_id = i;
    wr.send_flags = i % 32 == 0 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u;
    ASSERT_EQ(pair.client.post(wr), 0) << i;
    if (i % 32 != 0) continue;
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->wr_id, i);
  }
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
}

TEST(SoftnicQueue, TheSendQueueHasTheDepthItSays) {
  EndOptions options;
  options.max_wr = 8;
  Pair pair(options);
  const Address peer = pair.server.address();
  for (int i = 0; i < 8; ++i) ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), ENOMEM);
  ASSERT_TRUE(next_completion(pair.client.send_cq.get()));
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), ENOMEM);
}

TEST(SoftnicQueue, ASendQueueIsRoundedUpAsByNics) {
  EndOptions options;
  options.max_wr = 9;
  Pair pair(options);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.client.qp.get(), &attr, IBV_QP_CAP, &init), 0);
  EXPECT_EQ(init.cap.max_send_wr, 16u);
  EXPECT_EQ(attr.cap.max_send_wr, 16u);
  const Address peer = pair.server.address();
  for (int i = 0; i < 16; ++i) ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0) << i;
  EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), ENOMEM);
}

TEST(SoftnicQueue, TheReceiveQueueHasTheDepthItSays) {
  for (const bool srq : {false, true}) {
    EndOptions options;
    options.max_wr = 8;
    options.srq = srq;
    Pair pair({}, options);
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(pair.server.post_recv(0, 8, i), 0);
    EXPECT_EQ(pair.server.post_recv(0, 8, 8), ENOMEM);
    for (std::uint64_t i = 0; i < 30; ++i) {
      ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8), 0);
      ASSERT_TRUE(next_completion(pair.client.send_cq.get()));
      const auto received = next_completion(pair.server.recv_cq.get());
      ASSERT_TRUE(received);
      EXPECT_EQ(received->wr_id, i);
      ASSERT_EQ(pair.server.post_recv(0, 8, i + 8), 0);
      EXPECT_EQ(pair.server.post_recv(0, 8, 99), ENOMEM);
    }
  }
}

TEST(SoftnicQueue, ThreadsMayShareAQp) {
  EndOptions options;
  options.max_wr = 256;
  options.signal_all = false;
  Pair pair(options);
  const Address peer = pair.server.address();
  constexpr int kThreads = 3;
  constexpr std::uint64_t kEach = 5000;
  std::atomic<std::uint64_t> completed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach;) {
        ibv_sge sge = pair.client.memory->sge(static_cast<std::size_t>(t) * 64, 8);
        ibv_send_wr wr = pair.client.request(IBV_WR_RDMA_WRITE, peer, sge);
        ibv_send_wr* bad = nullptr;
        if (ibv_post_send(pair.client.qp.get(), &wr, &bad) == 0) ++i;
        ibv_wc done[4];
        const int count = ibv_poll_cq(pair.client.send_cq.get(), 4, done);
        if (count > 0) completed += static_cast<std::uint64_t>(count);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (completed < kThreads * kEach) {
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_SUCCESS);
    ++completed;
  }
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
}

TEST(SoftnicQueue, ReceivesAreFlushedWhileTheQueueIsReplaced) {
  Pair pair;
  End& end = pair.server;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(end.qp.get(), &attr, IBV_QP_STATE), 0);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> polled{0};
  std::thread poster([&] {
    while (!stop.load()) {
      if (posted - polled < 12 && end.post_recv(0, 8) == 0) ++posted;
    }
  });
  // Rings of one size in bytes: each takes the place of the one before the last.
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    ibv_wc completions[16];
    int taken;
    while ((taken = ibv_poll_cq(end.recv_cq.get(), 16, completions)) > 0) polled += static_cast<unsigned>(taken);
    EXPECT_EQ(taken, 0) << "overrun";
    ibv_resize_cq(end.recv_cq.get(), i % 2 == 0 ? 20 : 16);
  }
  stop.store(true);
  poster.join();
  ibv_wc completion;
  while (ibv_poll_cq(end.recv_cq.get(), 1, &completion) == 1) ++polled;
  EXPECT_EQ(polled.load(), posted.load());
}

TEST(SoftnicQueue, NoCompletionIsLostWhenTheQueueTurnsOutTooFullToShrink) {
  constexpr unsigned kPosted = 24;
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    EndOptions options;
    options.max_wr = 64;
    End end(options);
    ASSERT_EQ(end.to_init(), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(end.qp.get(), &attr, IBV_QP_STATE), 0);
    std::atomic<unsigned> posted{0};
    std::thread poster([&] {
      while (posted < kPosted && end.post_recv(0, 8, posted) == 0) ++posted;
    });
    while (posted < static_cast<unsigned>(round) % 16) {
    }
    const int answer = ibv_resize_cq(end.recv_cq.get(), 16);
    poster.join();
    ASSERT_EQ(posted.load(), kPosted);
    EXPECT_TRUE(answer == 0 || answer == EINVAL);
    EXPECT_EQ(end.recv_cq->cqe < static_cast<int>(kPosted), answer == 0);
    ibv_wc completions[kPosted + 1];
    const int taken = ibv_poll_cq(end.recv_cq.get(), kPosted + 1, completions);
    // In the smaller queue there is no place for all of them.
    EXPECT_EQ(taken, answer == 0 ? 16 : static_cast<int>(kPosted));
    for (int i = 0; i < taken; ++i) EXPECT_EQ(completions[i].wr_id, static_cast<unsigned>(i));
  }
}

TEST(SoftnicQueue, BuiltRequestsDoTheSame) {
  End client;
  End server;
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = client.send_cq.get();
  attr.recv_cq = client.recv_cq.get();
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {8, 8, 2, 2, 64};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = client.pd.get();
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND;
  client.qp.reset(ibv_create_qp_ex(client.context.get(), &attr));
  ASSERT_NE(client.qp, nullptr);
  ASSERT_EQ(client.to_init(), 0);
  ASSERT_EQ(server.connect(client.address()), 0);
  ASSERT_EQ(client.connect(server.address()), 0);
  client.memory->fill(5);
  ASSERT_EQ(server.post_recv(8192, 100, 3), 0);

  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client.qp.get());
  ASSERT_NE(qp, nullptr);
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, server.memory->mr()->rkey, server.memory->address());
  ibv_wr_set_sge(qp, client.memory->mr()->lkey, client.memory->address(), 4096);
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  char text[] = "inline";
  ibv_wr_set_inline_data(qp, text, sizeof text);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const auto done = next_completion(client.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->wr_id, 2u);
  EXPECT_EQ(done->status, IBV_WC_SUCCESS);
  EXPECT_TRUE(server.memory->holds(5, 0, 4096));
  EXPECT_STREQ(reinterpret_cast<char*>(server.memory->data()) + 8192, "inline");

  ibv_wr_start(qp);
  for (int i = 0; i < 9; ++i) {
    ibv_wr_rdma_write(qp, server.memory->mr()->rkey, server.memory->address());
    ibv_wr_set_sge(qp, client.memory->mr()->lkey, client.memory->address(), 8);
  }
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);  // all or nothing
  EXPECT_TRUE(stays_empty(client.send_cq.get()));
}

TEST(SoftnicQueue, NullModeCompletesWithoutMoving) {
  EndOptions options;
  options.device = "null0";
  options.signal_all = false;
  Pair pair(options, options);
  pair.client.memory->fill(1);
  const auto code_of = [](ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
  };
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
    for (std::uint64_t i = 1; i <= 96; ++i) {
      ibv_sge sge = pair.client.memory->sge(0, 64);
      ibv_send_wr wr = pair.client.request(opcode, pair.server.address(), sge);
      wr.wr_id = i;
      wr.send_flags = i % 32 == 0 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u;
      ASSERT_EQ(pair.client.post(wr), 0);
      if (i % 32 != 0) continue;
      ibv_wc done{};
      ASSERT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 1, &done), 1);
      EXPECT_EQ(done.wr_id, i);
      EXPECT_EQ(done.opcode, code_of(opcode));
    }
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 1, &none), 0);
  }
  EXPECT_EQ(pair.server.memory->data()[1], 0);
}

}  // namespace
}  // namespace softnic_test
