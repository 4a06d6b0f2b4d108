// The QP state machine, and what devices, ports and GIDs say about themselves.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fixture.h"

namespace softnic_test {
namespace {

TEST(SoftnicState, WalksThroughTheStates) {
  End end;
  EXPECT_EQ(end.state(), IBV_QPS_INIT);
  EXPECT_EQ(end.qp->state, IBV_QPS_INIT);
  ASSERT_EQ(end.to_ready_to_receive(end.address()), 0);
  EXPECT_EQ(end.state(), IBV_QPS_RTR);
  ASSERT_EQ(end.to_ready_to_send(), 0);
  EXPECT_EQ(end.state(), IBV_QPS_RTS);
  ASSERT_EQ(end.to(IBV_QPS_SQD), 0);
  ASSERT_EQ(end.to(IBV_QPS_RTS), 0);
  ASSERT_EQ(end.to(IBV_QPS_ERR), 0);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
  ASSERT_EQ(end.to(IBV_QPS_RESET), 0);
  EXPECT_EQ(end.state(), IBV_QPS_RESET);
  EXPECT_EQ(end.to(IBV_QPS_ERR), EINVAL);
}

TEST(SoftnicState, TakesWhatItHasOfTheOptionsOfAConnection) {
  EndOptions options;
  options.device = "ece0";
  End end(options);
  ibv_ece ece{};
  ASSERT_EQ(ibv_query_ece(end.qp.get(), &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0x15b3u);
  EXPECT_EQ(ece.options, 7u);
  ibv_ece others{0x14e4, 1, 0};
  EXPECT_EQ(ibv_set_ece(end.qp.get(), &others), EINVAL);
  ibv_ece more{0x15b3, 0x1a, 0};
  EXPECT_EQ(ibv_set_ece(end.qp.get(), &more), 0);
  ASSERT_EQ(end.to_ready_to_receive(end.address()), 0);
  ASSERT_EQ(ibv_query_ece(end.qp.get(), &ece), 0);
  EXPECT_EQ(ece.options, 2u);
  EXPECT_EQ(ibv_set_ece(end.qp.get(), &more), EINVAL);  // too late
  End none;
  EXPECT_EQ(ibv_query_ece(none.qp.get(), &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_set_ece(none.qp.get(), &more), EOPNOTSUPP);
}

TEST(SoftnicState, RefusesShortcutsAndMissingAttributes) {
  End end;
  EXPECT_EQ(end.to_ready_to_send(), EINVAL);
  EXPECT_EQ(end.to(IBV_QPS_RTR), EINVAL);  // without path and destination
  EXPECT_EQ(end.to(IBV_QPS_RTS), EINVAL);
  EXPECT_EQ(end.to(IBV_QPS_SQD), EINVAL);
  ASSERT_EQ(end.to(IBV_QPS_ERR), 0);
  EXPECT_EQ(end.to_init(), EINVAL);
  ASSERT_EQ(end.to(IBV_QPS_RESET), 0);
  EXPECT_EQ(end.to_init(), 0);
  ibv_qp_attr attr{};
  attr.qkey = 1;
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, IBV_QP_QKEY), EINVAL);
  Address nowhere = end.address();
  nowhere.gid = {};
  EXPECT_EQ(end.to_ready_to_receive(nowhere), EINVAL);
  EXPECT_EQ(end.state(), IBV_QPS_INIT);
}

TEST(SoftnicState, RemembersWhatItWasGiven) {
  EndOptions options;
  options.timeout = 13;
  options.retry_cnt = 5;
  options.rnr_retry = 6;
  options.rd_atomic = 9;
  Pair pair(options);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.client.qp.get(), &attr, ~0, &init), 0);
  EXPECT_EQ(attr.timeout, 13);
  EXPECT_EQ(attr.retry_cnt, 5);
  EXPECT_EQ(attr.rnr_retry, 6);
  EXPECT_EQ(attr.max_rd_atomic, 9);
  EXPECT_EQ(attr.max_dest_rd_atomic, 9);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_4096);
  EXPECT_EQ(attr.dest_qp_num, pair.server.qp->qp_num);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, kGidIndex);
  EXPECT_EQ(attr.qp_access_flags, static_cast<unsigned>(kAllAccess));
  EXPECT_EQ(init.send_cq, pair.client.send_cq.get());
  EXPECT_EQ(init.cap.max_send_wr, 64u);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
}

TEST(SoftnicState, AQueuePairShowsAnErrorOnlyToWhoAsksForItsState) {
  Pair pair;
  Address wrong = pair.server.address();
  wrong.rkey += 1;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, wrong, 0, 8), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_REM_ACCESS_ERR);
  ibv_qp* const qp = pair.client.qp.get();
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_AV | IBV_QP_DEST_QPN, &init), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
}

