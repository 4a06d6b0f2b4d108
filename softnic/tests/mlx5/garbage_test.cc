// WQEs that are none: a CQE with a syndrome, and a QP in the error state. Never more than that.

#include <endian.h>

#include <atomic>
#include <cstring>
#include <random>

#include "mlx5/hand.h"

namespace softnic_test {
namespace {

/// The WQE's CQE is an error's with this syndrome, and whatever comes behind it is flushed.
void expect_error(HandPair& hand, std::uint16_t place, std::uint8_t expected) {
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ_ERR);
  EXPECT_EQ(syndrome(*done), expected);
  EXPECT_EQ(wqe_counter(*done), place);
  EXPECT_EQ(cqe_qpn(*done), hand.qp.number());
  EXPECT_EQ(hand.pair.client.state(), IBV_QPS_ERR);
  const std::uint16_t next = hand.qp.post(hand.write(0, 8));
  const auto flushed = hand.cq.next();
  ASSERT_TRUE(flushed);
  EXPECT_EQ(cqe_opcode(*flushed), MLX5_CQE_REQ_ERR);
  EXPECT_EQ(syndrome(*flushed), MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
  EXPECT_EQ(wqe_counter(*flushed), next);
}

TEST(SoftnicMlx5Garbage, AnUnknownOpcode) {
  HandPair hand;
  Wqe wqe = hand.write(0, 8);
  wqe.opcode = 0x3f;
  expect_error(hand, hand.qp.post(wqe), MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

TEST(SoftnicMlx5Garbage, AMemoryKeysChange) {
  HandPair hand;
  Wqe wqe;
  wqe.opcode = MLX5_OPCODE_UMR;
  expect_error(hand, hand.qp.post(wqe), MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

// More than is posted, nothing, and no address for a write.
TEST(SoftnicMlx5Garbage, LengthsThatCannotBe) {
  for (const std::uint32_t segments : {63u, 0u, 1u}) {
    SCOPED_TRACE(segments);
    HandPair hand;
    const std::uint16_t place = hand.qp.write(hand.write(0, 8));
    auto* control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(hand.qp.block(place));
    control->qpn_ds = htobe32(hand.qp.number() << 8 | segments);
    hand.qp.ring();
    expect_error(hand, place, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
  }
}

TEST(SoftnicMlx5Garbage, TheIndexOrNumberOfAnother) {
  for (const bool index : {false, true}) {
    HandPair hand;
    const std::uint16_t place = hand.qp.write(hand.write(0, 8));
    auto* control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(hand.qp.block(place));
    (index ? control->opmod_idx_opcode : control->qpn_ds) ^= htobe32(0x100);
    hand.qp.ring();
    expect_error(hand, place, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
  }
}

TEST(SoftnicMlx5Garbage, ARecordBeyondTheRing) {
  HandPair hand;
  const std::uint16_t place = hand.qp.write(hand.write(0, 8));
  hand.qp.set_producer(static_cast<std::uint16_t>(hand.qp.rings().sq.wqe_cnt + 5));
  hand.qp.ring();
  expect_error(hand, place, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

TEST(SoftnicMlx5Garbage, InlineDataBeyondItsEnd) {
  HandPair hand;
  Wqe wqe = hand.write(0, 0);
  wqe.sges.clear();
  wqe.inlined = "hello";
  const std::uint16_t place = hand.qp.write(wqe);
  const std::uint32_t length = htobe32(MLX5_INLINE_SEG | 0x7fffffff);
  std::memcpy(hand.qp.block(place) + 32, &length, sizeof length);
  hand.qp.ring();
  expect_error(hand, place, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

TEST(SoftnicMlx5Garbage, AKeyThatIsNone) {
  HandPair hand;
  Wqe wqe = hand.write(0, 8);
  wqe.sges[0].lkey ^= 0x5500;
  expect_error(hand, hand.qp.post(wqe), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST(SoftnicMlx5Garbage, ARemoteKeyThatIsNone) {
  HandPair hand;
  Wqe wqe = hand.write(0, 8);
  wqe.rkey ^= 0x5500;
  expect_error(hand, hand.qp.post(wqe), MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}

TEST(SoftnicMlx5Garbage, BytesBeyondTheRegion) {
  HandPair hand;
  Wqe wqe = hand.write(0, 8);
  wqe.sges[0].addr += hand.pair.client.memory->size();
  expect_error(hand, hand.qp.post(wqe), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST(SoftnicMlx5Garbage, ADataSegmentWithoutALengthIsTwoGigabytes) {
  HandPair hand;
  expect_error(hand, hand.qp.post(hand.write(0, 0)), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST(SoftnicMlx5Garbage, WhatIsInFrontIsDoneFirst) {
  HandPair hand(mlx5_end("mlxlink0"), mlx5_end("mlxlink1"));
  hand.pair.client.memory->fill(3);
  for (unsigned i = 0; i < 4; ++i) hand.qp.write(hand.write(i * 4096, 4096));
  Wqe bad = hand.write(0, 8);
  bad.opcode = 0x3e;
  const std::uint16_t place = hand.qp.write(bad);
  hand.qp.ring();
  for (unsigned i = 0; i < 4; ++i) {
    const auto done = hand.cq.next();
    ASSERT_TRUE(done);
    EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
    EXPECT_EQ(wqe_counter(*done), i);
  }
  expect_error(hand, place, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
  EXPECT_TRUE(hand.pair.server.memory->holds(3, 0, 4 * 4096));
}

TEST(SoftnicMlx5Garbage, AReceiveThatIsNoneFailsItsMessage) {
  HandPair hand;
  HandQp server(hand.pair.server.qp.get());
  HandCq arrived(hand.pair.server.recv_cq.get());
  ibv_sge wrong = hand.pair.server.memory->sge(0, 64);
  wrong.lkey ^= 0x5500;
  server.post_receive({wrong});
  hand.qp.post(hand.request(MLX5_OPCODE_SEND, 0, 64));
  const auto got = arrived.next();
  ASSERT_TRUE(got);
  EXPECT_EQ(cqe_opcode(*got), MLX5_CQE_RESP_ERR);
  EXPECT_EQ(syndrome(*got), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
  const auto sent = hand.cq.next();
  ASSERT_TRUE(sent);
  EXPECT_EQ(syndrome(*sent), MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
}

TEST(SoftnicMlx5Garbage, AnyBytesAtAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    HandPair hand;
    HandPair quiet;
    auto* ring = static_cast<std::uint8_t*>(hand.qp.rings().sq.buf);
    for (std::uint32_t i = 0; i < hand.qp.rings().sq.wqe_cnt * 64; ++i) ring[i] = static_cast<std::uint8_t>(random());
    // Half of them begin like a WQE.
    const unsigned wqes = random() % 8;
    for (unsigned i = 0; i < wqes; ++i) {
      auto* control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(ring + i * 64);
      control->opmod_idx_opcode = htobe32(i << 8 | random() % 0x30);
      control->qpn_ds = htobe32(hand.qp.number() << 8 | random() % 64);
    }
    auto* receives = static_cast<std::uint8_t*>(hand.qp.rings().rq.buf);
    for (unsigned i = 0; i < hand.qp.rings().rq.wqe_cnt * hand.qp.rings().rq.stride; ++i)
      receives[i] = static_cast<std::uint8_t>(random());
    std::atomic_ref(hand.qp.rings().dbrec[MLX5_RCV_DBR]).store(random(), std::memory_order_release);
    hand.qp.set_producer(random() % 2 == 0 ? static_cast<std::uint16_t>(random())
                                           : static_cast<std::uint16_t>(wqes + 1));
    hand.qp.ring();
    if (hand.qp.producer() != 0) {
      const auto done = hand.cq.next();
      ASSERT_TRUE(done) << round;
    }
    // Others are not affected.
    quiet.qp.post(quiet.write(0, 8));
    const auto other = quiet.cq.next();
    ASSERT_TRUE(other) << round;
    ASSERT_EQ(cqe_opcode(*other), MLX5_CQE_REQ);
  }
}

TEST(SoftnicMlx5Garbage, RecordsOfOtherQueuesAreNotBelieved) {
  HandPair hand;
  // Consumer and receives: any number.
  std::atomic_ref(hand.cq.rings().dbrec[0]).store(htobe32(0xabcdef), std::memory_order_release);
  std::atomic_ref(hand.qp.rings().dbrec[MLX5_RCV_DBR]).store(htobe32(0x7777), std::memory_order_release);
  hand.qp.post(hand.write(0, 8));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
}

}  // namespace
}  // namespace softnic_test
