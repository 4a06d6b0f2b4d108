// The rings themselves: wraps, owner bits, doorbells, and the two sides of them, the CPU's verbs and a hand.

#include <endian.h>

#include <atomic>
#include <cstring>

#include "mlx5/hand.h"

namespace softnic_test {
namespace {

TEST(SoftnicMlx5Queues, OwnerBitsTurnWithEachLap) {
  EndOptions small = mlx5_end();
  small.cqe = 8;
  small.max_wr = 4;
  HandPair hand(small);
  const std::uint32_t cqes = hand.cq.rings().cqe_cnt;
  EXPECT_LE(cqes, 16u);
  // Each counter of 16 bits wraps as well.
  const Wqe wqe = hand.write(0, 8);
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    if (i % 4 == 0) {
      for (int k = 0; k < 4; ++k) hand.qp.write(wqe);
      hand.qp.ring();
    }
    const auto done = hand.cq.next();
    ASSERT_TRUE(done) << i;
    ASSERT_EQ(cqe_opcode(*done), MLX5_CQE_REQ) << i;
    ASSERT_EQ(wqe_counter(*done), i & 0xffff) << i;
    ASSERT_EQ(done->op_own & MLX5_CQE_OWNER_MASK, (i & cqes) != 0 ? 1 : 0) << i;
  }
}

TEST(SoftnicMlx5Queues, ADoorbellIsForAllThatTheRecordSays) {
  HandPair hand;
  hand.pair.client.memory->fill(3);
  for (unsigned i = 0; i < 32; ++i) hand.qp.write(hand.write(i * 64, 64));
  hand.qp.ring();
  for (unsigned i = 0; i < 32; ++i) {
    const auto done = hand.cq.next();
    ASSERT_TRUE(done);
    EXPECT_EQ(wqe_counter(*done), i);
  }
  EXPECT_TRUE(hand.pair.server.memory->holds(3, 0, 32 * 64));
}

TEST(SoftnicMlx5Queues, AListMayFillTheRing) {
  HandPair hand;
  Wqe wqe = hand.write(0, 8);
  wqe.flags = 0;
  const std::uint32_t blocks = hand.qp.rings().sq.wqe_cnt;
  for (int lap = 0; lap < 3; ++lap) {
    for (std::uint32_t i = 1; i < blocks; ++i) hand.qp.write(wqe);
    const std::uint16_t last = hand.qp.write(hand.write(0, 8));
    hand.qp.ring();
    const auto done = hand.cq.next();
    ASSERT_TRUE(done);
    EXPECT_EQ(wqe_counter(*done), last);
  }
}

TEST(SoftnicMlx5Queues, SeveralQpsShareAPageOfDoorbells) {
  std::vector<std::unique_ptr<HandPair>> hands;
  const auto context_of = [&](std::size_t i) { return hands[i]->pair.client.context.get(); };
  for (int i = 0; i < 3; ++i) hands.push_back(std::make_unique<HandPair>());
  EXPECT_NE(context_of(0), context_of(1));
  // Of one context: more QPs than there are registers.
  End& first = hands[0]->pair.client;
  std::vector<Owned<ibv_qp>> qps;
  std::vector<HandQp> rings;
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = first.send_cq.get();
  attr.recv_cq = first.recv_cq.get();
  attr.cap = {16, 16, 1, 1, 0};
  bool shared = false;
  for (int i = 0; i < 40; ++i) {
    qps.emplace_back(ibv_create_qp(first.pd.get(), &attr));
    ASSERT_TRUE(qps.back());
    rings.emplace_back(qps.back().get());
    for (std::size_t k = 0; k + 1 < rings.size(); ++k) shared |= rings[k].rings().bf.reg == rings.back().rings().bf.reg;
    ibv_qp_attr change{};
    change.qp_state = IBV_QPS_INIT;
    change.port_num = 1;
    change.qp_access_flags = kAllAccess;
    ASSERT_EQ(
        ibv_modify_qp(qps.back().get(), &change, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    change = {};
    change.qp_state = IBV_QPS_RTR;
    change.path_mtu = IBV_MTU_1024;
    change.dest_qp_num = qps.back()->qp_num;
    change.ah_attr.is_global = 1;
    change.ah_attr.port_num = 1;
    change.ah_attr.grh.dgid = first.address().gid;
    change.ah_attr.grh.sgid_index = kGidIndex;
    change.max_dest_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qps.back().get(), &change,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    change = {};
    change.qp_state = IBV_QPS_RTS;
    change.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qps.back().get(), &change,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  EXPECT_TRUE(shared);
  Wqe wqe;
  wqe.remote = first.memory->address(512);
  wqe.rkey = first.memory->mr()->rkey;
  wqe.sges = {first.memory->sge(0, 8)};
  // All at once: of the values in one register only the last is seen.
  for (int round = 0; round < 20; ++round) {
    for (HandQp& it : rings) it.post(wqe);
    for (std::size_t i = 0; i < rings.size(); ++i) ASSERT_TRUE(hands[0]->cq.next()) << i << " of round " << round;
  }
}

TEST(SoftnicMlx5Queues, ACqThatIsNotPolledOverruns) {
  EndOptions small = mlx5_end();
  small.cqe = 8;
  HandPair hand(small);
  hand.cq.tell(false);
  const std::uint32_t cqes = hand.cq.rings().cqe_cnt;
  for (std::uint32_t i = 0; i < cqes; ++i) {
    hand.qp.post(hand.write(0, 8));
    ASSERT_TRUE(hand.cq.next());
  }
  hand.qp.post(hand.write(0, 8));
  EXPECT_TRUE(hand.cq.stays_empty());
  EXPECT_EQ(hand.pair.client.state(), IBV_QPS_ERR);
}

TEST(SoftnicMlx5Queues, VerbsAndHandGoByTheSameRing) {
  HandPair hand;
  End& client = hand.pair.client;
  const Address peer = hand.pair.server.address();
  client.memory->fill(4);
  ibv_sge sge = client.memory->sge(0, 8);
  ibv_send_wr wr = client.request(IBV_WR_RDMA_WRITE, peer, sge);
  wr.wr_id = 0x123456789abcdefull;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(client.post(wr), 0);
  // The WQE that verbs wrote stands at the hand's place.
  const auto* control = reinterpret_cast<const mlx5_wqe_ctrl_seg*>(hand.qp.block(0));
  EXPECT_EQ(be32toh(control->opmod_idx_opcode) & 0xff, static_cast<std::uint32_t>(MLX5_OPCODE_RDMA_WRITE));
  EXPECT_EQ(be32toh(control->qpn_ds) >> 8, hand.qp.number());
  const std::uint16_t written = static_cast<std::uint16_t>(be32toh(hand.qp.rings().dbrec[MLX5_SND_DBR]));
  EXPECT_EQ(written, 1u);
  const auto polled = next_completion(client.send_cq.get());
  ASSERT_TRUE(polled);
  EXPECT_EQ(polled->wr_id, 0x123456789abcdefull);
  EXPECT_EQ(be32toh(hand.cq.rings().dbrec[0]), 1u);
  hand.qp.set_producer(written);
  hand.qp.post(hand.write(8, 8));
  const auto by_hand = next_completion(client.send_cq.get());
  ASSERT_TRUE(by_hand);
  EXPECT_EQ(by_hand->status, IBV_WC_SUCCESS);
  EXPECT_EQ(by_hand->opcode, IBV_WC_RDMA_WRITE);
}

TEST(SoftnicMlx5Queues, AQpThatWasResetBeginsAnew) {
  HandPair hand;
  // Once: what is rung then and behind the reset is the same value.
  hand.qp.post(hand.write(0, 8));
  ASSERT_TRUE(hand.cq.next());
  ASSERT_EQ(hand.pair.client.to(IBV_QPS_RESET), 0);
  EXPECT_EQ(hand.qp.rings().dbrec[MLX5_SND_DBR], 0u);
  ASSERT_EQ(hand.pair.server.to(IBV_QPS_RESET), 0);
  const Address client = hand.pair.client.address();
  const Address server = hand.pair.server.address();
  ASSERT_EQ(hand.pair.client.to_init(), 0);
  ASSERT_EQ(hand.pair.server.to_init(), 0);
  ASSERT_EQ(hand.pair.server.connect(client), 0);
  ASSERT_EQ(hand.pair.client.connect(server), 0);
  hand.qp.set_producer(0);
  hand.qp.post(hand.write(0, 8));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
  EXPECT_EQ(wqe_counter(*done), 0u);
}

TEST(SoftnicMlx5Queues, ReceivesOfAnSrqAreAList) {
  EndOptions options = mlx5_end();
  options.srq = true;
  HandPair hand(mlx5_end(), options);
  mlx5dv_srq rings{};
  mlx5dv_obj object{};
  object.srq.in = hand.pair.server.srq.get();
  object.srq.out = &rings;
  ASSERT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_SRQ), 0);
  HandCq arrived(hand.pair.server.recv_cq.get());
  std::uint16_t head = static_cast<std::uint16_t>(rings.head);
  std::uint16_t tail = static_cast<std::uint16_t>(rings.tail);
  const auto segment = [&](std::uint16_t index) {
    return reinterpret_cast<mlx5_wqe_srq_next_seg*>(static_cast<std::uint8_t*>(rings.buf) +
                                                    std::size_t{index} * rings.stride);
  };
  std::uint32_t posted = 0;
  const auto post = [&](std::size_t offset) {
    auto* data = reinterpret_cast<mlx5_wqe_data_seg*>(segment(head) + 1);
    mlx5dv_set_data_seg(data, 64, hand.pair.server.memory->mr()->lkey, hand.pair.server.memory->address(offset));
    mlx5dv_set_data_seg(data + 1, 0, MLX5_INVALID_LKEY, 0);
    const std::uint16_t place = head;
    head = be16toh(segment(head)->next_wqe_index);
    std::atomic_ref(*rings.dbrec).store(htobe32(++posted & 0xffff), std::memory_order_release);
    return place;
  };
  for (int i = 0; i < 300; ++i) {
    hand.pair.client.memory->fill(static_cast<std::uint8_t>(i));
    const std::size_t offset = static_cast<std::size_t>(i % 7) * 64;
    const std::uint16_t place = post(offset);
    hand.qp.post(hand.request(MLX5_OPCODE_SEND, 0, 64));
    ASSERT_TRUE(hand.cq.next());
    const auto got = arrived.next();
    ASSERT_TRUE(got) << i;
    ASSERT_EQ(wqe_counter(*got), place) << i;
    ASSERT_EQ(std::memcmp(hand.pair.server.memory->data() + offset, hand.pair.client.memory->data(), 64), 0);
    segment(tail)->next_wqe_index = htobe16(place);
    tail = place;
  }
}

TEST(SoftnicMlx5Queues, AShownCqKeepsItsPlace) {
  HandPair hand;
  EXPECT_EQ(ibv_resize_cq(hand.pair.client.send_cq.get(), 1024), EOPNOTSUPP);
  EXPECT_EQ(ibv_resize_cq(hand.pair.client.recv_cq.get(), 1024), 0);
}

}  // namespace
}  // namespace softnic_test