TEST(SoftnicState, PostsAreRefusedBeforeTheirState) {
  End end;
  EXPECT_EQ(end.post(IBV_WR_RDMA_WRITE, end.address(), 0, 8), EINVAL);
  EXPECT_EQ(end.post_recv(0, 8), 0);  // INIT is enough
  ASSERT_EQ(end.to(IBV_QPS_RESET), 0);
  EXPECT_EQ(end.post_recv(0, 8), EINVAL);
}

TEST(SoftnicState, ErrorFlushesBothQueuesInOrder) {
  Pair pair;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, i), 0);  // they wait for receives
    ASSERT_EQ(pair.client.post_recv(0, 8, 10 + i), 0);
  }
  ASSERT_EQ(pair.client.to(IBV_QPS_ERR), 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done->wr_id, i);
    done = next_completion(pair.client.recv_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done->wr_id, 10 + i);
  }
  ASSERT_EQ(pair.client.post_recv(0, 8, 20), 0);
  const auto late = next_completion(pair.client.recv_cq.get());
  ASSERT_TRUE(late);
  EXPECT_EQ(late->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(late->wr_id, 20u);
}

TEST(SoftnicState, WhatIsPostedAfterAnErrorIsFlushedLast) {
  for (int round = 0; round < 50; ++round) {
    Pair pair;
    // Waits for a receive; then the peer's request puts this end into the error state.
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 1), 0);
    Address wrong = pair.client.address();
    wrong.rkey += 1;
    ASSERT_EQ(pair.server.post(IBV_WR_RDMA_WRITE, wrong, 0, 8), 0);
    for (std::uint64_t i = 2; i < 8; ++i) ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, i), 0);
    for (std::uint64_t i = 1; i < 8; ++i) {
      const auto done = next_completion(pair.client.send_cq.get());
      ASSERT_TRUE(done);
      EXPECT_EQ(done->status, IBV_WC_WR_FLUSH_ERR);
      ASSERT_EQ(done->wr_id, i);
    }
  }
}

TEST(SoftnicState, TheLastReceiveOfASharedQueueIsReported) {
  EndOptions there;
  there.srq = true;
  Pair pair({}, there);
  ASSERT_EQ(pair.server.to(IBV_QPS_ERR), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(pair.server.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, pair.server.qp.get());
  ibv_ack_async_event(&event);
}

TEST(SoftnicState, ResetForgetsEverything) {
  Pair pair;
  ASSERT_EQ(pair.client.post_recv(0, 8, 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 2), 0);  // waits
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 3), 0);
  ASSERT_EQ(pair.client.to(IBV_QPS_RESET), 0);
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
  EXPECT_TRUE(stays_empty(pair.client.recv_cq.get()));
  // And works again, with whoever comes.
  ASSERT_EQ(pair.server.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(pair.server.to_init(), 0);
  ASSERT_EQ(pair.client.to_init(), 0);
  ASSERT_EQ(pair.server.connect(pair.client.address()), 0);
  ASSERT_EQ(pair.client.connect(pair.server.address()), 0);
  ASSERT_EQ(pair.server.post_recv(0, 8, 4), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 8, 5), 0);
  const auto received = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->wr_id, 4u);
}

TEST(SoftnicState, ResetForgetsHowLongWasWaited) {
  EndOptions options;
  options.timeout = 1;  // 8 us
  options.retry_cnt = 0;
  Pair pair(options, options);
  ASSERT_EQ(pair.server.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, 1), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(pair.client.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(pair.client.to_init(), 0);
  ASSERT_EQ(pair.client.connect(pair.server.address()), 0);
  ASSERT_EQ(pair.client.to(IBV_QPS_SQD), 0);
  ibv_qp_attr patient{};
  patient.qp_state = IBV_QPS_SQD;
  patient.timeout = 20;  // 4 s
  patient.retry_cnt = 7;
  ASSERT_EQ(ibv_modify_qp(pair.client.qp.get(), &patient, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), 0);
  // It begins to wait when the queue moves on, for the same reason as the one before.
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, 2), 0);
  ASSERT_EQ(pair.client.to(IBV_QPS_RTS), 0);
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
  ASSERT_EQ(pair.server.to_init(), 0);
  ASSERT_EQ(pair.server.connect(pair.client.address()), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicState, DrainedQueueWaitsForItsReturn) {
  Pair pair;
  ASSERT_EQ(pair.client.to(IBV_QPS_SQD), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
  ASSERT_EQ(pair.client.to(IBV_QPS_RTS), 0);
  const auto done = next_completion(pair.client.send_cq.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, IBV_WC_SUCCESS);
}

TEST(SoftnicState, CompletionsOfADestroyedQpAreGone) {
  Pair pair;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  pair.client.qp.reset();
  EXPECT_TRUE(stays_empty(pair.client.send_cq.get()));
}

TEST(SoftnicState, CompletionQueueKeepsItsEntriesWhenResized) {
  EndOptions options;
  options.cqe = 16;
  Pair pair(options);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, i), 0);
  }
  EXPECT_EQ(ibv_resize_cq(pair.client.send_cq.get(), 0), EINVAL);
  ASSERT_EQ(ibv_resize_cq(pair.client.send_cq.get(), 60), 0);
  EXPECT_GE(pair.client.send_cq->cqe, 60);
  for (std::uint64_t i = 10; i < 50; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, i), 0);
  }
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->wr_id, i);
  }
}

TEST(SoftnicState, ExtendedCompletionQueueReadsTheSame) {
  auto context = open_device("soft0");
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM;
  ibv_cq_ex* cq = ibv_create_cq_ex(context.get(), &attr);
  ASSERT_NE(cq, nullptr);
  attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
  EXPECT_EQ(ibv_create_cq_ex(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(SoftnicDevice, PortsTellTheTruth) {
  auto up = open_device("soft0");
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(up.get(), 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
  EXPECT_EQ(ibv_query_port(up.get(), 2, &port), EINVAL);
  auto down = open_device("down0");
  ASSERT_EQ(ibv_query_port(down.get(), 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(up.get(), &attr), 0);
  EXPECT_EQ(std::strncmp(attr.fw_ver, "softnic", 7), 0);
  EXPECT_EQ(attr.phys_port_cnt, 1);
}

TEST(SoftnicDevice, GidsHaveTheirTypes) {
  auto context = open_device("soft1");
  ibv_gid_entry entries[8];
  ASSERT_EQ(ibv_query_gid_table(context.get(), entries, 8, 0), 3);
  EXPECT_EQ(entries[0].gid_type, unsigned{IBV_GID_TYPE_ROCE_V1});
  EXPECT_EQ(entries[1].gid_type, unsigned{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(entries[2].gid_type, unsigned{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(std::memcmp(&entries[0].gid, &entries[1].gid, 16), 0);
  EXPECT_EQ(entries[0].gid.raw[0], 0xfe);
  const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2};
  EXPECT_EQ(std::memcmp(entries[2].gid.raw, mapped, 16), 0);
  ibv_gid_entry entry;
  EXPECT_EQ(ibv_query_gid_ex(context.get(), 1, 3, &entry, 0), EINVAL);

  auto bare = open_device("nogid0");
  EXPECT_EQ(ibv_query_gid_table(bare.get(), entries, 8, 0), 0);
  EXPECT_EQ(ibv_query_gid_ex(bare.get(), 1, 0, &entry, 0), ENODATA);
}

TEST(SoftnicDevice, OnlyWhatIsThereIsClaimed) {
  End end;
  ibv_qp_init_attr attr{};
  attr.send_cq = end.send_cq.get();
  attr.recv_cq = end.recv_cq.get();
  attr.qp_type = IBV_QPT_RAW_PACKET;
  attr.cap = {1, 1, 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(end.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_send_wr = 1u << 20;
  EXPECT_EQ(ibv_create_qp(end.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(end.context.get(), 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(end.context.get(), 16, nullptr, nullptr, end.context->num_comp_vectors), nullptr);
}

TEST(SoftnicDevice, CallsFailAsConfigured) {
  auto context = open_device("fail0");
  Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  std::vector<std::uint8_t> buffer(8192);
  errno = 0;
  EXPECT_EQ(register_memory(pd.get(), buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  Owned<ibv_cq> cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {1, 1, 1, 1, 0};
  Owned<ibv_qp> qp(ibv_create_qp(pd.get(), &attr));
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr change{};
  change.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &change, IBV_QP_STATE), EIO);

  auto second = open_device("fail1");
  Owned<ibv_pd> second_pd(ibv_alloc_pd(second.get()));
  Owned<ibv_cq> second_cq(ibv_create_cq(second.get(), 16, nullptr, nullptr, 0));
  attr.send_cq = attr.recv_cq = second_cq.get();
  errno = 0;
  EXPECT_EQ(ibv_create_qp(second_pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, ENOSPC);
}

TEST(SoftnicConfig, TheDefaultIsTwoDevices) {
  const Output output = run_again("", "--list-devices");
  EXPECT_EQ(output.out.rfind("soft0\nsoft1\n", 0), 0u) << output.out;
  EXPECT_EQ(output.err, "");
}

TEST(SoftnicConfig, WrongTextIsOneMessageAndNoDevice) {
  for (const char* text : {"soft0;soft0", "soft0:mode", "soft0:mode=fast", "soft 0", ";", "soft0:fail=reg_mr",
                           "soft0:fail=reg_mr:EWHATEVER", "soft0:fail=poll_cq:EIO", "soft0:color=red",
                           "soft0:mac=1:2:3", "soft0:pci=here", "soft0:numa=-1", "soft0:netdev=", "soft0:ece=7",
                           "soft0:ece=0:1", "soft0:ece=1:2:3", "soft0:tcp=on,netdev=lo,ece=1:1"}) {
    const Output output = run_again(text, "--list-devices");
    EXPECT_EQ(output.out.find("soft"), std::string::npos) << text;
    EXPECT_EQ(output.err.rfind("softnic: SOFTNIC '", 0), 0u) << text << ": " << output.err;
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  }
}

}  // namespace
}  // namespace softnic_test
